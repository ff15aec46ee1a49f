//! `fairway get`: what there is, as tables.

use std::collections::BTreeMap;
use std::io::Write;

use clap::{Args, ValueEnum};
use comfy_table::{ContentArrangement, Table, presets};
use jiff::{SignedDuration, Timestamp, Unit};
use serde::Serialize;

use super::arguments::OutputFormat;
use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::resources::Home;
use super::runs::{self, Known, Paste, waiting_runs};
use super::terminal::printable;
use super::waiting::{Waiting, waiting};
use crate::model::api::{Condition, ConditionType, HOME, ReleaseSource, Target, find};
use crate::model::{GroupKind, SourceName, limits};
use crate::observe::{Health, KindObservation, Observer};

/// Arguments of `fairway get`.
#[derive(Debug, Args)]
pub struct GetArguments {
    /// What to list
    #[arg(value_enum)]
    what: Listed,
    /// Of runs also those that ended long ago
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Listed {
    /// Repositories that are followed
    #[value(alias = "source")]
    Sources,
    /// What each source has done on each cluster
    #[value(alias = "target")]
    Targets,
    /// The clusters whose catalogs follow home's
    #[value(alias = "runtime")]
    Runtimes,
    /// Modules and folders with their objects and health
    #[value(alias = "component")]
    Components,
    /// Migrations that run, wait, or ended lately
    #[value(alias = "run")]
    Runs,
    /// What waits for a person, and the command that ends it
    #[value(alias = "approval")]
    Approvals,
}

/// One component of one source, as it is on the cluster.
#[derive(Debug, Default, Serialize)]
struct ComponentRow {
    objects: usize,
    unhealthy: Vec<String>,
}

pub(super) fn run(arguments: &GetArguments, context: &mut Context) -> Result<Exit, Failure> {
    match arguments.what {
        Listed::Sources => {
            let sources =
                runtime()?.block_on(async { Home::connect(context).await?.sources().await })?;
            print(context, &sources, "sources", |sources| {
                table(SOURCE_COLUMNS, sources.iter().map(source_row))
            })
        }
        Listed::Targets => {
            let targets =
                runtime()?.block_on(async { Home::connect(context).await?.targets().await })?;
            print(context, &targets, "targets", |targets| {
                table(TARGET_COLUMNS, targets.iter().map(target_row))
            })
        }
        Listed::Runtimes => {
            let mut targets =
                runtime()?.block_on(async { Home::connect(context).await?.targets().await })?;
            targets.retain(|target| runtime_of(target).is_some());
            print(context, &targets, "runtimes", |targets| {
                table(RUNTIME_COLUMNS, targets.iter().filter_map(runtime_row))
            })
        }
        Listed::Components => {
            let components = runtime()?.block_on(async {
                let home = Home::connect(context).await?;
                components(&home).await
            })?;
            print(context, &components, "components", |components| {
                table(
                    COMPONENT_COLUMNS,
                    components.iter().flat_map(component_rows),
                )
            })
        }
        Listed::Runs => runs::list(arguments.all, context),
        Listed::Approvals => {
            let paste = Paste::of(context);
            let waiting = runtime()?.block_on(async {
                let home = Home::connect(context).await?;
                let (sources, targets) = (home.sources().await?, home.targets().await?);
                let runs = Known::read(&home).await?;
                let mut waiting = waiting(&sources, &targets, home.cluster.uid());
                waiting.extend(waiting_runs(&runs, &paste));
                Ok::<_, Failure>(waiting)
            })?;
            print_approvals(context, &waiting)
        }
    }
}

/// Prints a list as the arguments ask for it.
fn print<T: Serialize + IsEmpty>(
    context: &mut Context,
    list: &T,
    what: &str,
    draw: impl FnOnce(&T) -> Table,
) -> Result<Exit, Failure> {
    if context.output != OutputFormat::Text {
        context.write_value(list)?;
    } else if list.is_empty() {
        writeln!(context.err, "no {what}")?;
    } else {
        writeln!(context.out, "{}", draw(list).trim_fmt())?;
    }
    Ok(Exit::Ok)
}

trait IsEmpty {
    fn is_empty(&self) -> bool;
}

impl<T> IsEmpty for Vec<T> {
    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

impl<K, V> IsEmpty for BTreeMap<K, V> {
    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

fn print_approvals(context: &mut Context, waiting: &[Waiting]) -> Result<Exit, Failure> {
    if context.output != OutputFormat::Text {
        context.write_value(&waiting)?;
        return Ok(Exit::Ok);
    }
    if waiting.is_empty() {
        writeln!(context.err, "nothing waits for a person")?;
    }
    for one in waiting {
        let since = one
            .since
            .map(|since| format!(", since {}", age(since)))
            .unwrap_or_default();
        writeln!(
            context.out,
            "{} {}: {}{since}",
            one.kind, one.source, one.what
        )?;
        for why in &one.why {
            for line in printable(why).lines() {
                writeln!(context.out, "  {line}")?;
            }
        }
        writeln!(context.out, "  {}: {}", one.does, one.command)?;
    }
    Ok(Exit::Ok)
}

const SOURCE_COLUMNS: &[&str] = &["NAME", "READY", "REASON", "REVISION", "HELD", "MESSAGE"];
const TARGET_COLUMNS: &[&str] = &["NAME", "READY", "REVISION", "OBJECTS", "TO PRUNE", "SINCE"];
const RUNTIME_COLUMNS: &[&str] = &[
    "RUNTIME", "SOURCE", "READY", "REASON", "REVISION", "OBJECTS", "LEFT OUT", "MESSAGE",
];
const COMPONENT_COLUMNS: &[&str] = &["SOURCE", "COMPONENT", "OBJECTS", "HEALTH"];

fn source_row(source: &ReleaseSource) -> Vec<String> {
    let status = source.status.clone().unwrap_or_default();
    let (ready, reason, message) = match find(&status.conditions, ConditionType::Ready) {
        _ if source.spec.suspend => ("-".to_owned(), "Suspended".to_owned(), String::new()),
        Some(ready) => words(ready),
        None => (
            "Unknown".to_owned(),
            "-".to_owned(),
            "no agent has looked at it yet".to_owned(),
        ),
    };
    vec![
        source.metadata.name.clone().unwrap_or_default(),
        ready,
        reason,
        status.revision.unwrap_or_else(|| "-".to_owned()),
        status.hold_count.unwrap_or_default().to_string(),
        first_line(&message),
    ]
}

fn target_row(target: &Target) -> Vec<String> {
    let status = target.status.clone().unwrap_or_default();
    let ready = find(&status.conditions, ConditionType::Ready).map(|ready| words(ready).0);
    vec![
        target.metadata.name.clone().unwrap_or_default(),
        ready.unwrap_or_else(|| "Unknown".to_owned()),
        status.short_revision.unwrap_or_else(|| "-".to_owned()),
        status.objects.unwrap_or_default().to_string(),
        status
            .pending_prune
            .map_or(0, |pending| pending.count)
            .to_string(),
        status
            .since
            .map_or_else(|| "-".to_owned(), |since| age(since.0)),
    ]
}

/// Returns source and name of the runtime that a Target is about; none for home's.
fn runtime_of(target: &Target) -> Option<(&str, &str)> {
    let (source, runtime) = target.metadata.name.as_deref()?.split_once('.')?;
    (runtime != HOME).then_some((source, runtime))
}

fn runtime_row(target: &Target) -> Option<Vec<String>> {
    let (source, runtime) = runtime_of(target)?;
    let status = target.status.clone().unwrap_or_default();
    let (ready, reason, message) = match find(&status.conditions, ConditionType::Ready) {
        Some(ready) => words(ready),
        None => ("Unknown".to_owned(), "-".to_owned(), String::new()),
    };
    Some(vec![
        runtime.to_owned(),
        source.to_owned(),
        ready,
        reason,
        status.short_revision.unwrap_or_else(|| "-".to_owned()),
        status.objects.unwrap_or_default().to_string(),
        status.left_out.len().to_string(),
        first_line(&message),
    ])
}

fn component_rows(
    (source, components): (&String, &BTreeMap<String, ComponentRow>),
) -> Vec<Vec<String>> {
    components
        .iter()
        .map(|(name, row)| {
            let health = match row.unhealthy.first() {
                None => "healthy".to_owned(),
                Some(first) => first_line(first),
            };
            vec![
                source.clone(),
                name.clone(),
                row.objects.to_string(),
                health,
            ]
        })
        .collect()
}

/// Counts objects by their labels; every kind that a target has ever applied is listed once.
async fn components(
    home: &Home,
) -> Result<BTreeMap<String, BTreeMap<String, ComponentRow>>, Failure> {
    let targets = home.targets().await?;
    let kinds = targets
        .iter()
        .filter_map(|target| target.status.as_ref())
        .flat_map(|status| {
            status
                .kinds
                .iter()
                .filter_map(|kind| kind.parse::<GroupKind>().ok())
        })
        .collect();
    let observer = Observer::start(&home.cluster.acting_as_itself(), || {});
    observer.ensure(kinds);
    observer.synced(limits::LIST_DEADLINE).await;
    let mut found: BTreeMap<String, BTreeMap<String, ComponentRow>> = BTreeMap::new();
    for (kind, observation) in &observer.view().kinds {
        let objects = match observation {
            KindObservation::Listed(objects) => objects,
            KindObservation::Unlisted(reason) => {
                return Err(Failure::Misuse(format!(
                    "{kind} could not be listed: {reason}"
                )));
            }
        };
        for object in objects.values() {
            let source = object.source.as_ref().map_or("-", SourceName::as_str);
            let component = object.component.clone().unwrap_or_else(|| "-".to_owned());
            let row = found
                .entry(source.to_owned())
                .or_default()
                .entry(component)
                .or_default();
            row.objects += 1;
            match &object.health {
                Health::Current => {}
                Health::Terminating => row
                    .unhealthy
                    .push(format!("{} is being deleted", object.key)),
                Health::InProgress(why) | Health::Failed(why) => {
                    row.unhealthy.push(format!("{}: {why}", object.key));
                }
            }
        }
    }
    found
        .values_mut()
        .flat_map(BTreeMap::values_mut)
        .for_each(|row| row.unhealthy.sort());
    Ok(found)
}

pub(super) fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().copied());
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

fn words(condition: &Condition) -> (String, String, String) {
    (
        format!("{:?}", condition.status),
        condition.reason.clone(),
        condition.message.clone(),
    )
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Says how long ago something was, as kubectl does: one unit, sometimes two.
pub(super) fn age(since: Timestamp) -> String {
    length(crate::agent::clock::now().duration_since(since))
}

/// Says how long something is, in one unit; what is negative is nothing.
pub(super) fn length(span: SignedDuration) -> String {
    let seconds = span.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Rounds a time to seconds, for people.
pub(super) fn moment(at: Timestamp) -> String {
    at.round(Unit::Second).unwrap_or(at).to_string()
}
