//! `fairway create secret git`: the keys that the agent reads, and values that never stand on a command line.

use fairway::model::names;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::Value;

use super::fairway;
use crate::support::control_plane::ControlPlane;

/// Runs the command with a text on standard input; returns its exit code, stdout and stderr.
fn create(arguments: &[&str], stdin: &str) -> (i32, String, String) {
    let mut all = vec!["create", "secret", "git", "credentials"];
    all.extend(arguments);
    let output = fairway(&all).write_stdin(stdin).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_manifest_can_be_had_without_a_cluster() {
    let (code, out, err) = create(
        &["--username", "ci", "--password-stdin", "--dry-run"],
        "secret\n",
    );
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!(out);
    let (code, out, err) = create(
        &["--bearer-token-stdin", "--dry-run", "-o", "json"],
        "token",
    );
    assert_eq!(code, 0, "{err}");
    let secret: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(secret["data"]["bearerToken"], "dG9rZW4=");
}

#[test]
fn ssh_needs_host_keys_and_files_that_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("key"), "a private key").unwrap();
    std::fs::write(file("hosts"), "git.example.com ssh-ed25519 AAAA").unwrap();
    let (key, hosts) = (file("key"), file("hosts"));
    let (code, out, err) = create(
        &[
            "--ssh-key-file",
            &key,
            "--known-hosts-file",
            &hosts,
            "--dry-run",
            "-o",
            "json",
        ],
        "",
    );
    assert_eq!(code, 0, "{err}");
    let secret: Value = serde_json::from_str(&out).unwrap();
    let keys: Vec<&String> = secret["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["identity", "known_hosts"]);

    let (code, _, err) = create(&["--ssh-key-file", &key], "");
    assert!(code == 2 && err.contains("--known-hosts-file"), "{err}");
    let missing = file("missing");
    let (code, _, err) = create(&["--ca-file", &missing], "");
    assert!(code == 2 && err.contains("missing"), "{err}");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    for (arguments, stdin, said) in [
        (&[][..], "", "nothing to put into the Secret"),
        (&["--username", "ci"], "", "--password-stdin"),
        (
            &["--username", "ci", "--password-stdin"],
            "",
            "which is empty",
        ),
        (
            &[
                "--bearer-token-stdin",
                "--username",
                "ci",
                "--password-stdin",
            ],
            "x",
            "cannot be used with",
        ),
    ] {
        let (code, _, err) = create(arguments, stdin);
        assert!(code == 2 && err.contains(said), "{arguments:?}: {err}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_way_to_sign_in_takes_the_place_of_the_first() {
    let plane = ControlPlane::minimal();
    let namespace = plane.namespace().await;
    let kubeconfig = plane.kubeconfig().to_str().unwrap();
    let there = ["--kubeconfig", kubeconfig, "--namespace", &namespace];
    let secrets: Api<Secret> = Api::namespaced(plane.client().await, &namespace);
    let keys = async || {
        let secret = secrets.get("credentials").await.unwrap();
        let data = secret.data.unwrap();
        data.into_keys().collect::<Vec<_>>()
    };
    let (code, out, err) = create(
        &[&["--username", "ci", "--password-stdin"][..], &there].concat(),
        "canary\n",
    );
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(!err.contains("canary"), "{err}");
    assert_eq!(keys().await, ["password", "username"]);
    let (code, _, err) = create(&[&["--bearer-token-stdin"][..], &there].concat(), "canary");
    assert_eq!(code, 0, "{err}");
    assert_eq!(keys().await, ["bearerToken"]);
    assert_ne!(names::MANAGER, "fairway-cli", "it is not desired state");
}
