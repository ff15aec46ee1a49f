use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::model::api::WebhookProvider;
use crate::model::api::WebhookProvider::{Bitbucket, Forgejo, Generic, GitHub, GitLab, Gitea};

/// The example of GitHub's documentation, "Validating webhook deliveries".
const TOKEN: &[u8] = b"It's a Secret to Everybody";
const BODY: &[u8] = b"Hello, World!";
const SIGNATURE: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
/// The example that the libraries of Standard Webhooks share.
const STANDARD_TOKEN: &[u8] = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const STANDARD_BODY: &[u8] = br#"{"test": 2432232314}"#;
const STANDARD_TIME: i64 = 1_614_265_330;

const PROVIDERS: [WebhookProvider; 6] = [GitHub, GitLab, Gitea, Forgejo, Bitbucket, Generic];

fn keys(token: &[u8]) -> Keys {
    Keys::new(Some(token), None).unwrap()
}

fn headers<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> HeaderMap {
    pairs
        .into_iter()
        .map(|(name, value)| {
            let name = HeaderName::try_from(name).unwrap();
            (name, HeaderValue::try_from(value).unwrap())
        })
        .collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn verify(
    provider: WebhookProvider,
    keys: &Keys,
    headers: &HeaderMap,
    body: &[u8],
    now: i64,
) -> Result<Fingerprint, Refused> {
    let mut verifier = Verifier::new(provider, keys, headers, at(now))?;
    // In two parts, as it may arrive.
    let (one, other) = body.split_at(body.len() / 2);
    verifier.update(one);
    verifier.update(other);
    verifier.finish()
}

fn signed(provider: WebhookProvider, token: &[u8]) -> (HeaderMap, Vec<u8>) {
    let repository = (
        "https://git.example.com/platform/modules.git",
        "refs/heads/main",
    );
    let made = signed_push(provider, &keys(token), repository, "delivery-1", at(1_000));
    (headers(made.headers), made.body)
}

fn standard(signature: &str) -> HeaderMap {
    headers([
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned()),
        ("webhook-timestamp", STANDARD_TIME.to_string()),
        ("webhook-signature", signature.to_owned()),
    ])
}

const STANDARD_SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

#[rstest]
#[case(GitHub, "X-Hub-Signature-256", "sha256=")]
#[case(Gitea, "X-Gitea-Signature", "")]
#[case(Forgejo, "X-Forgejo-Signature", "")]
#[case(Bitbucket, "X-Hub-Signature", "sha256=")]
#[case(Generic, "X-Signature", "sha256=")]
fn each_forge_signs_in_a_header_of_its_own(
    #[case] provider: WebhookProvider,
    #[case] header: &str,
    #[case] prefix: &str,
) {
    let keys = keys(TOKEN);
    let header = header.to_ascii_lowercase();
    let sent = |value: String| headers([(header.as_str(), value)]);
    let right = sent(format!("{prefix}{SIGNATURE}"));
    assert!(verify(provider, &keys, &right, BODY, 0).is_ok());
    let upper = sent(format!("{prefix}{}", SIGNATURE.to_uppercase()));
    assert!(verify(provider, &keys, &upper, BODY, 0).is_ok());

    let wrong = [
        sent(format!("{prefix}{}", SIGNATURE.replace('7', "8"))),
        sent(format!("{prefix}{}", &SIGNATURE[..62])),
        sent(format!("{prefix}{SIGNATURE}00")),
        sent(format!("{prefix}{}", SIGNATURE.replace('7', "g"))),
        sent(format!("sha1={SIGNATURE}")),
        sent(prefix.to_owned()),
        sent(String::new()),
        headers([("x-signature-256", format!("{prefix}{SIGNATURE}"))]),
        HeaderMap::new(),
    ];
    for headers in wrong {
        assert_eq!(
            verify(provider, &keys, &headers, BODY, 0),
            Err(Refused),
            "{headers:?}"
        );
    }
    assert_eq!(
        verify(provider, &keys, &right, b"Hello, World", 0),
        Err(Refused)
    );
    let other = self::keys(b"another token of somebody");
    assert_eq!(verify(provider, &other, &right, BODY, 0), Err(Refused));
}

#[rstest]
#[case(GitHub, "x-hub-signature")]
#[case(Gitea, "x-hub-signature-256")]
#[case(Bitbucket, "x-hub-signature-256")]
#[case(Generic, "x-hub-signature-256")]
#[case(GitLab, "x-hub-signature-256")]
fn the_header_of_another_forge_counts_for_nothing(
    #[case] provider: WebhookProvider,
    #[case] header: &str,
) {
    let sent = headers([(header, format!("sha256={SIGNATURE}"))]);
    assert_eq!(verify(provider, &keys(TOKEN), &sent, BODY, 0), Err(Refused));
}

#[rstest]
#[case(0, true)]
#[case(300, true)]
#[case(-300, true)]
#[case(301, false)]
#[case(-301, false)]
fn a_signing_token_demands_the_signature_of_id_time_and_body(
    #[case] late: i64,
    #[case] accepted: bool,
) {
    let keys = keys(STANDARD_TOKEN);
    let verified = |headers: &HeaderMap, body: &[u8]| {
        verify(GitLab, &keys, headers, body, STANDARD_TIME + late).is_ok()
    };
    let right = standard(STANDARD_SIGNATURE);
    assert_eq!(verified(&right, STANDARD_BODY), accepted);
    let several = format!("v1a,AAAA v1,AAAA {STANDARD_SIGNATURE}");
    assert_eq!(verified(&standard(&several), STANDARD_BODY), accepted);

    assert!(!verified(&right, b"{}"));
    assert!(!verified(&standard("v1,AAAA"), STANDARD_BODY));
    assert!(!verified(
        &standard(&STANDARD_SIGNATURE[3..]),
        STANDARD_BODY
    ));
    for (name, value) in [
        ("webhook-id", "msg_other"),
        ("webhook-timestamp", "1614265331"),
    ] {
        let mut changed = right.clone();
        changed.insert(name, HeaderValue::from_static(value));
        assert!(!verified(&changed, STANDARD_BODY), "{name} is signed");
        changed.remove(name);
        assert!(!verified(&changed, STANDARD_BODY), "{name} is needed");
    }
    let shown = String::from_utf8(STANDARD_TOKEN.to_vec()).unwrap();
    let plain = headers([("x-gitlab-token", shown)]);
    assert!(
        !verified(&plain, STANDARD_BODY),
        "a signing token is not sent"
    );
}

#[test]
fn a_secret_token_of_gitlab_is_compared_as_it_was_sent() {
    let keys = keys(TOKEN);
    let sent = |token: &str| headers([("x-gitlab-token", token.to_owned())]);
    let right = std::str::from_utf8(TOKEN).unwrap();
    assert!(verify(GitLab, &keys, &sent(right), BODY, 0).is_ok());
    for wrong in ["", "It's a Secret to Everybodz", &right[1..], &right[..25]] {
        assert_eq!(verify(GitLab, &keys, &sent(wrong), BODY, 0), Err(Refused));
    }
}

#[test]
fn both_tokens_are_valid_while_one_replaces_the_other() {
    for provider in PROVIDERS {
        for (token, other) in [(TOKEN, STANDARD_TOKEN), (STANDARD_TOKEN, TOKEN)] {
            let (headers, body) = signed(provider, token);
            let both = Keys::new(Some(other), Some(token)).unwrap();
            assert!(verify(provider, &both, &headers, &body, 1_000).is_ok());
            let later = keys(other);
            assert_eq!(
                verify(provider, &later, &headers, &body, 1_000),
                Err(Refused)
            );
        }
    }
}

#[test]
fn paths_differ_by_token_and_source_and_never_change() {
    let one = keys(TOKEN).paths("fairway-system", "modules");
    let both = Keys::new(Some(STANDARD_TOKEN), Some(TOKEN)).unwrap();
    let both = both.paths("fairway-system", "modules");
    assert_eq!(both[1], one[0]);
    // Registered at forges: this value must never change.
    assert_eq!(
        one,
        ["/hook/c94ecb239d6d14ff31d50c128b5e8ef80204eaa12258a14788cb02b7a72d2b70"]
    );
    let mut all = vec![both[0].clone(), one[0].clone()];
    for (namespace, name) in [
        ("fairway-system", "module"),
        ("fairway", "-systemmodules"),
        ("", ""),
    ] {
        all.extend(keys(TOKEN).paths(namespace, name));
    }
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[rstest]
#[case(None, "no key `token`")]
#[case(Some(b"hunter2".as_slice()), "shorter than 16")]
#[case(Some(b"0123456789abcdef0123\n".as_slice()), "line break")]
#[case(Some(b"0123456789abcdef\xff".as_slice()), "control character")]
#[case(Some(b"whsec_not base64!!!!!!!!".as_slice()), "Base64")]
#[case(Some(b"whsec_AAAAAAAAAAAAA".as_slice()), "Base64")]
fn a_token_that_cannot_be_used_says_why_without_repeating_it(
    #[case] token: Option<&[u8]>,
    #[case] why: &str,
) {
    let error = Keys::new(token, None).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
    if let Some(token) = token {
        let text = String::from_utf8_lossy(token);
        assert!(!error.contains(text.trim()), "{error}");
        assert!(Keys::new(Some(TOKEN), Some(token)).is_err());
    }
    assert!(!format!("{:?}", keys(TOKEN)).contains("Everybody"));
}

#[rstest]
#[case("https://git.example.com/platform/modules.git", true)]
#[case("https://git.example.com/platform/modules", true)]
#[case("https://git.example.com/platform/modules/", true)]
#[case("HTTPS://Git.Example.com:443/Platform/Modules.git", true)]
#[case("https://somebody@git.example.com/platform/modules", true)]
#[case("ssh://git@git.example.com/platform/modules.git", true)]
#[case("ssh://git@git.example.com:22/platform/modules.git", true)]
#[case("git@git.example.com:platform/modules.git", true)]
#[case("https://git.example.com:8443/platform/modules.git", false)]
#[case("https://evil.com/git.example.com/platform/modules", false)]
#[case("https://evilgit.example.com/platform/modules", false)]
#[case("https://git.example.com/evil/modules", false)]
#[case("https://git.example.com/platform/x-modules", false)]
#[case("https://git.example.com/platform/modules2", false)]
#[case("https://git.example.com/evil/platform/modules", false)]
#[case("https://git.example.com@evil.com/platform/modules", false)]
#[case("https://git.example.com/platform/../platform/modules", false)]
#[case("https://git.example.com/modules", false)]
#[case("file:///platform/modules", false)]
#[case("platform/modules", false)]
#[case("modules", false)]
#[case("", false)]
fn a_repository_is_known_by_its_whole_name(#[case] url: &str, #[case] same: bool) {
    let ours = RepositoryName::of("https://git.example.com/platform/modules.git");
    assert!(ours.is_some());
    assert_eq!(RepositoryName::of(url) == ours, same);
}

fn followed(reference: FollowedReference) -> Followed {
    Followed {
        repository: RepositoryName::of("https://git.example.com/platform/modules.git"),
        reference,
    }
}

fn main_branch() -> Followed {
    followed(FollowedReference::Branch("main".to_owned()))
}

fn judge(provider: WebhookProvider, event: &str, body: &str, followed: &Followed) -> &'static str {
    let event_header = super::payload::names(provider).0;
    let headers = headers([
        (event_header, event.to_owned()),
        ("content-type", "application/json; charset=utf-8".to_owned()),
    ]);
    match Announcement::read(provider, &headers, Some(body.as_bytes())) {
        Ok(announcement) => announcement.judge(followed).as_str(),
        Err(_) => "Unreadable",
    }
}

#[test]
fn what_was_signed_here_is_verified_and_read_here() {
    for provider in PROVIDERS {
        for token in [TOKEN, STANDARD_TOKEN] {
            let (headers, body) = signed(provider, token);
            assert!(verify(provider, &keys(token), &headers, &body, 1_000).is_ok());
            let read = Announcement::read(provider, &headers, Some(&body)).unwrap();
            assert_eq!(read.id.as_deref(), Some("delivery-1"));
            assert_eq!(
                read.judge(&main_branch()),
                DeliveryResult::Announced,
                "{provider:?}"
            );
        }
    }
}

/// Shortened from what the forges document.
const GITHUB_PUSH: &str = r#"{"ref":"refs/heads/main","before":"6113728f27ae82c7b1a177c8d03f9e96e0adf246","deleted":false,
 "repository":{"id":17273051,"full_name":"platform/modules","url":"https://git.example.com/platform/modules",
 "html_url":"https://git.example.com/platform/modules","clone_url":"https://git.example.com/platform/modules.git",
 "ssh_url":"git@git.example.com:platform/modules.git","owner":{"login":"platform"}},"commits":[{"id":"x","added":[]}]}"#;
const GITLAB_PUSH: &str = r#"{"object_kind":"push","event_name":"push","ref":"refs/heads/main","user_id":4,"project":{"id":15,
 "web_url":"https://git.example.com/platform/modules","git_ssh_url":"git@git.example.com:platform/modules.git",
 "git_http_url":"https://git.example.com/platform/modules.git","path_with_namespace":"platform/modules"},"commits":[]}"#;
const CLOUD_PUSH: &str = r#"{"actor":{},"repository":{"full_name":"platform/modules","links":{"self":{"href":"https://api.example.com/2.0"},
 "html":{"href":"https://git.example.com/platform/modules"}}},"push":{"changes":[{"new":{"type":"branch","name":"main","target":{}},
 "old":{"type":"branch","name":"main"},"created":false}]}}"#;
const CENTER_PUSH: &str = r#"{"eventKey":"repo:refs_changed","repository":{"slug":"modules","links":{"clone":[
 {"href":"ssh://git@git.example.com:7999/platform/modules.git","name":"ssh"},{"href":"https://git.example.com/platform/modules.git","name":"http"}],
 "self":[{"href":"https://git.example.com/projects/PLATFORM/repos/modules/browse"}]}},
 "changes":[{"ref":{"id":"refs/heads/main","displayId":"main","type":"BRANCH"},"type":"UPDATE"}]}"#;
const GENERIC_PUSH: &str = r#"{"repository":"https://git.example.com/platform/modules","ref":"refs/heads/main","by":"ci"}"#;

#[rstest]
#[case(GitHub, "push", GITHUB_PUSH)]
#[case(Gitea, "push", GITHUB_PUSH)]
#[case(Forgejo, "push", GITHUB_PUSH)]
#[case(GitLab, "Push Hook", GITLAB_PUSH)]
#[case(GitLab, "System Hook", GITLAB_PUSH)]
#[case(Bitbucket, "repo:push", CLOUD_PUSH)]
#[case(Bitbucket, "repo:refs_changed", CENTER_PUSH)]
#[case(Generic, "push", GENERIC_PUSH)]
fn the_payloads_of_the_forges_are_read(
    #[case] provider: WebhookProvider,
    #[case] event: &str,
    #[case] push: &str,
) {
    let main = main_branch();
    assert_eq!(judge(provider, event, push, &main), "Announced");
    let other = push.replace("platform/modules", "evil/modules");
    assert_eq!(judge(provider, event, &other, &main), "OtherRepository");
    let other = push
        .replace("heads/main", "heads/next")
        .replace("\"main\"", "\"next\"");
    assert_eq!(judge(provider, event, &other, &main), "OtherReference");
    assert_eq!(judge(provider, "issues", push, &main), "OtherEvent");
    assert_eq!(
        judge(provider, event, "{}", &main),
        if provider == GitLab {
            "OtherRepository"
        } else {
            "Unreadable"
        }
    );
    for body in [
        "",
        "[]",
        "{",
        "null",
        "\u{fffd}",
        "{\"ref\": 5}",
        &push[..push.len() - 1],
    ] {
        assert_eq!(judge(provider, event, body, &main), "Unreadable", "{body}");
    }
    let deep = format!("{{\"commits\": {}", "[".repeat(100_000));
    assert_eq!(judge(provider, event, &deep, &main), "Unreadable");

    let tag = push
        .replace("refs/heads/main", "refs/tags/v1")
        .replace("branch", "tag")
        .replace("\"main\"", "\"v1\"");
    assert_eq!(judge(provider, event, &tag, &main), "OtherReference");
    let one = followed(FollowedReference::Tag("v1".to_owned()));
    assert_eq!(judge(provider, event, &tag, &one), "Announced");
    assert_eq!(judge(provider, event, push, &one), "OtherReference");
    let any = followed(FollowedReference::AnyTag);
    assert_eq!(judge(provider, event, &tag, &any), "Announced");
    assert_eq!(judge(provider, event, push, &any), "OtherReference");
    let commit = followed(FollowedReference::Commit);
    assert_eq!(judge(provider, event, push, &commit), "OtherReference");
}

#[rstest]
#[case(GitHub, "ping")]
#[case(Gitea, "ping")]
#[case(Forgejo, "ping")]
#[case(Generic, "ping")]
#[case(Bitbucket, "diagnostics:ping")]
fn a_ping_is_answered_whatever_it_holds(#[case] provider: WebhookProvider, #[case] event: &str) {
    assert_eq!(
        judge(provider, event, "{\"zen\": 1}", &main_branch()),
        "Ping"
    );
    assert_eq!(judge(provider, event, "not json", &main_branch()), "Ping");
}

#[test]
fn a_tag_that_is_created_is_named_by_its_short_name() {
    let body = GITHUB_PUSH.replace("\"refs/heads/main\"", "\"v1\",\"ref_type\":\"tag\"");
    let any = followed(FollowedReference::AnyTag);
    assert_eq!(judge(GitHub, "create", &body, &any), "Announced");
    assert_eq!(
        judge(GitHub, "create", &body, &main_branch()),
        "OtherReference"
    );
}

#[test]
fn a_form_is_read_and_other_content_is_not() {
    let read = |type_: &str, body: &[u8]| {
        let headers = headers([
            ("x-github-event", "push".to_owned()),
            ("content-type", type_.to_owned()),
        ]);
        Announcement::read(GitHub, &headers, Some(body)).map(|read| read.judge(&main_branch()))
    };
    let form: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("payload", GITHUB_PUSH)
        .finish();
    let type_ = "application/x-www-form-urlencoded";
    assert_eq!(
        read(type_, form.as_bytes()).unwrap(),
        DeliveryResult::Announced
    );
    let error = read(type_, GITHUB_PUSH.as_bytes()).unwrap_err();
    assert!(matches!(error, Unreadable::Form), "{error}");
    for type_ in ["text/plain", "", "application/jsonp", "application/xml"] {
        let error = read(type_, GITHUB_PUSH.as_bytes()).unwrap_err();
        assert!(matches!(error, Unreadable::ContentType), "{error}");
    }
    let error = read("application/json", b"{\"ref\": \"\xff\"}").unwrap_err();
    assert!(matches!(error, Unreadable::Json { .. }), "{error}");
}

#[test]
fn what_is_too_large_to_be_kept_announces_something_if_it_is_a_push() {
    for (event, result) in [("push", "Announced"), ("issues", "OtherEvent")] {
        let headers = headers([("x-github-event", event.to_owned())]);
        let read = Announcement::read(GitHub, &headers, None).unwrap();
        assert_eq!(read.judge(&main_branch()).as_str(), result);
    }
}

proptest! {
    #[test]
    fn no_bytes_break_the_reading(body: Vec<u8>, type_ in "[ -~]{0,40}", event in "[ -~]{0,80}") {
        for provider in PROVIDERS {
            let name = super::payload::names(provider).0;
            for event in [event.as_str(), "push", "Push Hook", "repo:push"] {
                for type_ in [type_.as_str(), "application/json", "application/x-www-form-urlencoded"] {
                    let headers = headers([(name, event.to_owned()), ("content-type", type_.to_owned())]);
                    if let Ok(read) = Announcement::read(provider, &headers, Some(&body)) {
                        prop_assert_ne!(read.judge(&main_branch()), DeliveryResult::Announced);
                        prop_assert!(read.event.len() <= 64);
                    }
                }
            }
        }
    }

    #[test]
    fn no_other_bytes_and_no_other_header_are_verified(body: Vec<u8>, header in "[ -~]{0,80}") {
        let keys = keys(TOKEN);
        for provider in PROVIDERS {
            let names = ["x-hub-signature-256", "x-gitlab-token", "x-gitea-signature", "x-forgejo-signature",
                "x-hub-signature", "x-signature", "webhook-signature"];
            let sent = headers(names.map(|name| (name, header.clone())));
            prop_assert_eq!(verify(provider, &keys, &sent, &body, 0), Err(Refused));
        }
    }
}
