use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn status(reason: &str, message: &str, causes: &Value) -> Vec<u8> {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {},
        "reason": reason, "message": message, "details": {"causes": causes},
    });
    serde_json::to_vec(&body).unwrap()
}

fn error(code: u16, body: &[u8], secret: bool) -> ClusterError {
    let words = Words {
        request: "apply Thing a",
        secret,
    };
    ClusterError::from_answer(words, StatusCode::from_u16(code).unwrap(), None, body)
}

#[rstest]
#[case(400, "failed to apply Thing a: refused: why", false)]
#[case(
    401,
    "failed to apply Thing a: the credentials are not accepted",
    false
)]
#[case(403, "failed to apply Thing a: forbidden: why", false)]
#[case(404, "failed to apply Thing a: not found: why", false)]
#[case(409, "failed to apply Thing a: conflict: why", true)]
#[case(410, "failed to apply Thing a: it is too old to go on from", true)]
#[case(413, "failed to apply Thing a: refused: why", false)]
#[case(418, "failed to apply Thing a: answer 418: why", false)]
#[case(422, "failed to apply Thing a: refused: why", false)]
#[case(429, "failed to apply Thing a: too many requests", true)]
#[case(500, "failed to apply Thing a: answer 500: why", true)]
#[case(503, "failed to apply Thing a: the server is unavailable: why", true)]
#[case(504, "failed to apply Thing a: the server is unavailable: why", true)]
fn each_code_has_its_kind(#[case] code: u16, #[case] words: &str, #[case] retryable: bool) {
    for body in [status("Reason", "why", &json!([])), b" why\n".to_vec()] {
        let error = error(code, &body, false);
        assert_eq!(error.to_string(), words);
        assert_eq!(error.is_retryable(), retryable);
    }
}

#[rstest]
#[case(
    "FieldValueInvalid",
    "spec.selector",
    "Invalid value: {}: field is immutable",
    true
)]
#[case(
    "FieldValueForbidden",
    "spec",
    "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
    true
)]
#[case(
    "FieldValueInvalid",
    "spec.clusterIPs[0]",
    "Invalid value: []: may not change once set",
    true
)]
#[case(
    "FieldValueInvalid",
    "roleRef",
    "Invalid value: {}: cannot change roleRef",
    true
)]
#[case(
    "FieldValueForbidden",
    "spec",
    "Forbidden: spec is immutable after creation",
    true
)]
#[case("FieldValueRequired", "spec.selector", "Required value", false)]
fn an_immutable_field_is_told_from_a_wrong_one(
    #[case] reason: &str,
    #[case] field: &str,
    #[case] message: &str,
    #[case] immutable: bool,
) {
    let causes = json!([{"reason": reason, "field": field, "message": message}]);
    let found = error(422, &status("Invalid", "is invalid", &causes), false);
    match found {
        ClusterError::Immutable { field: named, .. } if immutable => assert_eq!(named, field),
        ClusterError::Invalid { .. } if !immutable => {}
        other => panic!("{other}"),
    }
}

#[rstest]
#[case(400)]
#[case(403)]
#[case(409)]
#[case(422)]
#[case(500)]
#[case(503)]
fn what_a_server_says_about_a_secret_is_not_repeated(#[case] code: u16) {
    let causes = json!([{"field": "data[password]", "message": "Invalid value: \"hunter2\": field is immutable"}]);
    let body = status(
        "Invalid",
        "Secret \"a\" is invalid: data[password]: \"hunter2\"",
        &causes,
    );
    for body in [body, b"hunter2".to_vec()] {
        let error = error(code, &body, true);
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
    }
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let body = status("", &"ü".repeat(limits::SERVER_MESSAGE_MAX), &json!([]));
    let message = error(500, &body, false).to_string();
    assert!(message.len() < limits::SERVER_MESSAGE_MAX + 100);
    assert!(message.ends_with('…'));
}

#[test]
fn the_server_may_ask_to_wait_in_its_body() {
    let body = json!({"kind": "Status", "details": {"retryAfterSeconds": 7}});
    let error = error(429, &serde_json::to_vec(&body).unwrap(), false);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}
