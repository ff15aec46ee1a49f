//! Reading and planning without a cluster.

use std::time::Instant;

use fairway::desired::{Cache, EvaluateOptions, evaluate};
use fairway::model::SourceName;
use fairway::plan::hooks::{Committed, MigrationInput};
use fairway::plan::{Jobs, PlanInput, PruneSettings, TemplateUse, observed_from, plan};
use fairway::source::WorkingTree;

use crate::raw::value;
use crate::report::Report;

/// Validates so many one-object files cold, and plans again when one has changed.
pub(crate) fn validate(report: &mut Report, count: usize) {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("components/web");
    std::fs::create_dir_all(&folder).unwrap();
    let write = |number: usize, version: &str| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings-{number}, namespace: apps}}\ndata: {{value: {}}}\n",
            value(version)
        );
        std::fs::write(folder.join(format!("settings-{number}.yaml")), text).unwrap();
    };
    (0..count).for_each(|number| write(number, "a"));
    let source = SourceName::new("modules").unwrap();
    let options = EvaluateOptions {
        source: source.clone(),
        landscape: None,
        catalog_namespace: "kcp-system".to_owned(),
    };
    let mut cache = Cache::default();
    let mut tree = WorkingTree::open(directory.path()).unwrap();
    let begun = Instant::now();
    let base = evaluate(&tree.snapshot().unwrap(), &options, &mut cache);
    let cold = begun.elapsed();
    assert!(base.is_valid());

    write(42, "b");
    let snapshot = tree.snapshot().unwrap();
    let begun = Instant::now();
    let head = evaluate(&snapshot, &options, &mut cache);
    let evaluated = begun.elapsed();
    let observed = observed_from(&base, &head, &source);
    let begun = Instant::now();
    let planned = plan(PlanInput {
        source: &source,
        desired: &head,
        observed: &observed,
        prune: &PruneSettings::default(),
        jobs: &Jobs::new(),
        templates: TemplateUse::NotAsked,
        approval: None,
        record: Ok(()),
        failures: &std::collections::BTreeMap::new(),
        only: None,
        takeover: &[],
        migrations: MigrationInput {
            committed: &Committed::default(),
            states: None,
        },
    });
    let again = begun.elapsed();
    assert_eq!(planned.actions().count(), 1);
    report.row(
        format!("validate {count} manifests, cold; plan again when one changed"),
        "≤ 1.5 s; ≤ 50 ms",
        format!(
            "{:.2} s; {} ms (read {} ms, plan {} ms)",
            cold.as_secs_f64(),
            (evaluated + again).as_millis(),
            evaluated.as_millis(),
            again.as_millis()
        ),
        "–",
    );
}
