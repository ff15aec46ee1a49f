//! `fairway plan --remove`: what the migrations of a component have changed, over all its versions, and what of that could be taken
//! back. It is read from the runs: the definitions may have left git long ago.

use std::collections::BTreeMap;
use std::io::Write;

use kube::ResourceExt as _;
use serde::Serialize;

use super::describe::versions;
use super::find::all_runs;
use super::paste::phase_of;
use crate::cli::arguments::OutputFormat;
use crate::cli::connection::runtime;
use crate::cli::context::Context;
use crate::cli::failure::{Exit, Failure};
use crate::cli::get::moment;
use crate::cli::resources::Home;
use crate::cli::terminal::printable;
use crate::model::api::{Run, StepState};
use crate::model::migration::Step;
use crate::model::{ComponentName, SourceName};
use crate::runs::machine::undo_order;

/// What one run has changed, and how it could be taken back.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Effect {
    run: String,
    migration: String,
    cluster: String,
    versions: String,
    phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<jiff::Timestamp>,
    owner: String,
    /// The steps that took effect.
    done: Vec<String>,
    /// The steps that would take it back; none where the definition has no `undo`.
    undo: Vec<String>,
    /// The undo steps that were done already.
    undone: Vec<String>,
    /// Whether it was taken back; what somebody has changed since was left.
    is_undone: bool,
    /// Who has decided that it stays as it is, why, and what that is; none where nobody has.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

/// Shows what could be taken back of what the migrations of a component have done.
pub(in crate::cli) fn show(
    source: &SourceName,
    component: &ComponentName,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let name = component.to_string();
    let runs = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        all_runs(&home).await
    })?;
    let of_component = |run: &&Run| {
        run.spec.source == source.as_str() && run.spec.component.as_deref() == Some(&name)
    };
    let runs: Vec<&Run> = runs.iter().filter(of_component).collect();
    let order = undo_order(&runs).into_iter();
    let effects: Vec<Effect> = order.filter_map(|index| effect(runs[index])).collect();
    if context.output == OutputFormat::Text {
        let text = page(&name, source, &effects);
        context.out.write_all(printable(&text).as_bytes())?;
    } else {
        context.write_value(&effects)?;
    }
    Ok(Exit::Ok)
}

/// Returns what a run has changed; none where no step of it took effect.
fn effect(run: &Run) -> Option<Effect> {
    let status = run.status.as_ref()?;
    let done: Vec<String> = status
        .steps
        .iter()
        .filter(|record| {
            !matches!(record.state, StepState::Skipped | StepState::Waiting) && record.attempts > 0
        })
        .map(|record| match record.state {
            StepState::Done => super::words::step_name(record),
            state => format!("{} ({state:?})", super::words::step_name(record)),
        })
        .collect();
    if done.is_empty() {
        return None;
    }
    let undone = status
        .undone
        .iter()
        .filter(|record| record.state == StepState::Done);
    Some(Effect {
        run: run.name_any(),
        migration: run.spec.migration.clone(),
        cluster: run.spec.cluster.clone(),
        versions: versions(run),
        phase: phase_of(run).to_string(),
        ended: status.ended_at.as_ref().map(|time| time.0),
        owner: run.spec.definition.owner.clone(),
        done,
        undo: run.spec.definition.undo.iter().map(described).collect(),
        undone: undone.map(|record| record.id.clone()).collect(),
        is_undone: status.is_undone(),
        kept: status.is_undo_given_up().then(|| status.message.clone()),
    })
}

fn described(step: &Step) -> String {
    format!("{} ({})", step.id, step.action.kind())
}

fn page(component: &str, source: &SourceName, effects: &[Effect]) -> String {
    let (given_up, rest): (Vec<&Effect>, Vec<&Effect>) =
        effects.iter().partition(|effect| effect.kept.is_some());
    let (open, rest): (Vec<&Effect>, Vec<&Effect>) = rest
        .into_iter()
        .partition(|effect| !effect.undo.is_empty() && !effect.is_undone);
    let (undone, kept): (Vec<&Effect>, Vec<&Effect>) =
        rest.into_iter().partition(|effect| !effect.undo.is_empty());
    let mut lines = Vec::new();
    if effects.is_empty() {
        return format!(
            "No run of {component} of {source} is recorded that changed anything: nothing is to be taken back.\n"
        );
    }
    if !open.is_empty() {
        lines.push(format!(
            "What migrations of {component} have changed and can be taken back, the last first:"
        ));
        lines.extend(open.iter().flat_map(|effect| paragraph(effect)));
    }
    if !kept.is_empty() {
        lines.push(format!(
            "What migrations of {component} have changed and stays, since they have no `undo`:"
        ));
        lines.extend(kept.iter().flat_map(|effect| paragraph(effect)));
    }
    if !undone.is_empty() {
        lines.push("What was taken back already:".to_owned());
        lines.extend(undone.iter().flat_map(|effect| paragraph(effect)));
    }
    if !given_up.is_empty() {
        lines.push("What stays as it is, since somebody has decided that:".to_owned());
        lines.extend(given_up.iter().flat_map(|effect| paragraph(effect)));
    }
    let mut owners: BTreeMap<&str, usize> = BTreeMap::new();
    for effect in &open {
        *owners.entry(&effect.owner).or_default() += 1;
    }
    let owners: Vec<String> = owners
        .iter()
        .map(|(owner, count)| format!("{owner} ({count})"))
        .collect();
    if !owners.is_empty() {
        lines.push(format!("Whose they are: {}", owners.join(", ")));
    }
    lines.join("\n") + "\n"
}

fn paragraph(effect: &Effect) -> Vec<String> {
    let ended = effect
        .ended
        .map(|ended| format!(", {}", moment(ended)))
        .unwrap_or_default();
    let mut lines = vec![
        format!(
            "  {} on {}, {}{ended} ({})",
            effect.migration, effect.cluster, effect.versions, effect.phase
        ),
        format!("      run:  {}", effect.run),
        format!("      did:  {}", effect.done.join(", ")),
    ];
    if !effect.undo.is_empty() {
        lines.push(format!("      undo: {}", effect.undo.join(", ")));
    }
    if !effect.undone.is_empty() {
        lines.push(format!("      done: {}", effect.undone.join(", ")));
    }
    if let Some(kept) = &effect.kept {
        lines.push(format!("      kept: {kept}"));
    }
    lines
}
