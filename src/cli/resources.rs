//! What commands that look at a running agent share: its namespace, its resources, and waiting for them.

use std::time::Duration;

use kube::Api;
use kube::runtime::wait::{Condition, await_condition};
use serde_json::{Value, json};

use super::connection::{connect, home_namespace};
use super::context::Context;
use super::failure::Failure;
use super::installed::failed;
use crate::cluster::{Cluster, Patch};
use crate::model::api::{
    ConditionStatus, ConditionType, HOME, ReleaseSource, ReleaseSourceSpec, Target, find,
    target_name,
};
use crate::model::{SourceName, names};
use crate::plan::PruneSettings;

/// Field manager of what a person does with this command line.
pub(super) const MANAGER: &str = "fairway-cli";

/// A connection to the cluster where the agent runs, and the namespace of its resources.
pub(super) struct Home {
    pub(super) cluster: Cluster,
    pub(super) namespace: String,
}

// === impl Home ===

impl Home {
    /// Connects as the arguments say.
    pub(super) async fn connect(context: &Context) -> Result<Self, Failure> {
        let (cluster, of_context) = connect(&context.cluster).await?;
        let namespace = home_namespace(&context.cluster, &of_context);
        Ok(Self { cluster, namespace })
    }

    /// Reads all sources, sorted by name.
    pub(super) async fn sources(&self) -> Result<Vec<ReleaseSource>, Failure> {
        let mut sources: Vec<ReleaseSource> = self
            .cluster
            .list(&self.namespace, "")
            .await
            .map_err(failed)?;
        sources.iter_mut().for_each(without_managers);
        sources.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        Ok(sources)
    }

    /// Reads all targets, sorted by name.
    pub(super) async fn targets(&self) -> Result<Vec<Target>, Failure> {
        let mut targets: Vec<Target> = self
            .cluster
            .list(&self.namespace, "")
            .await
            .map_err(failed)?;
        targets.iter_mut().for_each(without_managers);
        targets.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        Ok(targets)
    }

    /// Reads one source; one that is not there is an error that names those that are.
    pub(super) async fn source(&self, name: &SourceName) -> Result<ReleaseSource, Failure> {
        let found: Option<ReleaseSource> = self
            .cluster
            .get(&self.namespace, name.as_str())
            .await
            .map_err(failed)?;
        if let Some(mut source) = found {
            without_managers(&mut source);
            return Ok(source);
        }
        let known: Vec<String> = self
            .sources()
            .await?
            .into_iter()
            .filter_map(|one| one.metadata.name)
            .collect();
        let target = self.target_of(name, HOME).await?;
        let hint = if target.is_some() {
            format!("what fairway sync has applied without one: fairway describe target {name}")
        } else if known.is_empty() {
            "there is none; see docs/install.md for how to declare one".to_owned()
        } else {
            format!("there are: {}", known.join(", "))
        };
        Err(Failure::Misuse(format!(
            "there is no ReleaseSource `{name}` in namespace {}; {hint}",
            self.namespace
        )))
    }

    /// Reads the records of a source, home's and those of runtimes, sorted by name.
    pub(super) async fn targets_of(&self, source: &SourceName) -> Result<Vec<Target>, Failure> {
        let mut targets = self.targets().await?;
        targets.retain(|target| {
            let name = target
                .metadata
                .name
                .as_deref()
                .and_then(|name| name.split_once('.'));
            name.is_some_and(|(of, _)| of == source.as_str())
        });
        Ok(targets)
    }

    /// Reads the record of a source on a cluster: home, or a runtime by its name.
    pub(super) async fn target_of(
        &self,
        source: &SourceName,
        cluster: &str,
    ) -> Result<Option<Target>, Failure> {
        let mut found = self
            .cluster
            .get(&self.namespace, &target_name(source, cluster))
            .await
            .map_err(failed)?;
        if let Some(target) = &mut found {
            without_managers(target);
        }
        Ok(found)
    }

    /// Changes a source as a person.
    pub(super) async fn patch(
        &self,
        name: &SourceName,
        patch: &Value,
    ) -> Result<ReleaseSource, Failure> {
        self.cluster
            .patch(
                &self.namespace,
                name.as_str(),
                None,
                MANAGER,
                (Patch::Merge, patch),
            )
            .await
            .map_err(Failure::of)
    }

    /// Asks the agent for a pass now; returns the value that the status will show once it is done.
    pub(super) async fn request_pass(&self, name: &SourceName) -> Result<String, Failure> {
        let requested_at = crate::agent::clock::now().to_string();
        let annotations = json!({names::ANNOTATION_REQUESTED_AT: requested_at});
        self.patch(name, &json!({"metadata": {"annotations": annotations}}))
            .await?;
        Ok(requested_at)
    }

    /// Waits for a condition of a source.
    ///
    /// # Errors
    ///
    /// When the time is over; the message is then the state that it was in.
    pub(super) async fn await_source(
        &self,
        name: &SourceName,
        condition: impl Condition<ReleaseSource>,
        (what, timeout): (&str, Duration),
    ) -> Result<ReleaseSource, Failure> {
        let api: Api<ReleaseSource> = Api::namespaced(self.cluster.client(), &self.namespace);
        let waiting = await_condition(api, name.as_str(), condition);
        match tokio::time::timeout(timeout, waiting).await {
            Ok(Ok(Some(source))) => Ok(source),
            Ok(Ok(None)) => Err(Failure::Misuse(format!(
                "the ReleaseSource `{name}` was deleted"
            ))),
            Ok(Err(error)) => Err(Failure::of(error)),
            Err(_) => {
                let state = self.source(name).await?;
                Err(Failure::Misuse(format!(
                    "{what} has not happened within {timeout:?}; {}",
                    readiness(&state)
                )))
            }
        }
    }
}

/// Who wrote which field is left out of what people are shown, as kubectl leaves it out.
fn without_managers(object: &mut impl kube::ResourceExt) {
    object.managed_fields_mut().clear();
}

/// How the agent treats a source, for commands that plan or act beside it: as its ReleaseSource says, or as one would that says
/// nothing. A plan of the command line must be the agent's.
pub(super) fn treatment(source: Option<&ReleaseSource>) -> (PruneSettings, Vec<String>) {
    match source {
        Some(source) => (
            PruneSettings::from(&source.spec.prune),
            source.spec.takeover.clone(),
        ),
        None => (
            PruneSettings::default(),
            ReleaseSourceSpec::default_takeover(),
        ),
    }
}

/// Says in one line how a source is.
pub(super) fn readiness(source: &ReleaseSource) -> String {
    let name = source.metadata.name.as_deref().unwrap_or_default();
    if source.spec.suspend {
        return format!("{name} is suspended; fairway resume {name}");
    }
    let conditions = source
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    match find(conditions.unwrap_or_default(), ConditionType::Ready) {
        Some(ready) => format!("{name}: {} ({})", ready.message, ready.reason),
        None => format!("{name}: no agent has looked at it yet; is one running in its namespace?"),
    }
}

/// Returns whether a source is ready.
pub(super) fn is_ready(source: &ReleaseSource) -> bool {
    let conditions = source
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    find(conditions.unwrap_or_default(), ConditionType::Ready)
        .is_some_and(|ready| ready.status == ConditionStatus::True)
}

/// Reads a duration as `90s`, `5m` or `1h`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from(parsed).map_err(|_| "a duration cannot be negative".to_owned())
}
