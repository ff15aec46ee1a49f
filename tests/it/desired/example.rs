//! The example repository is what documentation shows, so it has to be beyond reproach.

use std::path::Path;

use fairway::desired::{Cache, evaluate};
use fairway::source::WorkingTree;
use rstest::rstest;

use super::{findings, options};

#[rstest]
#[case::no_landscape(None)]
#[case::stage(Some("stage"))]
#[case::prod(Some("prod"))]
fn the_example_repository_has_no_findings(#[case] landscape: Option<&str>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo");
    let snapshot = WorkingTree::open(&root).unwrap().snapshot().unwrap();
    let desired = evaluate(&snapshot, &options(landscape), &mut Cache::new());
    assert_eq!(findings(&desired), "");
    assert_eq!(desired.catalog.modules.len(), 5);
}
