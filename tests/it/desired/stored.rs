//! Digests that are stored on clusters. They are a format: an upgraded agent has to compute the same ones, or it writes
//! every object anew on an unchanged repository, takes published versions for changed ones, and forgets approvals.
//!
//! The fixture is what version 0.1.0 has stored. Beside each digest it has one of the files that it was made from, so that
//! a change of the example repository is told from a change of the code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fairway::desired::{Cache, Desired, evaluate};
use fairway::model::{Digest, GroupKind, ObjectKey, Snapshot, names};
use fairway::plan::hooks::{Committed, MigrationInput};
use fairway::plan::{Deletion, Jobs, PlanInput, PruneSettings, TemplateUse, observed_from, plan};
use fairway::source::WorkingTree;
use serde::{Deserialize, Serialize};

use super::{Tree, options};

const FIXTURE: &str = include_str!("fixtures/digests-0.1.0.json");

/// What is stored of one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    /// Digest over the blob ids of all files that the object may be made from.
    inputs: String,
    /// The annotation `fairway.dev/digest`.
    digest: String,
    /// The annotation `fairway.dev/version-digest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version_digest: Option<String>,
}

/// Evaluates the example repository; returns the digests by landscape and object.
fn computed() -> BTreeMap<String, Stored> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo");
    let snapshot = WorkingTree::open(&root).unwrap().snapshot().unwrap();
    let mut all = BTreeMap::new();
    for landscape in [None, Some("stage"), Some("prod")] {
        let desired = evaluate(&snapshot, &options(landscape), &mut Cache::new());
        for object in desired.objects() {
            let annotation = |name| object.annotation(name).map(str::to_owned);
            let digest = annotation(names::ANNOTATION_DIGEST).unwrap();
            assert_eq!(digest, object.digest.to_string());
            let key = format!("{} {}", landscape.unwrap_or("-"), object.key);
            let stored = Stored {
                inputs: inputs(&snapshot, &object.component.to_string()),
                digest,
                version_digest: annotation(names::ANNOTATION_VERSION_DIGEST),
            };
            all.insert(key, stored);
        }
    }
    all
}

/// Everything that an object of a component may depend on: the component's folder and the settings.
fn inputs(snapshot: &Snapshot, component: &str) -> String {
    let folder = format!("{component}/");
    let files = snapshot.files.iter();
    let parts: Vec<String> = files
        .filter(|(path, _)| path.starts_with(&folder) || *path == "fairway.yaml")
        .flat_map(|(path, entry)| [path.clone(), entry.blob.to_string()])
        .collect();
    Digest::of_parts(parts.iter().map(String::as_str)).to_string()
}

#[test]
fn an_upgraded_agent_writes_nothing_on_an_unchanged_repository() {
    let stored: BTreeMap<String, Stored> = serde_json::from_str(FIXTURE).unwrap();
    let computed = computed();
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("digests.json");
    let text = serde_json::to_string_pretty(&computed).unwrap() + "\n";
    std::fs::write(&fresh, text).unwrap();
    let unchanged: BTreeSet<&String> = stored
        .iter()
        .filter(|(key, stored)| {
            computed
                .get(*key)
                .is_some_and(|it| it.inputs == stored.inputs)
        })
        .map(|(key, _)| key)
        .collect();
    let renew = format!(
        "copy {} to tests/it/desired/fixtures/digests-0.1.0.json",
        fresh.display()
    );
    for key in &unchanged {
        let (before, now) = (&stored[*key], &computed[*key]);
        assert_eq!(
            before.digest, now.digest,
            "the digest of {key} is computed in another way: an upgraded agent would apply every such object of every cluster \
             anew. Give the new way a new prefix and accept the old one (model/digest.rs). Only if the object itself is meant to \
             be rendered in another way: {renew}"
        );
        assert_eq!(
            before.version_digest, now.version_digest,
            "the version digest of {key} is computed in another way: an upgraded agent would take every published version for \
             one that was changed, and hold it"
        );
    }
    assert!(
        unchanged.len() * 2 > stored.len() && !stored.is_empty(),
        "most files of the example repository have changed since the fixture was made, so that it proves little: {renew}"
    );
}

#[test]
fn a_set_of_deletions_keeps_its_name_and_its_fingerprints() {
    let kind = GroupKind::new("apps", "Deployment");
    let deletion = Deletion {
        key: ObjectKey::new(kind, Some("shop"), "web"),
        uid: "0f9d2b6e-7a52-4b7c-9a3c-5d2f6c1e8b40".to_owned(),
        resource_version: "not part of it".to_owned(),
    };
    let meaning = "approvals that are stored in Targets would not be found any more, and every approved deletion that is under \
                   way would wait again";
    assert_eq!(
        format!("{:016x}", deletion.fingerprint()),
        "9efb1b2ce8d99342",
        "{meaning}"
    );

    let base = Tree::default()
        .config_map("web", "one")
        .config_map("web", "two")
        .evaluate();
    let ended = Desired::withdrawn(base.revision.clone());
    let source = "modules".parse().unwrap();
    let plan = plan(PlanInput {
        source: &source,
        desired: &ended,
        observed: &observed_from(&base, &ended, &source),
        prune: &PruneSettings::default(),
        approval: None,
        record: Ok(()),
        failures: &BTreeMap::new(),
        only: None,
        takeover: &[],
        jobs: &Jobs::new(),
        templates: TemplateUse::NotAsked,
        migrations: MigrationInput {
            committed: &Committed::default(),
            states: None,
        },
    });
    let pending = plan.pending.unwrap();
    assert_eq!(pending.deletions.len(), 2);
    assert_eq!(
        pending.digest, "v1:aecf5a9810df4302f58c7e599d22d893",
        "{meaning}"
    );
}
