//! `fairway plan`: what would change and why, against another revision or against the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use clap::Args;

use super::acting::{acting, declared};
use super::arguments::OutputFormat;
use super::connection::{connect, home_namespace, runtime};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::repository::{RepositoryArguments, warn_about};
use super::resources::treatment;
use super::runs;
use crate::agent::{Engine, Presence, Record, read_secret_key, template_users};
use crate::desired::Desired;
use crate::model::{ComponentName, Digest, limits};
use crate::observe::{Observed, Observer};
use crate::plan::hooks::{Committed, MigrationInput, committed_from};
use crate::plan::{Jobs, Plan, PlanInput, PruneSettings, TemplateUse, observed_from, plan};

/// Arguments of `fairway plan`.
#[derive(Debug, Args)]
pub struct PlanArguments {
    #[command(flatten)]
    repository: RepositoryArguments,
    /// Plan against this revision (its merge base with HEAD) instead of a cluster
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// Show what the migrations of this component have changed over all its versions, and what of it could be taken back; nothing else
    #[arg(long, value_name = "COMPONENT", conflicts_with_all = ["base", "exit_code"])]
    remove: Option<ComponentName>,
    /// Exit with 0 when all is as git wants it, and 1 when something would change, waits or is held
    #[arg(long)]
    exit_code: bool,
}

pub(super) fn run(arguments: &PlanArguments, context: &mut Context) -> Result<Exit, Failure> {
    let repository = &arguments.repository;
    if let Some(component) = &arguments.remove {
        return runs::show_undo(&repository.source, component, context);
    }
    crate::source::initialize().map_err(Failure::of)?;
    let mut desired = repository.evaluate(&repository.working_tree()?);
    warn_about(&desired, context)?;
    let planned = match &arguments.base {
        Some(revision) => {
            let base = repository.evaluate(&repository.base(revision)?);
            let observed = observed_from(&base, &desired, &repository.source);
            let committed = committed_from(&base);
            plan_with(
                arguments,
                &desired,
                &observed,
                (Ok(()), &Jobs::new(), TemplateUse::NotAsked, &committed),
                (&PruneSettings::default(), &[]),
            )
        }
        None => runtime()?.block_on(against_cluster(arguments, &mut desired, context))?,
    };
    if context.output == OutputFormat::Text {
        write!(context.out, "{}", planned.explain())?;
        if arguments.base.is_none() {
            for component in &planned.undo {
                runs::show_undo(&repository.source, component, context)?;
            }
        }
    } else {
        context.write_value(&planned.explain())?;
    }
    // What is held is a difference as well: git wants it, and it is not so.
    let differs = !planned.is_empty()
        || !planned.migrations.is_empty()
        || !planned.undo.is_empty()
        || planned.pending.is_some()
        || !planned.holds.is_empty();
    Ok(if arguments.exit_code && differs {
        Exit::Found
    } else {
        Exit::Ok
    })
}

async fn against_cluster(
    arguments: &PlanArguments,
    desired: &mut Desired,
    context: &mut Context,
) -> Result<Plan, Failure> {
    let (cluster, of_context) = connect(&context.cluster).await?;
    let namespace = home_namespace(&context.cluster, &of_context);
    if desired.has_secrets() {
        match read_secret_key(&cluster, &namespace).await {
            Ok(Some(key)) => desired.seal_secrets(|digest| key.seal(digest)),
            // Whether a Secret has changed cannot be told without the key; the plan says so.
            Ok(None) | Err(_) => desired.seal_secrets(|_| Digest::unknown()),
        }
    }
    let source = &arguments.repository.source;
    let record = Record::load(&cluster, &namespace, source).await.ok();
    let declared = declared(&cluster, &namespace, source).await?;
    let acting = acting(&cluster, &namespace, declared.as_ref(), context).await?;
    let observer = Observer::start(&acting, || {});
    let mut kinds: BTreeSet<_> = desired
        .objects()
        .map(|object| object.key.kind.clone())
        .collect();
    kinds.extend(record.iter().flat_map(Record::kinds));
    observer.ensure(kinds);
    observer.synced(limits::LIST_DEADLINE).await;
    let engine = Engine::new(cluster, acting.clone(), observer.clone(), &namespace);
    let trusted = match &record {
        Some(_) if engine.presence_of(source) == Presence::Absent => Ok(()),
        Some(record) => record.trusted(),
        None => Err("the record of this target cannot be read here".to_owned()),
    };
    let trusted = trusted.as_ref().copied().map_err(String::as_str);
    let jobs = record.as_ref().map(Record::jobs).unwrap_or_default();
    let observed = observer.view();
    let (prune, takeover) = treatment(declared.as_ref());
    let treated = (&prune, takeover.as_slice());
    let committed = record.as_ref().map(Record::committed).unwrap_or_default();
    let known = (trusted, &jobs, TemplateUse::NotAsked, &committed);
    let planned = plan_with(arguments, desired, &observed, known, treated);
    if !planned.deletes_templates() {
        return Ok(planned);
    }
    let users = template_users(&acting).await;
    let templates = match &users {
        Ok(users) => TemplateUse::Known(users),
        Err(reason) => TemplateUse::Unknown(reason),
    };
    let known = (trusted, &jobs, templates, &committed);
    Ok(plan_with(arguments, desired, &observed, known, treated))
}

/// What is known of the target: whether its record is whole, its Jobs, who uses templates, and what it has committed.
type Known<'a> = (
    Result<(), &'a str>,
    &'a Jobs,
    TemplateUse<'a>,
    &'a Committed,
);

fn plan_with(
    arguments: &PlanArguments,
    desired: &Desired,
    observed: &Observed,
    (record, jobs, templates, committed): Known<'_>,
    (prune, takeover): (&PruneSettings, &[String]),
) -> Plan {
    plan(PlanInput {
        source: &arguments.repository.source,
        desired,
        observed,
        prune,
        approval: None,
        record,
        failures: &BTreeMap::new(),
        jobs,
        templates,
        only: None,
        takeover,
        migrations: MigrationInput {
            committed,
            states: None,
        },
    })
}
