//! `fairway uninstall`: takes away what `fairway install` has put there, and nothing that a source has applied.
//!
//! The order is what keeps things from hanging and from being done behind anybody's back: the agent goes first, then its
//! rights, so that nothing of it can act any more wherever it runs; then our finalizers; then the definitions, and with them
//! the ReleaseSources and Targets.

use std::io::{IsTerminal as _, Write};
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::install::none_if_unserved;
use super::manifests::{Manifest, Manifests, NAME, short_name};
use super::resources::{Home, MANAGER};
use super::runs::{Known, Paste, waiting_runs};
use super::waiting::waiting;
use crate::cluster::{ClusterError, Deleted, Patch};
use crate::model::api::{DeletionPolicy, ReleaseSource, Target};
use crate::model::{ObjectKey, limits, names};

/// How often it is looked whether something is gone.
const LOOK_INTERVAL: Duration = Duration::from_millis(300);
/// How long pods and definitions may take to go: a pod has 30 seconds to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Attempts to delete or change an object that others write at the same time.
const ATTEMPTS_MAX: usize = 5;

/// Arguments of `fairway uninstall`.
#[derive(Debug, Args)]
pub struct UninstallArguments {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Leave on the cluster what sources with `deletionPolicy: Delete` have applied
    #[arg(long)]
    orphan: bool,
}

pub(super) fn run(arguments: &UninstallArguments, context: &mut Context) -> Result<Exit, Failure> {
    runtime()?.block_on(uninstall(arguments, context))
}

async fn uninstall(arguments: &UninstallArguments, context: &mut Context) -> Result<Exit, Failure> {
    let home = Home::connect(context).await?;
    let sources = all_sources(&home).await?;
    refuse_elsewhere(&home, &sources)?;
    if !arguments.orphan {
        refuse_unfinished(&home, &sources)?;
    }
    say_what_happens(&home, &sources, context).await?;
    if !arguments.yes && !confirmed(&home, context)? {
        return Err(Failure::Misuse("nothing was changed".to_owned()));
    }
    let manifests = Manifests::of(&home.namespace)?;
    delete(&home, &manifests.deployment, context).await?;
    wait_for_pods(&home, context).await?;
    // Bindings before roles: the last one in the files binds the first.
    delete(&home, &manifests.service, context).await?;
    for manifest in manifests.rights.iter().rev() {
        delete(&home, manifest, context).await?;
    }
    for source in &sources {
        drop_finalizer(&home, source, context).await?;
    }
    for definition in &manifests.definitions {
        delete(&home, definition, context).await?;
        wait_until_gone(&home, &definition.key, context).await?;
    }
    writeln!(
        context.err,
        "the namespace {0} stays, with the Secrets in it: kubectl delete namespace {0}",
        home.namespace
    )?;
    Ok(Exit::Ok)
}

/// Reads the sources of all namespaces: the definitions that are deleted are everybody's.
async fn all_sources(home: &Home) -> Result<Vec<ReleaseSource>, Failure> {
    let api: Api<ReleaseSource> = Api::all(home.cluster.client());
    let all = ListParams::default();
    match timeout(limits::LIST_DEADLINE, api.list(&all)).await {
        Ok(Ok(list)) => Ok(list.items),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(Vec::new()),
        Ok(Err(error)) => Err(Failure::of(error)),
        Err(error) => Err(Failure::of(error)),
    }
}

fn refuse_elsewhere(home: &Home, sources: &[ReleaseSource]) -> Result<(), Failure> {
    let elsewhere = sources
        .iter()
        .find(|source| source.namespace().as_deref() != Some(&home.namespace));
    match elsewhere {
        None => Ok(()),
        Some(other) => Err(Failure::Misuse(format!(
            "there is a ReleaseSource `{}` in namespace {}, which would go with its definition; delete it first, or say \
             --namespace",
            other.name_any(),
            other.namespace().unwrap_or_default()
        ))),
    }
}

/// Refuses while a source was meant to take its objects along, which nobody does any more once the agent is gone.
fn refuse_unfinished(home: &Home, sources: &[ReleaseSource]) -> Result<(), Failure> {
    let unfinished = sources.iter().find(|source| {
        source.spec.deletion_policy == DeletionPolicy::Delete || has_finalizer(source)
    });
    match unfinished {
        None => Ok(()),
        Some(source) => {
            let name = source.name_any();
            Err(Failure::Misuse(format!(
                "{name} has `deletionPolicy: Delete`, and without an agent nobody deletes what it has applied. Either delete it \
                 first (kubectl -n {} delete releasesource {name}, then fairway approve prune {name}), or say --orphan to leave \
                 its objects where they are",
                home.namespace
            )))
        }
    }
}

async fn say_what_happens(
    home: &Home,
    sources: &[ReleaseSource],
    context: &mut Context,
) -> Result<(), Failure> {
    let targets = none_if_unserved(
        home.cluster
            .list::<Target>(&home.namespace, "")
            .await
            .map(Some),
    )?
    .unwrap_or_default();
    let err = &mut context.err;
    writeln!(
        err,
        "This deletes the agent in {}, its roles, and the definitions of ReleaseSource, Target and Run.",
        home.namespace
    )?;
    for source in sources {
        let name = source.name_any();
        let prefix = format!("{name}.");
        let objects: i64 = targets
            .iter()
            .filter(|target| target.name_any().starts_with(&prefix))
            .filter_map(|target| target.status.as_ref()?.objects)
            .sum();
        writeln!(
            err,
            "  The source {name} goes; its {objects} objects stay, with the label {}={name}.",
            names::LABEL_SOURCE
        )?;
    }
    let known = Known::read(home).await?;
    if !known.runs.is_empty() {
        writeln!(
            err,
            "  The records of {} runs of migrations go, and with them what tells that a migration ran that must run only once.",
            known.runs.len()
        )?;
    }
    let mut waits = waiting(sources, &targets, home.cluster.uid());
    waits.extend(waiting_runs(&known, &Paste::of(context)));
    let err = &mut context.err;
    for one in waits {
        writeln!(
            err,
            "  This is then decided by nobody: {} of {}: {}",
            one.kind, one.source, one.what
        )?;
    }
    Ok(())
}

fn confirmed(home: &Home, context: &mut Context) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Misuse(
            "there is no terminal to ask on; say --yes".to_owned(),
        ));
    }
    let cluster = home.cluster.uid();
    write!(
        context.err,
        "Uninstall Fairway from cluster {cluster}? [y/N] "
    )?;
    context.err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Deletes one object, as it is at this moment.
async fn delete(home: &Home, manifest: &Manifest, context: &mut Context) -> Result<(), Failure> {
    let key = &manifest.key;
    for _ in 0..ATTEMPTS_MAX {
        let Some(live) = none_if_unserved(home.cluster.read_whole(key, None).await)? else {
            return Ok(());
        };
        let text = |name: &str| {
            live["metadata"][name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let deleted = home
            .cluster
            .delete(key, &text("uid"), &text("resourceVersion"))
            .await
            .map_err(Failure::of)?;
        if deleted != Deleted::Replaced {
            writeln!(context.out, "{} deleted", short_name(key))?;
            return Ok(());
        }
    }
    Err(Failure::Misuse(format!(
        "somebody keeps writing {}; stop them, and call this again",
        short_name(key)
    )))
}

/// Waits until no pod of the agent is left.
async fn wait_for_pods(home: &Home, context: &mut Context) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let labels = format!("app.kubernetes.io/name={NAME}");
    let mut told = false;
    loop {
        let pods: Vec<Pod> = home
            .cluster
            .list(&home.namespace, &labels)
            .await
            .map_err(Failure::of)?;
        let Some(pod) = pods.first() else {
            return Ok(());
        };
        let pod = pod.name_any();
        if Instant::now() >= deadline {
            return Err(Failure::Misuse(format!(
                "the pod {pod} does not end, so that the agent may still act; see why (kubectl -n {} describe pod {pod}), and call \
                 this again",
                home.namespace
            )));
        }
        if !told {
            writeln!(context.err, "waiting for pod/{pod} to end")?;
            told = true;
        }
        sleep(LOOK_INTERVAL).await;
    }
}

async fn wait_until_gone(
    home: &Home,
    key: &ObjectKey,
    context: &mut Context,
) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    let mut told = false;
    while none_if_unserved(home.cluster.read_whole(key, None).await)?.is_some() {
        if Instant::now() >= deadline {
            return Err(Failure::Misuse(format!(
                "{} does not go: something else's finalizer keeps one of its objects; kubectl get {} --all-namespaces --output yaml \
                 shows which",
                short_name(key),
                key.name
            )));
        }
        if !told {
            writeln!(context.err, "waiting for {} to go", short_name(key))?;
            told = true;
        }
        sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

/// Takes our finalizer off, and nobody else's. The agent has neither a process nor rights any more that would put it back.
async fn drop_finalizer(
    home: &Home,
    source: &ReleaseSource,
    context: &mut Context,
) -> Result<(), Failure> {
    let name = source.name_any();
    for _ in 0..ATTEMPTS_MAX {
        let stored = home
            .cluster
            .get::<ReleaseSource>(&home.namespace, &name)
            .await;
        let Some(stored) = none_if_unserved(stored)? else {
            return Ok(());
        };
        if !has_finalizer(&stored) {
            return Ok(());
        }
        let mut finalizers = stored.finalizers().to_vec();
        finalizers.retain(|one| one != names::FINALIZER_PRUNE);
        let version = stored.resource_version();
        let body = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        let patch = (Patch::Merge, &body);
        let patched = home
            .cluster
            .patch::<ReleaseSource>(&home.namespace, &name, None, MANAGER, patch)
            .await;
        match patched {
            Ok(_) | Err(ClusterError::NotFound { .. }) => {
                writeln!(
                    context.out,
                    "releasesource/{name} released; its objects stay"
                )?;
                return Ok(());
            }
            Err(ClusterError::Conflict { .. }) => {}
            Err(error) => return Err(Failure::of(error)),
        }
    }
    Err(Failure::Misuse(format!(
        "somebody keeps writing the ReleaseSource {name}; stop them, and call this again"
    )))
}

fn has_finalizer(source: &ReleaseSource) -> bool {
    let finalizers = source.finalizers();
    finalizers.iter().any(|one| one == names::FINALIZER_PRUNE)
}
