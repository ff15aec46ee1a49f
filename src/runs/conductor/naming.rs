//! What a run is of, and its name: the same work has the same name, whoever asks for it and however often.

use std::collections::BTreeMap;

use super::Whose;
use super::offers::Wanted;
use crate::model::api::{Run, RunSpec};
use crate::model::migration::{Hook, HookScope, RunPolicy};
use crate::model::{Digest, SourceName, names};
use crate::plan::hooks::DueMigration;

/// Characters of a migration's name in that of a run: with a source, a cluster and the hash it stays below 253.
const NAME_MAX: usize = 100;

/// Returns what a run of one migration is of.
pub(super) fn spec_of(whose: &Whose, wanted: &Wanted, migration: &DueMigration) -> RunSpec {
    let due = &wanted.due;
    let definition = &migration.migration;
    let component = due.component.as_ref();
    RunSpec {
        source: whose.source.to_string(),
        cluster: whose.cluster.clone(),
        cluster_uid: whose.cluster_uid.clone(),
        migration: definition.name.clone(),
        component: component.map(|it| it.name.clone()),
        phase: due.hook.phase,
        action: component.map(|it| it.action),
        from: component.and_then(|it| it.from.clone()),
        to: component.and_then(|it| it.to.clone()),
        release: wanted.release.clone(),
        revision: wanted.revision.clone(),
        author: wanted.author.clone(),
        place: definition.place.to_string(),
        deploy: due.hook.deploy.to_string(),
        definition_digest: definition.digest.to_string(),
        definition: definition.spec.clone(),
        desired: migration.desired.clone(),
        components: due.components.clone(),
        http_hosts: wanted.http_hosts.clone(),
    }
}

/// Returns the name of a run: `SOURCE.CLUSTER.MIGRATION-HASH`. What the hash is over is what makes it another run: for most migrations
/// the deploy, from where to where; for one that runs once in the life of a cluster, the cluster alone.
///
/// `again` counts runs of the same work that another one has taken the place of, or that had succeeded before the state of the cluster
/// made it necessary once more.
pub(super) fn run_name(spec: &RunSpec, previous: Option<&Digest>, again: u32) -> String {
    let mut parts = vec![spec.migration.clone(), spec.cluster_uid.clone()];
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    match spec.definition.policy.run {
        RunPolicy::OncePerCluster => {}
        RunPolicy::OncePerHop => {
            parts.extend([text(&spec.component), text(&spec.from), text(&spec.to)]);
        }
        RunPolicy::WhenNeeded | RunPolicy::Always => {
            let previous = previous.map(ToString::to_string).unwrap_or_default();
            parts.extend([
                text(&spec.component),
                spec.phase.as_str().to_owned(),
                spec.deploy.clone(),
                spec.definition_digest.clone(),
                previous,
            ]);
        }
    }
    parts.push(again.to_string());
    let digest = Digest::of_parts(parts.iter().map(String::as_str));
    let hash = &digest.as_str()["v1:".len()..][..10];
    let migration: String = spec.migration.chars().take(NAME_MAX).collect();
    format!("{}.{}.{migration}-{hash}", spec.source, spec.cluster)
}

/// Returns the labels of a run.
pub fn labels_of(spec: &RunSpec) -> BTreeMap<String, String> {
    // A label takes 63 characters; whose name is longer is found by the field.
    let short = |text: &str| text.chars().take(63).collect::<String>();
    let short = |text: &str| short(text).trim_end_matches(['-', '.', '_']).to_owned();
    [
        (names::LABEL_SOURCE, short(&spec.source)),
        (names::LABEL_CLUSTER, short(&spec.cluster)),
        (names::LABEL_MIGRATION, short(&spec.migration)),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// Returns the label selector of the runs of a source on a cluster.
pub fn run_selector(source: &SourceName, cluster: &str) -> String {
    format!(
        "{}={source},{}={cluster}",
        names::LABEL_SOURCE,
        names::LABEL_CLUSTER
    )
}

/// Makes a run that nothing was done for.
pub(super) fn new_run(whose: &Whose, name: &str, spec: RunSpec) -> Run {
    let labels = labels_of(&spec);
    let mut run = Run::new(name, spec);
    run.metadata.namespace = Some(whose.namespace.clone());
    run.metadata.labels = Some(labels);
    run
}

/// Returns the hook that a run belongs to; none where its component has a name that is none.
pub fn hook_of(run: &Run) -> Option<Hook> {
    let scope = match &run.spec.component {
        Some(name) => HookScope::Component(name.parse().ok()?),
        None => HookScope::Global,
    };
    Some(Hook {
        scope,
        phase: run.spec.phase,
        deploy: Digest::from_text(run.spec.deploy.clone()),
    })
}
