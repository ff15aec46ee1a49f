//! How an object is, by what its kind says about itself, after the rules of kstatus.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Value;

use super::Health;
use crate::model::GroupKind;

/// The parts of an object that are looked at; what is only known by its metadata has neither spec nor status.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Item {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Value,
    #[serde(default)]
    pub(super) status: Value,
}

/// Returns whether the health of a kind can only be told from its whole object. Of all others metadata is enough; the
/// contents of a Secret or a ConfigMap are never asked for.
pub(super) fn needs_whole_object(kind: &GroupKind) -> bool {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", name) => matches!(name, "PersistentVolumeClaim" | "Service"),
        ("apps", name) => name != "ControllerRevision",
        ("batch" | "apiextensions.k8s.io" | "apiregistration.k8s.io", _) => true,
        ("autoscaling" | "policy" | "extensions", _)
        // It has no status, and its spec holds a whole manifest.
        | ("operator.kyma-project.io", "ModuleTemplate") => false,
        (group, _) => !group.ends_with(".k8s.io"),
    }
}

/// Returns how an object is.
pub(super) fn health(kind: &GroupKind, item: &Item) -> Health {
    if item.metadata.deletion_timestamp.is_some() {
        return Health::Terminating;
    }
    let found = match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => controlled(item, deployment),
        ("apps", "StatefulSet") => controlled(item, stateful_set),
        ("apps", "DaemonSet") => controlled(item, daemon_set),
        ("apps", "ReplicaSet") => controlled(item, replica_set),
        ("batch", "Job") => job(item),
        ("", "PersistentVolumeClaim") => volume_claim(item),
        ("", "Service") => service(item),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(item),
        ("apiregistration.k8s.io", "APIService") => required(item, "Available"),
        (group, _) => generic(item).and_then(|()| kyma_state(group, item)),
    };
    found.err().unwrap_or(Health::Current)
}

/// `Ok` when nothing speaks against "current".
type Found = Result<(), Health>;

fn in_progress(message: impl Into<String>) -> Found {
    Err(Health::InProgress(message.into()))
}

fn failed(message: impl Into<String>) -> Found {
    Err(Health::Failed(message.into()))
}

/// What every kind may say by convention.
fn generic(item: &Item) -> Found {
    observed(item, false)?;
    if let Some(stalled) = item
        .condition("Stalled")
        .filter(|found| found.status == "True")
    {
        return failed(stalled.text());
    }
    if let Some(reconciling) = item
        .condition("Reconciling")
        .filter(|found| found.status == "True")
    {
        return in_progress(reconciling.text());
    }
    match item.condition("Ready") {
        Some(ready) if ready.status != "True" => in_progress(ready.text()),
        _ => Ok(()),
    }
}

/// Modules of Kyma say how they are in one word.
fn kyma_state(group: &str, item: &Item) -> Found {
    if !group.ends_with("kyma-project.io") {
        return Ok(());
    }
    match item.status["state"].as_str() {
        Some("Error") => failed("its state is Error"),
        Some(state @ ("Processing" | "Deleting")) => in_progress(format!("its state is {state}")),
        _ => Ok(()),
    }
}

/// A status that was written for an older generation says nothing about this one.
fn observed(item: &Item, required: bool) -> Found {
    let seen = item.status["observedGeneration"].as_i64();
    let generation = item.metadata.generation.unwrap_or_default();
    match seen {
        Some(seen) if seen < generation => in_progress(format!(
            "generation {generation} has not been seen by its controller"
        )),
        None if required => in_progress("its controller has not seen it"),
        _ => Ok(()),
    }
}

/// A kind that is nothing until its controller has acted.
fn controlled(item: &Item, rule: fn(&Item) -> Found) -> Found {
    observed(item, true)?;
    rule(item)
}

fn deployment(item: &Item) -> Found {
    if let Some(progressing) = item.condition("Progressing")
        && progressing.reason == "ProgressDeadlineExceeded"
    {
        return failed(progressing.text());
    }
    let wanted = item.replicas();
    item.at_least("updatedReplicas", wanted, "updated")?;
    let present = item.count("replicas");
    if present > wanted {
        return in_progress(format!("{} old replicas remain", present - wanted));
    }
    item.at_least("availableReplicas", wanted, "available")?;
    match item.condition("Available") {
        Some(available) if available.status != "True" => in_progress(available.text()),
        _ => Ok(()),
    }
}

fn stateful_set(item: &Item) -> Found {
    let strategy = &item.spec["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return Ok(());
    }
    let wanted = item.replicas();
    item.at_least("readyReplicas", wanted, "ready")?;
    let partition = strategy["rollingUpdate"]["partition"].as_i64().unwrap_or(0);
    if partition > 0 {
        return item.at_least("updatedReplicas", wanted - partition, "updated");
    }
    let (current, update) = (
        &item.status["currentRevision"],
        &item.status["updateRevision"],
    );
    if current != update {
        return in_progress(format!(
            "{} of {wanted} replicas updated",
            item.count("updatedReplicas")
        ));
    }
    Ok(())
}

fn daemon_set(item: &Item) -> Found {
    let wanted = item.count("desiredNumberScheduled");
    if item.spec["updateStrategy"]["type"] != "OnDelete" {
        item.at_least("updatedNumberScheduled", wanted, "updated")?;
    }
    item.at_least("numberAvailable", wanted, "available")
}

fn replica_set(item: &Item) -> Found {
    if let Some(failure) = item
        .condition("ReplicaFailure")
        .filter(|found| found.status == "True")
    {
        return in_progress(failure.text());
    }
    item.at_least("availableReplicas", item.replicas(), "available")
}

fn job(item: &Item) -> Found {
    let is = |name| item.condition(name).filter(|found| found.status == "True");
    if let Some(condition) = is("Failed") {
        return failed(condition.text());
    }
    if is("Complete").is_some() || item.spec["suspend"] == true {
        return Ok(());
    }
    in_progress("it has not completed")
}

fn volume_claim(item: &Item) -> Found {
    match item.status["phase"].as_str() {
        Some("Bound") => Ok(()),
        Some("Lost") => failed("its volume is lost"),
        _ => in_progress("it is not bound to a volume"),
    }
}

fn service(item: &Item) -> Found {
    let balanced = item.spec["type"] == "LoadBalancer";
    let addresses = item.status["loadBalancer"]["ingress"].as_array();
    if balanced && addresses.is_none_or(Vec::is_empty) {
        return in_progress("its load balancer has no address");
    }
    Ok(())
}

fn definition(item: &Item) -> Found {
    match item.condition("NamesAccepted") {
        Some(names) if names.status == "False" => failed(names.text()),
        _ => required(item, "Established"),
    }
}

fn required(item: &Item, name: &str) -> Found {
    match item.condition(name) {
        Some(condition) if condition.status == "True" => Ok(()),
        Some(condition) => in_progress(condition.text()),
        None => in_progress(format!("its condition {name} is not set")),
    }
}

struct Condition<'a> {
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Condition<'_> {
    fn text(&self) -> String {
        match (self.reason, self.message) {
            ("", message) => message.to_owned(),
            (reason, "") => reason.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

impl Item {
    fn condition(&self, name: &str) -> Option<Condition<'_>> {
        let conditions = self.status["conditions"].as_array()?;
        let found = conditions
            .iter()
            .find(|condition| condition["type"] == name)?;
        let text = |field: &str| found[field].as_str().unwrap_or_default();
        Some(Condition {
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
        })
    }

    fn count(&self, field: &str) -> i64 {
        self.status[field].as_i64().unwrap_or(0)
    }

    fn replicas(&self) -> i64 {
        self.spec["replicas"].as_i64().unwrap_or(1)
    }

    fn at_least(&self, field: &str, wanted: i64, word: &str) -> Found {
        match self.count(field) {
            count if count < wanted => in_progress(format!("{count} of {wanted} replicas {word}")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
