//! Generated files are checked in; here they are compared.

use std::fs;
use std::path::Path;

use super::fairway;

#[test]
fn generated_files_are_current() {
    let fresh = tempfile::tempdir().expect("a temporary folder");
    let root = fresh.path().to_str().expect("a path of UTF-8");
    fairway(&["generate", "all", "--root", root])
        .assert()
        .code(0)
        .stdout("");
    let mut compared = 0;
    let mut folders = vec![fresh.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(fresh.path()).expect("below the root");
            let checked_in = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            let current = fs::read_to_string(&path).expect("text")
                == fs::read_to_string(&checked_in).unwrap_or_default();
            assert!(
                current,
                "{} is not current: run `make generate`",
                name.display()
            );
            compared += 1;
        }
    }
    assert!(compared >= 2, "only {compared} files were generated");
}

#[test]
fn a_folder_that_cannot_be_written_is_a_failure() {
    insta::assert_snapshot!(super::transcript(&[
        "generate",
        "cli",
        "--root",
        "/dev/null"
    ]));
}
