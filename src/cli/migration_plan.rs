//! `fairway migration plan`: what each migration would decide on a cluster now, and why. It only reads.

use std::io::Write;

use clap::Args;
use serde::Serialize;

use super::acting::{acting, declared};
use super::arguments::OutputFormat;
use super::connection::{connect, home_namespace, runtime};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::repository::{RepositoryArguments, warn_about};
use super::terminal::printable;
use crate::agent::{Record, clock};
use crate::desired::Desired;
use crate::model::ComponentName;
use crate::model::api::{Evidence, RunSpec};
use crate::model::migration::{Decision, DeployAction, DeployComponent, HookPhase, Migration};
use crate::plan::hooks::{Committed, committed_from, desired_values};
use crate::runs::{ClusterEffects, Driver, Judgement, LookupCache, ProcessClock, Sight};

/// The arguments of `fairway migration plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    repository: RepositoryArguments,
}

/// What one migration would decide.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    migration: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    component: Option<String>,
    phase: HookPhase,
    decision: Decision,
    /// Whether a deploy of these files comes by it.
    takes_part: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_alone: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    runbook: Option<String>,
    took_milliseconds: u128,
    evidence: Vec<Evidence>,
}

/// Judges every migration as if what it belongs to were deployed now, and says which of them a deploy of these files leaves alone.
pub(super) fn run(arguments: &PlanArguments, context: &mut Context) -> Result<Exit, Failure> {
    crate::source::initialize()?;
    let repository = &arguments.repository;
    let desired = repository.evaluate(&repository.working_tree()?);
    warn_about(&desired, context)?;
    let rows = runtime()?.block_on(judge(arguments, &desired, context))?;
    if context.output == OutputFormat::Text {
        for row in &rows {
            draw(row, context)?;
        }
    } else {
        context.write_value(&rows)?;
    }
    Ok(Exit::Ok)
}

async fn judge(
    arguments: &PlanArguments,
    desired: &Desired,
    context: &mut Context,
) -> Result<Vec<Row>, Failure> {
    let (cluster, of_context) = connect(&context.cluster).await?;
    let namespace = home_namespace(&context.cluster, &of_context);
    let source = &arguments.repository.source;
    let record = Record::load(&cluster, &namespace, source)
        .await
        .map_err(Failure::of)?;
    let committed = record.committed();
    let declared = declared(&cluster, &namespace, source).await?;
    let acting = acting(&cluster, &namespace, declared.as_ref(), context).await?;
    let effects = ClusterEffects::new(&acting, namespace.as_str());
    let driver = Driver::new(effects, (), ProcessClock::new(clock::now), "");
    // Each distinct lookup is one request, whoever names it.
    let lookups = LookupCache::new();
    // Who asks is not the account that would do it.
    let sight = Sight {
        guard_alone: true,
        ..Sight::default()
    };
    let deployed = committed_from(desired);
    let mut rows = Vec::new();
    for migration in &desired.migrations {
        let components: Vec<Option<&ComponentName>> = if migration.is_global() {
            vec![None]
        } else {
            migration.components.iter().map(Some).collect()
        };
        for component in components {
            let spec = spec(arguments, desired, &committed, migration, component);
            let judgement = driver.judge(&spec, &lookups, &sight).await;
            let left_alone = left_alone(&spec, component, &committed, &deployed);
            rows.push(row(&spec, judgement, left_alone));
        }
    }
    Ok(rows)
}

/// Returns why a deploy does not come by a migration: its component stays as it is, or it is for other deploys.
fn left_alone(
    spec: &RunSpec,
    component: Option<&ComponentName>,
    committed: &Committed,
    deployed: &Committed,
) -> Option<String> {
    let name = component?;
    let (before, after) = (
        committed.components.get(name),
        deployed.components.get(name),
    );
    if let (Some(before), Some(after)) = (before, after)
        && before.digest == after.digest
        && before.begun.is_none()
    {
        return Some(format!(
            "a deploy of these files leaves {name} as it is, and comes by none of its migrations"
        ));
    }
    // What is not committed may be there all the same, so that only an upgrade is certain.
    let is_upgrade = before.is_some_and(|it| it.digest.is_some());
    let is_for_installs = !spec.definition.bind.on.contains(&DeployAction::Upgrade);
    (is_upgrade && is_for_installs).then(|| format!("it runs on install only, and {name} is there"))
}

fn row(spec: &RunSpec, judgement: Judgement, left_alone: Option<String>) -> Row {
    Row {
        migration: spec.migration.clone(),
        component: spec.component.clone(),
        phase: spec.phase,
        decision: judgement.decision,
        takes_part: left_alone.is_none(),
        left_alone,
        message: judgement.message,
        runbook: judgement.runbook,
        took_milliseconds: judgement.took.as_millis(),
        evidence: judgement.evidence,
    }
}

/// Returns what a run would be of.
fn spec(
    arguments: &PlanArguments,
    desired: &Desired,
    committed: &Committed,
    migration: &Migration,
    component: Option<&ComponentName>,
) -> RunSpec {
    let processed = component.map(|name| processed(desired, committed, name));
    RunSpec {
        source: arguments.repository.source.to_string(),
        cluster: "home".to_owned(),
        cluster_uid: String::new(),
        migration: migration.name.clone(),
        component: component.map(ToString::to_string),
        phase: migration.spec.bind.phase,
        action: processed.as_ref().map(|it| it.action),
        from: processed.as_ref().and_then(|it| it.from.clone()),
        to: processed.as_ref().and_then(|it| it.to.clone()),
        release: desired.settings.release.clone(),
        revision: desired.revision.to_string(),
        author: String::new(),
        place: migration.place.to_string(),
        deploy: String::new(),
        definition_digest: migration.digest.to_string(),
        definition: migration.spec.clone(),
        desired: desired_values(desired, migration),
        components: desired
            .components
            .keys()
            .map(|name| self::processed(desired, committed, name))
            .collect(),
        http_hosts: desired.settings.http_hosts.clone(),
    }
}

fn processed(desired: &Desired, committed: &Committed, name: &ComponentName) -> DeployComponent {
    let before = committed.components.get(name);
    DeployComponent {
        name: name.to_string(),
        from: before.and_then(|it| it.version.clone()),
        to: desired
            .components
            .get(name)
            .and_then(|it| it.version.clone()),
        action: if before.is_some_and(|it| it.digest.is_some()) {
            DeployAction::Upgrade
        } else {
            DeployAction::Install
        },
    }
}

/// Writes one line for a migration, and below it what the decision rests on.
fn draw(row: &Row, context: &mut Context) -> Result<(), Failure> {
    let place = row.component.as_deref().unwrap_or("global");
    writeln!(
        context.out,
        "{:<9} {} ({} of {}, {} ms)",
        row.decision.to_string(),
        printable(&row.migration),
        row.phase.as_str(),
        printable(place),
        row.took_milliseconds
    )?;
    if let Some(why) = &row.left_alone {
        writeln!(context.out, "          not now: {}", printable(why))?;
    }
    for line in row.message.lines() {
        writeln!(context.out, "          {}", printable(line))?;
    }
    if let Some(runbook) = &row.runbook {
        writeln!(context.out, "          see {}", printable(runbook))?;
    }
    for evidence in &row.evidence {
        writeln!(
            context.out,
            "          {} is {}",
            printable(&evidence.about),
            printable(&evidence.result)
        )?;
        for (path, value) in &evidence.values {
            writeln!(
                context.out,
                "            {} = {}",
                printable(path),
                printable(&crate::runs::trial::shown(value))
            )?;
        }
    }
    Ok(())
}
