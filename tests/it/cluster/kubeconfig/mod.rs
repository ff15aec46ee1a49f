//! Kubeconfigs from Secrets: what is used, and what is refused.

mod access;
mod cases;
mod hostile;
mod laws;

use std::path::Path;

use k8s_openapi::ByteString;
use serde_json::Value;

/// A token that no message may repeat.
const CANARY: &str = "canary-token-of-the-runtime";

/// A kubeconfig that is used, as the cases spoil it.
fn good() -> String {
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: runtime\n\
         clusters:\n\
         - name: shoot\n\
        \x20 cluster:\n\
        \x20   server: https://api.runtime.example.com:6443\n\
        \x20   certificate-authority-data: {}\n\
         users:\n\
         - name: robot\n\
        \x20 user:\n\
        \x20   token: {CANARY}\n\
         contexts:\n\
         - name: runtime\n\
        \x20 context:\n\
        \x20   cluster: shoot\n\
        \x20   user: robot\n",
        base64(&fixture("ca.crt"))
    )
}

/// A user's fields in the place of the token.
fn with_user(fields: &str) -> String {
    spoiled(&format!("token: {CANARY}"), fields)
}

/// The good one with one place changed.
fn spoiled(from: &str, to: &str) -> String {
    let good = good();
    assert!(good.contains(from), "{from}");
    good.replacen(from, to, 1)
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kubeconfig");
    std::fs::read(folder.join(name)).unwrap()
}

fn base64(bytes: &[u8]) -> String {
    match serde_json::to_value(ByteString(bytes.to_vec())).unwrap() {
        Value::String(text) => text,
        other => panic!("{other}"),
    }
}
