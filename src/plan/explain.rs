//! A plan in words, for people and for machines: what the command line prints, and what events and logs say.
//!
//! Only keys, places and reasons are said. Bodies never are, since one of them may be a Secret.

use std::fmt;

use serde::Serialize;

use crate::model::migration::{HookPhase, HookScope};
use crate::model::{ComponentName, Digest, HoldReason, ObjectKey, Place, SourceName};

use super::hooks::{Committed, PlannedMigration};
use super::output::{Action, ActionKind, Plan, Why};

/// A plan in words; `Display` is the text form, serde gives the JSON form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Identity of the plan.
    pub identity: Digest,
    /// The source.
    pub source: SourceName,
    /// The revision, as it is written.
    pub revision: String,
    /// What is done, in the order in which it is done.
    pub changes: Vec<ChangeLine>,
    /// The migrations that this deploy comes by: each is judged, and runs where it is needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub migrations: Vec<MigrationLine>,
    /// Removed components of which what their migrations have changed is taken back first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<ComponentName>,
    /// What is wanted but held.
    pub holds: Vec<HoldLine>,
    /// What waits for an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingLines>,
    /// What stays although git does not want it.
    pub kept: Vec<KeptLine>,
    /// Components that are not healthy, with what is missing.
    pub unhealthy: Vec<UnhealthyLine>,
    /// The counts.
    pub summary: Summary,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeLine {
    /// What becomes of the object.
    pub change: Change,
    /// The object.
    #[serde(serialize_with = "as_text")]
    pub object: ObjectKey,
    /// The component that it belongs to.
    pub component: ComponentName,
    /// Why, as a lowercase fragment.
    pub why: String,
    /// Where git wants it; none for a deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// What becomes of an object, in the words that kubectl uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It is not there yet.
    Created,
    /// It is there and is brought in step.
    Configured,
    /// It is deleted and created anew.
    Replaced,
    /// It goes.
    Deleted,
}

/// One migration that a deploy comes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationLine {
    /// Its name.
    pub migration: String,
    /// When it is judged: `before components/logging`, `after the whole deploy`.
    pub when: String,
    /// Whose it is.
    pub owner: String,
    /// Where it stands.
    pub place: Place,
}

/// One hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HoldLine {
    /// What is held.
    pub what: String,
    /// The stable word for why.
    pub reason: HoldReason,
    /// Why, and what lifts the hold.
    pub message: String,
    /// The place in git that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// The set of deletions that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingLines {
    /// Digest of the set.
    pub digest: String,
    /// Why it waits.
    pub reasons: Vec<String>,
    /// The objects.
    pub objects: Vec<String>,
}

/// One object that stays although git does not want it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptLine {
    /// The object.
    pub object: String,
    /// Why it stays.
    pub reason: String,
}

/// One component that is not healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnhealthyLine {
    /// The component.
    pub component: ComponentName,
    /// What is missing.
    pub missing: String,
}

/// How much there is of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Objects to create.
    pub created: usize,
    /// Objects to bring in step.
    pub configured: usize,
    /// Objects to delete and create anew.
    pub replaced: usize,
    /// Objects to delete.
    pub deleted: usize,
    /// Holds.
    pub held: usize,
    /// Deletions that wait for an approval.
    pub pending: usize,
    /// Objects that are as git wants them.
    pub unchanged: usize,
}

// === impl Plan ===

impl Plan {
    /// Puts the plan in words.
    pub fn explain(&self) -> Explanation {
        let changes: Vec<ChangeLine> = self.actions().map(Action::explain).collect();
        let holds = self.holds.iter().map(|hold| HoldLine {
            what: hold.what.clone(),
            reason: hold.reason,
            message: hold.message.clone(),
            place: hold.place.clone(),
        });
        Explanation {
            identity: self.identity.clone(),
            source: self.source.clone(),
            revision: self.revision.to_string(),
            summary: summary(self, &changes),
            changes,
            migrations: self.migrations.iter().map(migration_line).collect(),
            undo: self.undo.clone(),
            holds: holds.collect(),
            pending: self.pending.as_ref().map(|pending| PendingLines {
                digest: pending.digest.clone(),
                reasons: pending.reasons.clone(),
                objects: pending
                    .deletions
                    .iter()
                    .map(|it| it.key.to_string())
                    .collect(),
            }),
            kept: self
                .kept
                .iter()
                .map(|kept| KeptLine {
                    object: kept.key.to_string(),
                    reason: kept.reason.clone(),
                })
                .collect(),
            unhealthy: self
                .unhealthy
                .iter()
                .map(|(component, missing)| UnhealthyLine {
                    component: component.clone(),
                    missing: missing.clone(),
                })
                .collect(),
        }
    }
}

fn migration_line(planned: &PlannedMigration) -> MigrationLine {
    let word = match planned.phase {
        HookPhase::Pre => "before",
        HookPhase::Post => "after",
    };
    let what = match &planned.scope {
        HookScope::Global => "the whole deploy".to_owned(),
        HookScope::Component(name) => name.to_string(),
    };
    MigrationLine {
        migration: planned.name.clone(),
        when: format!("{word} {what}"),
        owner: planned.owner.clone(),
        place: planned.place.clone(),
    }
}

fn summary(plan: &Plan, changes: &[ChangeLine]) -> Summary {
    let count = |change| changes.iter().filter(|line| line.change == change).count();
    Summary {
        created: count(Change::Created),
        configured: count(Change::Configured),
        replaced: count(Change::Replaced),
        deleted: count(Change::Deleted),
        held: plan.holds.len(),
        pending: plan.pending.as_ref().map_or(0, |it| it.deletions.len()),
        unchanged: plan.unchanged,
    }
}

// === impl Action ===

impl Action {
    /// Puts the action in words.
    pub fn explain(&self) -> ChangeLine {
        let (change, place) = match &self.kind {
            ActionKind::Apply(object) if self.why == Why::Missing => {
                (Change::Created, Some(object.place.clone()))
            }
            ActionKind::Apply(object) => (Change::Configured, Some(object.place.clone())),
            ActionKind::Replace(object, _) => (Change::Replaced, Some(object.place.clone())),
            ActionKind::Delete(_) => (Change::Deleted, None),
        };
        ChangeLine {
            change,
            object: self.key.clone(),
            component: self.component.clone(),
            why: self.why.to_string(),
            place,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it is not there"),
            Self::Changed => f.write_str("git changed it"),
            Self::Drifted(fields) => write!(f, "somebody changed {}", fields.join(", ")),
            Self::Adopted => f.write_str("it was not applied by this source yet"),
            Self::Unclear(reason) => write!(f, "it may have changed: {reason}"),
            Self::Removed => f.write_str("git does not want it any more"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Replaced => "replaced",
            Self::Deleted => "deleted",
        })
    }
}

// === impl Explanation ===

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object_width = self
            .changes
            .iter()
            .map(|line| line.object.to_string().len());
        let object_width = object_width.max().unwrap_or(0);
        let component_width = self
            .changes
            .iter()
            .map(|line| line.component.to_string().len());
        let component_width = component_width.max().unwrap_or(0);
        for line in &self.migrations {
            writeln!(
                f,
                "{:<10}  migration {} would be judged {}, owner {}, {}",
                "migration", line.migration, line.when, line.owner, line.place
            )?;
        }
        for name in &self.undo {
            writeln!(
                f,
                "{:<10}  {name}: what its migrations have changed would be taken back first",
                "undo"
            )?;
        }
        for line in &self.changes {
            let (object, component) = (line.object.to_string(), line.component.to_string());
            writeln!(
                f,
                "{:<10}  {object:<object_width$}  {component:<component_width$}  {}",
                line.change, line.why
            )?;
        }
        for hold in &self.holds {
            write!(f, "{:<10}  {} ({})", "held", hold.what, hold.reason)?;
            if let Some(place) = &hold.place {
                write!(f, " at {place}")?;
            }
            // A message may end with lines for a file, which must not run on.
            writeln!(f, "\n{}", indented(&hold.message))?;
        }
        if let Some(pending) = &self.pending {
            for object in &pending.objects {
                writeln!(
                    f,
                    "{:<10}  {object}: its deletion waits for an approval",
                    "pending"
                )?;
            }
        }
        for kept in &self.kept {
            writeln!(f, "{:<10}  {}: {}", "kept", kept.object, kept.reason)?;
        }
        for line in &self.unhealthy {
            writeln!(
                f,
                "{:<10}  {}: {}",
                "unhealthy", line.component, line.missing
            )?;
        }
        writeln!(f, "{}", self.summary)
    }
}

/// Puts a message below the line that it belongs to.
fn indented(message: &str) -> String {
    let lines: Vec<String> = message
        .lines()
        .map(|line| format!("            {line}"))
        .collect();
    lines.join("\n")
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.created, "to create"),
            (self.configured, "to configure"),
            (self.replaced, "to replace"),
            (self.deleted, "to delete"),
            (self.pending, "waiting for an approval"),
            (self.held, "held"),
            (self.unchanged, "unchanged"),
        ];
        let words: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        if words.is_empty() {
            f.write_str("nothing to do")
        } else {
            f.write_str(&words.join(", "))
        }
    }
}

/// Computes the identity of a plan: a digest over all it says, with the digests and preconditions that words leave out.
pub(super) fn identity(plan: &Plan) -> Digest {
    let mut parts = vec![plan.explain().to_string(), plan.revision.to_string()];
    for (number, phase) in plan.phases.iter().enumerate() {
        for action in phase {
            parts.push(number.to_string());
            let (object, deletion) = match &action.kind {
                ActionKind::Apply(object) => (Some(object), None),
                ActionKind::Replace(object, deletion) => (Some(object), Some(deletion)),
                ActionKind::Delete(deletion) => (None, Some(deletion)),
            };
            // A plan's identity is shown; that of a Secret's content is in the revision.
            let object = object.filter(|object| !object.key.kind.is_secret());
            parts.extend(object.map(|object| object.digest.to_string()));
            if let Some(deletion) = deletion {
                parts.push(deletion.uid.clone());
                parts.push(deletion.resource_version.clone());
            }
            parts.extend(action.requires.iter().map(ToString::to_string));
        }
    }
    parts.extend(plan.pending.iter().map(|pending| pending.digest.clone()));
    for due in &plan.hooks {
        parts.push(format!(
            "{} {} {}",
            due.hook, due.hook.deploy, due.may_begin
        ));
        parts.extend(
            due.migrations
                .iter()
                .map(|it| it.migration.digest.to_string()),
        );
    }
    for ahead in &plan.ahead {
        parts.push(format!(
            "ahead {} {}",
            ahead.due.hook, ahead.due.hook.deploy
        ));
    }
    parts.extend(committed_parts(&plan.committed));
    Digest::of_parts(parts.iter().map(String::as_str))
}

fn committed_parts(committed: &Committed) -> Vec<String> {
    if *committed == Committed::default() {
        return Vec::new();
    }
    let text =
        |digest: &Option<Digest>| digest.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![text(&committed.global.pre), text(&committed.global.post)];
    parts.extend(committed.undo_on_remove.iter().map(ToString::to_string));
    for (name, component) in &committed.components {
        let begun = component.begun.as_ref().map(|begun| begun.digest.clone());
        parts.extend([name.to_string(), text(&component.digest), text(&begun)]);
    }
    let once = committed.once.begun.iter();
    parts.extend(once.map(|(name, uid)| format!("{name} {uid}")));
    parts.extend(committed.once.doubts.iter().cloned());
    parts
}

fn as_text<S: serde::Serializer>(key: &ObjectKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(key)
}

#[cfg(test)]
mod tests;
