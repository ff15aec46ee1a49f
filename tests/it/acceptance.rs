//! The acceptance cases of migrations, and the tests that are named by them: `docs/reference/acceptance.md`.
//!
//! A case without a test is listed as missing, so that nobody takes it for proved.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::environment;

const PAGE: &str = "docs/reference/acceptance.md";

/// Each case: its id, what happens, and what must hold.
const CASES: &[(&str, &str, &str)] = &[
    (
        "j01",
        "fresh install, objects absent",
        "not needed; no error, no write, within 50 ms for each migration",
    ),
    (
        "j02",
        "second deploy after success",
        "no writes; 100 migrations that are not needed within 2 s",
    ),
    (
        "j03",
        "a pre migration fails",
        "its component is not applied; siblings finish; post is suppressed; the reason shows",
    ),
    (
        "j04",
        "a global pre migration fails",
        "nothing is applied, CRDs included",
    ),
    (
        "j05",
        "the apply of a component fails",
        "its post and the global post are suppressed, those of other components run",
    ),
    (
        "j06",
        "a component is not part of the deploy",
        "its migrations are not evaluated",
    ),
    (
        "j07",
        "a migration panics or hangs",
        "it is kept apart; a hang ends with its attempt, which counts",
    ),
    (
        "j08",
        "two migrations of one hook",
        "they overlap in time; wall and summed durations are both told",
    ),
    (
        "j09",
        "cancelled during pre",
        "no apply begins; Cancelled within the grace; the next run goes on",
    ),
    (
        "j10",
        "sizes of 30Mi, 50Gi, 30Gi",
        "run, not needed, not needed",
    ),
    (
        "j11",
        "a precondition is false",
        "blocked with its message; no effect; an override is recorded and expires",
    ),
    (
        "j12",
        "a lookup is forbidden or times out",
        "the guard is unknown after retries; never taken for not needed",
    ),
    (
        "j13",
        "removeIn is reached",
        "validation fails; at run time it is not executed",
    ),
    (
        "j14",
        "removeIn is reached and it is needed",
        "the deploy is blocked; the message names the release that was skipped",
    ),
    (
        "j15",
        "still needed after the last step",
        "a failure, not a success",
    ),
    (
        "j16",
        "uninstall",
        "no migration runs; the schema refuses the value",
    ),
    (
        "j17",
        "the definition is edited during a run",
        "the run keeps its copy; the next one uses the new one",
    ),
    (
        "j18",
        "duplicate id, unknown component, the name `global`",
        "refused when it is read",
    ),
    (
        "f01",
        "killed between step N and N+1",
        "N is not repeated, N+1 begins",
    ),
    (
        "f02",
        "killed after the effect, before its result is written",
        "verified by the state; the effect is repeated at most harmlessly; the attempt counts",
    ),
    (
        "f03",
        "killed after the attempt is written, before its effect",
        "the effect happens once",
    ),
    (
        "f04",
        "writing the result conflicts",
        "own claim: the write again, without the effect; another claim: stop",
    ),
    (
        "f05",
        "the Job's pod is evicted",
        "it does not count; a new pod; no overlap",
    ),
    (
        "f06",
        "a node is lost, its pod unknown",
        "waits, or replaces after the deletion; no two running pods",
    ),
    (
        "f07",
        "the Job is deleted by hand",
        "unknown, then verified; never a success by itself",
    ),
    (
        "f08",
        "the agent restarts while a Job runs",
        "it is adopted, not duplicated",
    ),
    (
        "f09",
        "the API server is away for ten minutes",
        "no attempts used up beyond the back-off; goes on; no wrong decision",
    ),
    (
        "f10",
        "the answer of a create or patch is lost",
        "already there, or equal: a success",
    ),
    (
        "f11",
        "429 with Retry-After",
        "heeded; limits hold all the same",
    ),
    (
        "f12",
        "the lease is lost in mid-step",
        "effects stop before it expires; the new holder's claim differs; an old write is refused",
    ),
    (
        "f13",
        "two agents start at once",
        "one works; each effect happens once; the other stays idle",
    ),
    (
        "f14",
        "the clock jumps by two hours, either way",
        "nothing expires or is extended; people are told beyond 30 s",
    ),
    (
        "f15",
        "the record is deleted or restored from a backup",
        "the state decides; OncePerCluster and OncePerHop wait for a person",
    ),
    (
        "f16",
        "the record is at its limit of size",
        "its story is trimmed, never the present attempt",
    ),
    (
        "f17",
        "an object changes between guard and effect",
        "the precondition conflicts; it is judged anew",
    ),
    (
        "f18",
        "definitions vanish from git during a run",
        "it ends from its copy",
    ),
    (
        "f19",
        "500 after the other side has acted",
        "the same idempotency key with the next attempt",
    ),
    (
        "f20",
        "the agent is killed in a loop",
        "attempts are bounded; somebody is told after three restarts in the same step",
    ),
];

#[test]
fn the_page_names_each_case_with_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = page(&tests_by_case(root));
    let path = root.join(PAGE);
    if environment("FAIRWAY_ACCEPTANCE").as_deref() == Some("write") {
        fs::write(&path, &page).unwrap();
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == checked_in,
        "{PAGE} is not current: FAIRWAY_ACCEPTANCE=write cargo test --test it acceptance::"
    );
}

#[test]
fn no_test_is_named_by_a_case_that_does_not_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (case, tests) in tests_by_case(root) {
        let known = CASES.iter().any(|(id, _, _)| *id == case);
        assert!(known, "{case} is no case, but {tests:?} are named by it");
    }
}

fn page(tests: &BTreeMap<String, Vec<String>>) -> String {
    let mut page = "# Acceptance\n\n<!-- Made from the names of tests; do not edit. FAIRWAY_ACCEPTANCE=write cargo test --test it acceptance:: -->\n\n\
        The cases that migrations were built to pass, and the tests that are named by them: J are cases of use, F are faults. `cargo test j11_` runs those of one \
        case.\n"
        .to_owned();
    let missing: Vec<String> = CASES
        .iter()
        .filter(|(id, _, _)| !tests.contains_key(*id))
        .map(|(id, _, _)| id.to_uppercase())
        .collect();
    let _ = match missing.as_slice() {
        [] => writeln!(page, "\nEvery case has a test."),
        missing => writeln!(page, "\nWithout a test: {}.", missing.join(", ")),
    };
    page.push_str(
        "\n| case | what happens | what must hold | tests |\n| --- | --- | --- | --- |\n",
    );
    for (id, what, holds) in CASES {
        let tests = match tests.get(*id) {
            Some(tests) => tests.join("<br>"),
            None => "**missing**".to_owned(),
        };
        let _ = writeln!(
            page,
            "| {} | {what} | {holds} | {tests} |",
            id.to_uppercase()
        );
    }
    page
}

/// Finds the tests by their names: `j01_…` in any file of the library or of these tests.
fn tests_by_case(root: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut folders: Vec<PathBuf> = vec![root.join("src"), root.join("tests/it")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let file = path.strip_prefix(root).unwrap().display();
                for name in text.lines().filter_map(declared) {
                    for case in cases_of(name) {
                        let tests = found.entry(case.to_owned()).or_default();
                        tests.push(format!("`{name}` in {file}"));
                    }
                }
            }
        }
    }
    for tests in found.values_mut() {
        tests.sort();
    }
    found
}

/// Returns the name of the function that a line declares.
fn declared(line: &str) -> Option<&str> {
    let declared = line
        .trim_start()
        .trim_start_matches("async ")
        .strip_prefix("fn ")?;
    declared.split(['(', '<']).next()
}

/// Returns the cases that a name begins with: `j02_j06_…` is of two.
fn cases_of(name: &str) -> impl Iterator<Item = &str> {
    let is_case = |word: &&str| {
        let bytes = word.as_bytes();
        bytes.len() == 3
            && matches!(bytes[0], b'j' | b'f')
            && bytes[1..].iter().all(u8::is_ascii_digit)
    };
    name.split('_').take_while(is_case)
}

#[test]
fn a_test_can_be_of_several_cases() {
    let of = |line| cases_of(declared(line).unwrap()).collect::<Vec<_>>();
    assert_eq!(of("async fn j02_j06_only_f01() {"), ["j02", "j06"]);
    assert_eq!(of("    fn f1_something() {"), [""; 0]);
    assert_eq!(declared("let fn_of = 1;"), None);
}
