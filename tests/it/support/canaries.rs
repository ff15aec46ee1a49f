//! Secrets that must never be told. Whatever an agent of any test logs, prints or sends to the API server, and whatever a command of
//! the command line prints, is searched for them when it is there to be searched: nobody has to think of it.
//!
//! A password, token or value of a Secret that a test makes up begins with [`MARK`]. What somebody else has made, such as the
//! token of a ServiceAccount, is [registered](register).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::ByteString;
use serde_json::Value;

/// What every secret begins with that a test makes up.
pub(crate) const MARK: &str = "canary-";

/// Shortest text that is no accident. `canary-` is eight digits in base64.
const FORM_LENGTH_MIN: usize = 7;

/// The secrets that do not begin with the mark, each with the forms in which it is looked for.
static REGISTERED: Mutex<BTreeMap<String, Vec<String>>> = Mutex::new(BTreeMap::new());

/// Makes a secret known that was not made up by a test.
pub(crate) fn register(secret: &str) {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered
        .entry(secret.to_owned())
        .or_insert_with(|| forms(secret));
}

/// Returns the first secret that is told in a text, with what stands before it.
pub(crate) fn told(text: &str) -> Option<String> {
    let registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    let marked = forms(MARK);
    let all = registered.values().chain([&marked]).flatten();
    let at = all.filter_map(|form| text.find(form.as_str())).min()?;
    let before: Vec<char> = text[..at].chars().rev().take(200).collect();
    let before: String = before.into_iter().rev().collect();
    let after: String = text[at..].chars().take(20).collect();
    Some(format!("…{before}⟦{after}…⟧"))
}

/// Fails when a secret is told in a text; says nothing more where a test fails already.
pub(crate) fn search(place: &str, text: &str) {
    if std::thread::panicking() {
        return;
    }
    if let Some(found) = told(text) {
        panic!("a secret is told by {place}: {found}");
    }
}

/// In clear, and in any base64 that holds it, wherever it begins.
fn forms(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned()];
    forms.extend(inside_base64(secret));
    forms.retain(|form| form.len() >= FORM_LENGTH_MIN);
    forms
}

/// What of a text is seen inside any base64 that holds it, wherever it begins.
pub(crate) fn inside_base64(text: &str) -> Vec<String> {
    let encoded = |shift: usize| {
        let bytes = [vec![b'x'; shift], text.as_bytes().to_vec()].concat();
        let all = base64(&bytes);
        let whole = bytes.len() / 3 * 4;
        // The first group is shared with what stands before, the last with what follows.
        all[if shift == 0 { 0 } else { 4 }..whole].to_owned()
    };
    (0..3).map(encoded).collect()
}

/// Encodes bytes as a Secret has them.
pub(crate) fn base64(bytes: &[u8]) -> String {
    match serde_json::to_value(ByteString(bytes.to_vec())).unwrap() {
        Value::String(text) => text,
        other => panic!("{other}"),
    }
}

#[test]
fn the_search_finds_a_text_in_clear_and_in_any_base64() {
    let secret = "a-secret-of-somebody-else-that-is-long-enough";
    register(secret);
    for around in ["", "a", "ci", "abc"] {
        let whole = format!("{around}{secret}{around}");
        assert!(told(&whole).is_some());
        assert!(told(&base64(whole.as_bytes())).is_some(), "{around}");
    }
    let made_up = format!("{MARK}password");
    assert!(told(&format!("user:{made_up}@host")).is_some());
    assert!(told(&base64(made_up.as_bytes())).is_some());
    assert_eq!(told("a canary, and nothing else"), None);
}
