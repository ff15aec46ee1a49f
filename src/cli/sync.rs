//! `fairway sync`: passes over a working directory until all is done, without an agent.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::acting::acting;
use super::alone::{Alone, refuse_if_held};
use super::connection::{connect, home_namespace, runtime};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::installed::require_installed;
use super::repository::{RepositoryArguments, warn_about};
use super::resources::{parse_duration, treatment};
use super::sync_runs::{Runs, SyncNews};
use crate::agent::{Engine, HomeConductor, Pass, PassListener, PassRequest, Presence, Record};
use crate::cluster::Cluster;
use crate::desired::Desired;
use crate::execute::{Effect, EffectResult};
use crate::model::api::ReleaseSource;
use crate::model::{ComponentName, HoldReason};
use crate::observe::Observer;
use crate::plan::Plan;

/// Arguments of `fairway sync`.
#[derive(Debug, Args)]
pub struct SyncArguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// Only this component, `modules/NAME` or `components/NAME`; nothing else is touched
    #[arg(long, value_name = "NAME")]
    component: Option<ComponentName>,
    /// Do not ask before the first change
    #[arg(long, short)]
    yes: bool,
    /// How long to wait until all is healthy
    #[arg(long, value_parser = parse_duration, default_value = "5m")]
    timeout: Duration,
}

pub(super) fn run(arguments: &SyncArguments, context: &mut Context) -> Result<Exit, Failure> {
    crate::source::initialize().map_err(Failure::of)?;
    runtime()?.block_on(sync(arguments, context))
}

async fn sync(arguments: &SyncArguments, context: &mut Context) -> Result<Exit, Failure> {
    let repository = &arguments.repository;
    let (cluster, of_context) = connect(&context.cluster).await?;
    let namespace = home_namespace(&context.cluster, &of_context);
    refuse_if_held(&cluster, &namespace).await?;
    let declared = refuse_beside_agent(&cluster, &namespace, repository).await?;
    if declared.is_none() {
        require_installed(&cluster, &namespace).await?;
    }
    let (prune, takeover) = treatment(declared.as_ref());
    let snapshot = repository.working_tree()?;
    let bell = Arc::new(Notify::new());
    let rung = Arc::clone(&bell);
    let acting = acting(&cluster, &namespace, declared.as_ref(), context).await?;
    let observer = Observer::start(&acting, move || rung.notify_one());
    let mut engine = Engine::new(
        cluster.clone(),
        acting.clone(),
        observer.clone(),
        &namespace,
    );
    let record = Record::load(&cluster, &namespace, &repository.source)
        .await
        .map_err(Failure::of)?;
    let options = repository.options();
    let desired = engine.evaluate(&snapshot, &options).await;
    warn_about(&desired, context)?;
    engine.observe(&desired, &record.kinds()).await;
    let presence = engine.presence_of(&repository.source);
    let trusted = match presence {
        Presence::Absent => Ok(()),
        Presence::Present | Presence::Unknown => record.trusted(),
    };
    let stop = CancellationToken::new();
    let (jobs, committed) = (record.jobs(), record.committed());
    let request = PassRequest {
        source: &repository.source,
        prune: &prune,
        takeover: &takeover,
        approval: None,
        record: trusted.as_ref().copied().map_err(String::as_str),
        jobs: &jobs,
        committed: &committed,
        author: "",
        only: arguments.component.as_ref(),
        stop: &stop,
    };
    let plan = engine.plan(&desired, &request);
    if let Some(name) = &arguments.component {
        refuse_unknown(name, &desired, &plan)?;
    }
    write!(context.err, "{}", plan.explain())?;
    if !is_on_its_way(&plan) && plan.migrations.is_empty() {
        return Ok(conclusion(&plan));
    }
    if !arguments.yes && !confirmed(&cluster, context)? {
        return Err(Failure::Misuse("nothing was changed".to_owned()));
    }
    let alone = Alone::begin(&cluster, &namespace, context).await?;
    let cluster = alone.on(&cluster);
    let acting = acting.on(&cluster);
    let news = Arc::new(SyncNews::default());
    let runs = Runs::follow(
        (&cluster, &acting),
        &namespace,
        &repository.source,
        &news,
        &bell,
        &alone,
    );
    let work = Work {
        engine: Engine::new(cluster.clone(), acting, observer, &namespace)
            .with_conductor(Arc::new(runs.conductor.clone())),
        conductor: runs.conductor.clone(),
        news,
        desired,
        unseen: presence != Presence::Present,
        deadline: Instant::now() + arguments.timeout,
        bell,
    };
    let request = PassRequest {
        stop: &alone.stop,
        ..request
    };
    let worked = match Record::load(&cluster, &namespace, &repository.source).await {
        Ok(record) => work.run(record, &request, context).await,
        Err(error) => Err(Failure::of(error)),
    };
    runs.end().await;
    let told = alone.told_to_end();
    alone.end().await;
    told.map_or(worked, Err)
}

/// What is done once somebody has agreed and the lease is held.
struct Work {
    engine: Engine,
    conductor: HomeConductor,
    news: Arc<SyncNews>,
    desired: Arc<Desired>,
    /// Whether no object of the source is known to be there.
    unseen: bool,
    deadline: Instant,
    bell: Arc<Notify>,
}

impl Work {
    async fn run(
        mut self,
        mut record: Record,
        request: &PassRequest<'_>,
        context: &mut Context,
    ) -> Result<Exit, Failure> {
        let established = record.establish(self.unseen, false).await;
        established.map_err(Failure::of)?;
        let mut jobs = record.jobs();
        loop {
            let progress = if context.interactive {
                ProgressBar::new(0)
            } else {
                ProgressBar::hidden()
            };
            let (begun, committed) = (jobs.clone(), record.committed());
            let request = PassRequest {
                jobs: &begun,
                committed: &committed,
                ..*request
            };
            let mut listener = Listener {
                record: &mut record,
                lines: Vec::new(),
                progress,
            };
            let desired = Arc::clone(&self.desired);
            let has_to_look = self.conductor.has_to_look();
            let pass = self.engine.pass(desired, &request, &mut listener).await;
            let lines = std::mem::take(&mut listener.lines);
            listener.progress.finish_and_clear();
            for line in lines {
                writeln!(context.out, "{line}")?;
            }
            let pass = pass.map_err(Failure::of)?;
            jobs.clone_from(&pass.plan.jobs);
            record.keep_jobs(&jobs).await.map_err(Failure::of)?;
            for line in self.news.take() {
                writeln!(context.err, "{line}")?;
            }
            let over = Instant::now() >= self.deadline || request.stop.is_cancelled();
            // What blocked an earlier sync may be mended: the last word is this one's own.
            let mut holds = pass.plan.holds.iter();
            let waits = holds.any(|hold| waits_for_a_run(hold.reason));
            let looks = has_to_look && waits;
            if over || !(looks || is_on_its_way(&pass.plan)) {
                write!(context.err, "{}", pass.plan.explain())?;
                if waits {
                    writeln!(
                        context.err,
                        "no agent goes on with this: once it can go on, run fairway sync again"
                    )?;
                }
                if pass.outcome.gave_up {
                    writeln!(
                        context.err,
                        "the cluster stopped answering; what is left was not begun"
                    )?;
                }
                return Ok(conclusion(&pass.plan));
            }
            wait_for_change(&self.bell, &pass, self.deadline, request.stop).await;
            for line in self.news.take() {
                writeln!(context.err, "{line}")?;
            }
        }
    }
}

/// Refuses to work beside an agent that follows the same source: both would be right, and they would take turns. Returns the
/// source where it is declared and suspended; how it is to be treated is written there.
async fn refuse_beside_agent(
    cluster: &Cluster,
    namespace: &str,
    repository: &RepositoryArguments,
) -> Result<Option<ReleaseSource>, Failure> {
    let name = repository.source.as_str();
    let followed: Option<ReleaseSource> =
        cluster.get(namespace, name).await.map_err(Failure::of)?;
    match followed {
        Some(source) if !source.spec.suspend => Err(Failure::Misuse(format!(
            "an agent follows the source {name} ({}) on this cluster; fairway suspend {name} first, or take another --source",
            source.spec.url
        ))),
        other => Ok(other),
    }
}

fn confirmed(cluster: &Cluster, context: &mut Context) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Misuse(
            "there is no terminal to ask on; say --yes".to_owned(),
        ));
    }
    let of = context
        .cluster
        .context
        .clone()
        .unwrap_or_else(|| "the current context".to_owned());
    write!(
        context.err,
        "Apply this to {of} (cluster {})? [y/N] ",
        cluster.uid()
    )?;
    context.err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Returns whether waiting can bring more about: something is not healthy yet, or will be tried again.
fn is_on_its_way(plan: &Plan) -> bool {
    !plan.is_empty()
        || !plan.unhealthy.is_empty()
        || plan.holds.iter().any(|hold| {
            matches!(
                hold.reason,
                HoldReason::DependencyNotReady
                    | HoldReason::BackOff
                    | HoldReason::Terminating
                    | HoldReason::Unobserved
                    | HoldReason::Requires
                    | HoldReason::KindUnknown
                    | HoldReason::MigrationPending
            )
        })
}

/// Returns whether a hold ends when a run does that waits for the cluster or for a person.
fn waits_for_a_run(reason: HoldReason) -> bool {
    matches!(
        reason,
        HoldReason::MigrationPending
            | HoldReason::MigrationBlocked
            | HoldReason::MigrationManual
            | HoldReason::MigrationFailed
    )
}

/// Refuses a component that is neither in git nor on the cluster: a name that was mistyped must not look like success.
fn refuse_unknown(name: &ComponentName, desired: &Desired, plan: &Plan) -> Result<(), Failure> {
    let in_git = desired.components.contains_key(name);
    if in_git || !plan.is_empty() || !plan.holds.is_empty() || plan.pending.is_some() {
        return Ok(());
    }
    let known: Vec<String> = desired.components.keys().map(ToString::to_string).collect();
    Err(Failure::Misuse(format!(
        "there is no component {name}, neither in git nor on the cluster; there are: {}",
        known.join(", ")
    )))
}

/// Returns 0 when all is as git wants it and healthy; 1 when anything is held, waits, is not healthy or was not begun.
fn conclusion(plan: &Plan) -> Exit {
    let all = plan.is_empty()
        && plan.holds.is_empty()
        && plan.pending.is_none()
        && plan.unhealthy.is_empty();
    if all { Exit::Ok } else { Exit::Found }
}

async fn wait_for_change(bell: &Notify, pass: &Pass, deadline: Instant, stop: &CancellationToken) {
    let until = pass.next.map_or(deadline, |next| next.min(deadline));
    tokio::select! {
        () = bell.notified() => {}
        () = stop.cancelled() => {}
        () = tokio::time::sleep_until(until) => {}
    }
}

/// Shows effects as they come, and writes down kinds before they are applied.
struct Listener<'a> {
    record: &'a mut Record,
    lines: Vec<String>,
    progress: ProgressBar,
}

impl PassListener for Listener<'_> {
    fn record(&mut self) -> &mut Record {
        self.record
    }

    fn planned(&mut self, plan: &Plan) {
        self.progress.inc_length(plan.actions().count() as u64);
    }

    fn effect(&mut self, effect: &Effect) {
        self.progress.inc(1);
        let word = match &effect.result {
            EffectResult::Applied => "applied".to_owned(),
            EffectResult::Unchanged => "unchanged".to_owned(),
            EffectResult::Deleted => "deleted".to_owned(),
            EffectResult::AlreadyGone => "already gone".to_owned(),
            EffectResult::Skipped(first) => format!("skipped, since {first} had to come first"),
            EffectResult::Stopped => "not begun".to_owned(),
            EffectResult::Failed(failure) => format!("failed: {}", failure.message),
        };
        self.lines.push(format!("{} {word}", effect.key));
    }
}
