//! Every refusal, with its place and way out.

mod between;
mod definition;
mod lifecycle;
mod steps;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::desired::{Cache, Desired, EvaluateOptions, evaluate};
use crate::model::snapshot::CommitInfo;
use crate::model::{
    BlobError, BlobId, BlobStore, Code, Diagnostic, EntryKind, FileEntry, Revision, Snapshot,
};

/// Files in memory; a blob's id is its number.
struct Memory(HashMap<BlobId, String>);

impl BlobStore for Memory {
    fn read(&self, blob: BlobId, _: u64) -> Result<Vec<u8>, BlobError> {
        Ok(self.0[&blob].clone().into_bytes())
    }
}

fn read(files: &[(&str, &str)]) -> Desired {
    let mut entries = BTreeMap::new();
    let mut contents = HashMap::new();
    for (number, (path, text)) in files.iter().enumerate() {
        let blob = BlobId([u8::try_from(number).unwrap(); 20]);
        let kind = EntryKind::File;
        entries.insert((*path).to_owned(), FileEntry { kind, blob });
        contents.insert(blob, (*text).to_owned());
    }
    let snapshot = Snapshot {
        revision: Revision::commit("main", "0123456789012345678901234567890123456789"),
        commit: CommitInfo::default(),
        files: Arc::new(entries),
        blobs: Arc::new(Memory(contents)),
    };
    let options = EvaluateOptions {
        source: "modules".parse().unwrap(),
        landscape: None,
        catalog_namespace: "kcp-system".to_owned(),
    };
    evaluate(&snapshot, &options, &mut Cache::new())
}

const SETTINGS: &str = "\
apiVersion: fairway.dev/v1alpha1
kind: Repository
release: 1.12.0
httpHosts: [api.example.com]
";

const COMPONENT: &str = "\
apiVersion: fairway.dev/v1alpha1
kind: Component
version: 1.3.0
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {level: info}
";

const GROW: &str = "components/shop/migrations/grow.yaml";

/// A definition without findings, that each case breaks in one place.
const GOOD: &str = "\
apiVersion: fairway.dev/v1alpha1
kind: Migration
metadata:
  name: grow
spec:
  owner: team
  bind:
    phase: pre
    on: [install, upgrade]
  lifecycle:
    introducedIn: 1.2.0
    removeIn: 1.5.0
  params:
    size: 30Gi
  lookups:
    claim:
      apiVersion: v1
      kind: PersistentVolumeClaim
      namespace: shop
      name: data
    pods:
      apiVersion: v1
      kind: Pod
      namespace: shop
      list: true
  guard:
    needed: objects.claim != null && objects.claim.spec.size != params.size
  steps:
    - id: grow
      patch:
        ref: claim
        body: {spec: {size: \"${params.size}\"}}
      outputs:
        before: objects.claim.spec.size
    - id: tell
      when: steps[\"grow\"].outputs.before != \"\"
      http:
        method: POST
        url: https://api.example.com/grown
        idempotencyKey: ${run.id}
  tests:
    - name: nothing there
      given: {claim: null, pods: []}
      expect: {decision: NotNeeded, steps: []}
";

fn repository(migration: &str) -> Desired {
    read(&[
        ("fairway.yaml", SETTINGS),
        ("components/shop/all.yaml", COMPONENT),
        (GROW, migration),
    ])
}

#[test]
fn a_good_definition_has_no_findings() {
    let desired = repository(GOOD);
    assert_eq!(desired.diagnostics, []);
    let [migration] = desired.migrations.as_slice() else {
        panic!("one migration: {:?}", desired.held_migrations);
    };
    assert_eq!(migration.name, "grow");
    assert_eq!(migration.components[0].to_string(), "components/shop");
    assert_eq!(migration.place.to_string(), format!("{GROW}:1:1"));
    assert_eq!(migration.spec.steps.len(), 2);
    assert!(desired.unread.is_empty() && desired.held_migrations.is_empty());
    // It is no object: the one ConfigMap is all that is applied.
    assert_eq!(desired.objects().count(), 1);
}

#[test]
fn a_digest_is_of_what_is_said_and_not_of_how() {
    let digest = |text: &str| repository(text).migrations[0].digest.clone();
    assert_eq!(digest(GOOD), digest(&format!("# A comment.\n{GOOD}")));
    assert_ne!(digest(GOOD), digest(&GOOD.replace("30Gi", "40Gi")));
    assert_ne!(
        digest(GOOD),
        digest(&GOOD.replace("nothing there", "nothing"))
    );
}

fn assert_found(all: &[Diagnostic], code: Code, place: &str, message: &str, help: &str) {
    let [found] = all else {
        panic!("one finding: {all:#?}");
    };
    assert_eq!(
        (found.code, found.place.to_string().as_str()),
        (code, place),
        "{found:#?}"
    );
    assert!(found.message.contains(message), "{found:#?}");
    let given = found.help.as_deref().unwrap_or_default();
    assert!(given.contains(help), "{found:#?}");
}
