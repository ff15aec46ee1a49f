//! The record of a target is written by one at a time: who was not there meanwhile notices, and takes what is stored.

use std::collections::BTreeSet;

use fairway::agent::Record;
use fairway::cluster::ClusterError;
use fairway::model::{GroupKind, SourceName};
use fairway::plan::Jobs;

use crate::support::world::World;

fn kinds(names: &[&str]) -> BTreeSet<GroupKind> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_write_over_another_one_is_refused_and_the_other_one_is_kept() {
    let world = World::new().await;
    let cluster = world.plane.cluster().await;
    let source = SourceName::new(&world.name).unwrap();
    let mut early = Record::load(&cluster, &world.name, &source).await.unwrap();
    let mut late = Record::load(&cluster, &world.name, &source).await.unwrap();
    early.establish(true, false).await.unwrap();
    // It did not know that the record was made meanwhile.
    let error = late
        .begin(&kinds(&["Secret"]), &Jobs::new())
        .await
        .unwrap_err();
    assert!(matches!(error, ClusterError::Conflict { .. }), "{error}");
    assert_eq!(late.trusted(), Ok(()), "it has what is stored");

    early
        .begin(&kinds(&["ConfigMap"]), &Jobs::new())
        .await
        .unwrap();
    let error = late
        .begin(&kinds(&["Secret"]), &Jobs::new())
        .await
        .unwrap_err();
    assert!(matches!(error, ClusterError::Conflict { .. }), "{error}");
    assert_eq!(late.kinds(), kinds(&["ConfigMap"]));
    late.begin(&kinds(&["Secret"]), &Jobs::new()).await.unwrap();
    let stored = world.target().await.status.unwrap();
    assert_eq!(stored.kinds, ["ConfigMap", "Secret"]);
    // What is stored already is no difference, whoever has written it.
    early
        .begin(&kinds(&["Secret"]), &Jobs::new())
        .await
        .unwrap();
    assert_eq!(early.kinds(), kinds(&["ConfigMap", "Secret"]));
}
