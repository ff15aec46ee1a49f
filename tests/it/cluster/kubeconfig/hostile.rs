//! Each refusal, its words, and that nothing was opened or run on the way to it.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use fairway::cluster::{AccessPolicy, RemoteAccess};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::cases::{self, FILE, PROGRAM};

#[test]
fn is_refused_with_the_field_and_the_way_out_and_without_a_value() {
    let mut table = String::new();
    let cases = cases::all();
    for (name, bytes) in &cases {
        let message = match RemoteAccess::parse(bytes, AccessPolicy::default()) {
            Ok(access) => panic!("{name} is accepted: {access:?}"),
            Err(error) => error.to_string(),
        };
        for secret in ["canary", "Y2FuYXJ5", "PRIVATE"] {
            assert!(!message.contains(secret), "{name}: {message}");
        }
        writeln!(table, "{name}\n    {message}").unwrap();
    }
    assert!(cases.len() >= 100, "{}", cases.len());
    insta::assert_snapshot!(table);
}

#[test]
fn link_local_and_metadata_stay_refused_where_the_own_machine_is_allowed() {
    let policy = AccessPolicy {
        forbid_local: false,
    };
    let mut accepted = Vec::new();
    for (name, bytes) in cases::all() {
        if RemoteAccess::parse(&bytes, policy).is_ok() {
            accepted.push(name);
        }
    }
    insta::assert_snapshot!(accepted.join("\n"));
}

#[test]
fn opens_no_file_and_runs_no_program_that_the_kubeconfig_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, program, ran) = (path("file"), path("program"), path("ran"));
    std::fs::write(&file, "canary-token").unwrap();
    std::fs::write(&program, format!("#!/bin/sh\ntouch {ran}\n")).unwrap();
    set_executable(Path::new(&program));
    let (sender, events) = mpsc::channel();
    let mut watcher = RecommendedWatcher::new(sender, notify::Config::default()).unwrap();
    watcher
        .watch(folder.path(), RecursiveMode::NonRecursive)
        .unwrap();
    for (_, bytes) in cases::all() {
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        let text = text.replace(FILE, &file).replace(PROGRAM, &program);
        let _ = RemoteAccess::parse(text.as_bytes(), AccessPolicy::default());
    }
    // The watch is awake: it sees this read, and nothing stands before it.
    let last = path("last");
    std::fs::write(&last, "").unwrap();
    let first = events
        .recv_timeout(Duration::from_secs(10))
        .unwrap()
        .unwrap();
    assert_eq!(first.paths, [Path::new(&last)], "{first:?}");
    std::fs::read(&file).unwrap();
    let is_read = |event: notify::Result<notify::Event>| event.unwrap().paths == [Path::new(&file)];
    assert!(events.iter().any(is_read));
    assert!(!Path::new(&ran).exists());
}

fn set_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
