//! `fairway install`: the shipped manifests, applied on the server's side.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::arguments::OutputFormat;
use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::manifests::{Manifest, Manifests, short_name};
use super::resources::{Home, MANAGER, parse_duration};
use crate::cluster::{ApplyManner, Cluster, ClusterError};
use crate::model::ObjectKey;

/// How often it is looked whether what is waited for is there.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Arguments of `fairway install`.
#[derive(Debug, Args)]
pub struct InstallArguments {
    /// The image of the agent; otherwise the one that is installed already
    #[arg(long)]
    image: Option<String>,
    /// How many agents
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=16))]
    replicas: Option<u32>,
    /// Install ModuleReleaseMeta and ModuleTemplate as well, where nobody else has
    #[arg(long)]
    kyma_crds: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Whether to wait until the agent is available
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_parser = parse_duration, default_value = "2m")]
    timeout: Duration,
}

/// What became of one object.
#[derive(Debug, Serialize)]
struct Line {
    object: String,
    result: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Change {
    Created,
    Configured,
    Unchanged,
    /// It differs, and that is the operator's own.
    Kept,
}

pub(super) fn run(arguments: &InstallArguments, context: &mut Context) -> Result<Exit, Failure> {
    runtime()?.block_on(install(arguments, context))
}

async fn install(arguments: &InstallArguments, context: &mut Context) -> Result<Exit, Failure> {
    let home = Home::connect(context).await?;
    let cluster = &home.cluster;
    let mut manifests = Manifests::of(&home.namespace)?;
    set_image(cluster, &mut manifests.deployment, arguments).await?;
    let deadline = Instant::now() + arguments.timeout;
    let mut lines = Vec::new();
    let mut apply = async |manifest: &Manifest, context: &mut Context| {
        let line = apply_one(cluster, manifest, arguments.dry_run).await?;
        if context.output == OutputFormat::Text {
            let dry_run = if arguments.dry_run { " (dry run)" } else { "" };
            writeln!(
                context.out,
                "{} {}{dry_run}",
                line.object,
                line.result.word()
            )?;
            context.out.flush()?;
        }
        lines.push(line);
        Ok::<_, Failure>(())
    };
    apply(&manifests.namespace, context).await?;
    for definition in &manifests.definitions {
        apply(definition, context).await?;
    }
    let mut without_kyma = false;
    for definition in &manifests.kyma_definitions {
        // Whoever has installed these keeps them, in their version.
        if cluster
            .read_whole(&definition.key, None)
            .await
            .map_err(Failure::of)?
            .is_some()
        {
            continue;
        }
        if arguments.kyma_crds {
            apply(definition, context).await?;
        } else {
            without_kyma = true;
        }
    }
    for manifest in manifests
        .rights
        .iter()
        .chain([&manifests.deployment, &manifests.service])
    {
        apply(manifest, context).await?;
    }
    if context.output != OutputFormat::Text {
        context.write_value(&lines)?;
    }
    if arguments.dry_run {
        return Ok(Exit::Ok);
    }
    if arguments.wait {
        for definition in &manifests.definitions {
            wait_for(cluster, &definition.key, is_served, deadline, context).await?;
        }
        let deployment = &manifests.deployment.key;
        wait_for(cluster, deployment, is_available, deadline, context).await?;
    }
    say_what_is_next(&home, without_kyma, context).await?;
    Ok(Exit::Ok)
}

/// Puts image and number into the Deployment; without an image there is nothing that a cluster could run.
async fn set_image(
    cluster: &Cluster,
    deployment: &mut Manifest,
    arguments: &InstallArguments,
) -> Result<(), Failure> {
    let image = if let Some(image) = &arguments.image {
        Some(image.clone())
    } else {
        let live = cluster.read_whole(&deployment.key, None).await;
        let live = live.map_err(Failure::of)?;
        live.and_then(|live| container(&live)?["image"].as_str().map(str::to_owned))
    };
    let Some(image) = image else {
        return Err(Failure::Misuse(
            "no agent is installed yet, so that its image must be named: --image registry.example.com/fairway:VERSION; \
             docs/install.md says how to build one"
                .to_owned(),
        ));
    };
    deployment.body["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    if let Some(replicas) = arguments.replicas {
        deployment.body["spec"]["replicas"] = json!(replicas);
    }
    Ok(())
}

fn container(deployment: &Value) -> Option<&Value> {
    deployment["spec"]["template"]["spec"]["containers"].get(0)
}

/// Applies one object if that changes anything, which the server is asked before.
async fn apply_one(cluster: &Cluster, manifest: &Manifest, dry_run: bool) -> Result<Line, Failure> {
    let line = |result| Line {
        object: manifest.short_name(),
        result,
    };
    let key = &manifest.key;
    let apply = async |dry_run| {
        let applied = cluster.apply_whole(
            key,
            &manifest.body,
            ApplyManner {
                manager: MANAGER,
                force: true,
                dry_run,
            },
        );
        applied.await.map_err(Failure::of)
    };
    let Some(live) = cluster.read_whole(key, None).await.map_err(Failure::of)? else {
        if !dry_run {
            apply(false).await?;
        }
        return Ok(line(Change::Created));
    };
    if essence(&apply(true).await?) == essence(&live) {
        return Ok(line(Change::Unchanged));
    }
    if manifest.is_the_operators() {
        return Ok(line(Change::Kept));
    }
    if !dry_run {
        apply(false).await?;
    }
    Ok(line(Change::Configured))
}

/// Leaves out what says nothing about whether an apply made a difference.
fn essence(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("generation");
        let entries = metadata
            .get_mut("managedFields")
            .and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            entry.as_object_mut().map(|entry| entry.remove("time"));
        }
    }
    object.as_object_mut().map(|object| object.remove("status"));
    object
}

/// Waits until an object is as it should be, and says every few seconds what is still missing.
async fn wait_for(
    cluster: &Cluster,
    key: &ObjectKey,
    missing: fn(&Value) -> Option<String>,
    deadline: Instant,
    context: &mut Context,
) -> Result<(), Failure> {
    let mut told = String::new();
    loop {
        let live = cluster.read_whole(key, None).await.map_err(Failure::of)?;
        let Some(what) = live.as_ref().map_or(Some("it is gone".to_owned()), missing) else {
            return Ok(());
        };
        let text = format!("waiting for {}: {what}", short_name(key));
        if text != told {
            writeln!(context.err, "{text}")?;
            told = text;
        }
        if Instant::now() >= deadline {
            return Err(Failure::Misuse(format!(
                "{} is not there in time: {what}. Everything is applied, so that waiting goes on with `fairway install`, and \
                 `fairway check` says more",
                short_name(key)
            )));
        }
        sleep(LOOK_INTERVAL).await;
    }
}

fn is_served(definition: &Value) -> Option<String> {
    (!condition(definition, "Established")).then(|| "it is not served yet".to_owned())
}

/// Says what a Deployment still lacks; none when all of it is available in its newest form.
pub(super) fn is_available(deployment: &Value) -> Option<String> {
    let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let status = &deployment["status"];
    let count = |name: &str| status[name].as_u64().unwrap_or_default();
    let seen =
        status["observedGeneration"].as_u64() == deployment["metadata"]["generation"].as_u64();
    if !seen {
        return Some("no controller has looked at it yet".to_owned());
    }
    let available = count("availableReplicas").min(count("updatedReplicas"));
    if available >= wanted && count("replicas") == wanted {
        return None;
    }
    Some(format!("{available} of {wanted} available"))
}

/// Returns whether an object has a condition that is true.
pub(super) fn condition(object: &Value, name: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions
        .into_iter()
        .flatten()
        .find(|one| one["type"] == name);
    found.is_some_and(|one| one["status"] == "True")
}

async fn say_what_is_next(
    home: &Home,
    without_kyma: bool,
    context: &mut Context,
) -> Result<(), Failure> {
    let namespace = &home.namespace;
    if without_kyma {
        writeln!(
            context.err,
            "\nThis cluster does not have ModuleReleaseMeta or ModuleTemplate. Modules need them: let lifecycle-manager install \
             them, or say `fairway install --kyma-crds`."
        )?;
    }
    let sources = match home.sources().await {
        Ok(sources) => sources.len(),
        // Installed without waiting: not served yet.
        Err(_) => 0,
    };
    if sources > 0 {
        writeln!(
            context.err,
            "\nfairway check says how the agent and {} are.",
            if sources == 1 {
                "its source"
            } else {
                "its sources"
            }
        )?;
        return Ok(());
    }
    writeln!(
        context.err,
        "\nNext, follow a repository. A private one needs credentials:\n\
         \n  fairway create secret git git-credentials --namespace {namespace} --username USER --password-stdin < token\n\
         \n  kubectl apply --filename - <<'YAML'\n  \
         apiVersion: fairway.dev/v1alpha1\n  \
         kind: ReleaseSource\n  \
         metadata: {{name: modules, namespace: {namespace}}}\n  \
         spec:\n    \
         url: https://git.example.com/platform/modules.git\n    \
         ref: {{branch: main}}\n    \
         secretRef: {{name: git-credentials}}\n  \
         YAML\n\
         \n  fairway check"
    )?;
    Ok(())
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::Kept => "kept as it is",
        }
    }
}

/// Returns an error unless it only says that a kind is not served.
pub(super) fn none_if_unserved<T>(
    found: Result<Option<T>, ClusterError>,
) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(found),
        Err(ClusterError::KindUnknown { .. } | ClusterError::NotFound { .. }) => Ok(None),
        Err(error) => Err(Failure::of(error)),
    }
}
