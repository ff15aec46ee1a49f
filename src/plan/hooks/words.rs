//! Holds of migrations in words: which migration, what it waits for, since when, whose it is, and the command that ends it.

use crate::desired::HeldMigration;
use crate::model::migration::{FailurePolicy, HookPhase, HookScope};
use crate::model::{ComponentName, Hold, HoldReason, limits};

use super::input::{HookState, MigrationStand, Stand};
use super::{DueHook, DueMigration};

/// A hook that is about to be judged.
pub(super) fn not_begun(due: &DueHook) -> Hold {
    Hold {
        what: subject(due),
        reason: HoldReason::MigrationPending,
        message: format!(
            "{} {} judged {}; it goes on by itself",
            names(due),
            if due.migrations.len() == 1 {
                "is"
            } else {
                "are"
            },
            moment(due)
        ),
        place: due.migrations.first().map(|it| it.migration.place.clone()),
    }
}

/// The migrations of a hook that stand in the way.
pub(super) fn stands(due: &DueHook, state: &HookState) -> Vec<Hold> {
    let find = |stand: &MigrationStand| {
        let mut migrations = due.migrations.iter();
        migrations.find(|it| it.migration.name == stand.migration)
    };
    let failed = state.failed.iter().filter(|stand| {
        // What only warns is told by its event and its Run.
        find(stand).is_none_or(|it| it.failure_policy(&due.hook) != FailurePolicy::Warn)
    });
    let all = state.open.iter().chain(failed);
    all.map(|stand| of_stand(due, stand, find(stand))).collect()
}

fn of_stand(due: &DueHook, stand: &MigrationStand, migration: Option<&DueMigration>) -> Hold {
    let owner = migration.map_or_else(String::new, |it| {
        format!(" (owner {})", it.migration.spec.owner)
    });
    let since = stand
        .since
        .map_or_else(String::new, |since| format!(" since {since}"));
    let verb = match stand.stand {
        Stand::Judging => "is being judged",
        Stand::Running => "is under way",
        Stand::Blocked => "is blocked",
        Stand::Paused => "is paused",
        Stand::Manual => "needs a person",
        Stand::Failed => "has failed",
        Stand::Cancelled => "was cancelled",
    };
    // What follows in a run's message is the way out, which stands below.
    let message = match stand.message.lines().next() {
        None | Some("") => String::new(),
        Some(line) => format!(": {}", line.trim_end_matches('.')),
    };
    Hold {
        what: format!("migration {} of {}", stand.migration, subject(due)),
        reason: match stand.stand {
            Stand::Judging | Stand::Running => HoldReason::MigrationPending,
            Stand::Blocked => HoldReason::MigrationBlocked,
            Stand::Paused | Stand::Manual | Stand::Cancelled => HoldReason::MigrationManual,
            Stand::Failed => HoldReason::MigrationFailed,
        },
        message: format!(
            "it{owner} {verb}{since}{message}. {}",
            way_out(due, stand, migration)
        ),
        place: migration.map(|it| it.migration.place.clone()),
    }
}

fn way_out(due: &DueHook, stand: &MigrationStand, migration: Option<&DueMigration>) -> String {
    let held = match (&due.hook.scope, due.hook.phase) {
        (HookScope::Global, HookPhase::Pre) => {
            "nothing of this target is changed before it ends well".to_owned()
        }
        (HookScope::Global, HookPhase::Post) => {
            "the deploy is not complete before it ends well".to_owned()
        }
        (HookScope::Component(name), HookPhase::Pre) => {
            format!("nothing of {name} is changed before it ends well")
        }
        (HookScope::Component(name), HookPhase::Post) => {
            format!("{name} is not committed before it ends well")
        }
    };
    let held = match migration.map(|it| it.failure_policy(&due.hook)) {
        Some(FailurePolicy::BlockDeploy) if stand.stand == Stand::Failed => {
            "nothing of this target is changed before it ends well".to_owned()
        }
        _ => held,
    };
    let Some(run) = &stand.run else {
        return held;
    };
    let command = match stand.stand {
        Stand::Judging | Stand::Running => format!("see fairway describe run {run}"),
        Stand::Blocked => format!(
            "it goes on by itself once that is so, and without it by fairway run override {run} --for 1h --reason '…'"
        ),
        Stand::Paused => format!("fairway run resume {run} --reason '…'"),
        Stand::Manual => format!(
            "look with fairway describe run {run}, and say what you saw: fairway run resolve {run} STEP done|again|fail --reason '…'"
        ),
        Stand::Failed | Stand::Cancelled => {
            format!("fairway run retry {run} --reason '…' tries again")
        }
    };
    format!("{held}; {command}")
}

/// A migration that cannot run.
pub(super) fn held(what: &str, migration: &HeldMigration) -> Hold {
    Hold {
        what: what.to_owned(),
        reason: HoldReason::MigrationHeld,
        message: format!(
            "its migration {} cannot run: {}. Nothing of it is changed before that is mended",
            migration.name, migration.message
        ),
        place: Some(migration.place.clone()),
    }
}

/// A component for which the record has no room.
pub(super) fn too_many(name: &ComponentName) -> Hold {
    Hold {
        what: name.to_string(),
        reason: HoldReason::MigrationHeld,
        message: format!(
            "more than {} components of this source have migrations, which is more than its record can hold; split the source, or \
             retire migrations",
            limits::COMMITTED_MAX
        ),
        place: None,
    }
}

/// A post hook that does not run, since something before it has failed.
pub(super) fn suppressed(due: &DueHook, why: &str) -> Hold {
    Hold {
        what: subject(due),
        reason: HoldReason::MigrationSuppressed,
        message: format!(
            "{} {} not run, since what comes before has failed: {why}. This goes on by itself as soon as that is mended",
            names(due),
            if due.migrations.len() == 1 {
                "is"
            } else {
                "are"
            },
        ),
        place: due.migrations.first().map(|it| it.migration.place.clone()),
    }
}

fn subject(due: &DueHook) -> String {
    match &due.hook.scope {
        HookScope::Global => format!("{} of the whole deploy", due.hook.phase.as_str()),
        HookScope::Component(name) => format!("{} of {name}", due.hook.phase.as_str()),
    }
}

fn moment(due: &DueHook) -> &'static str {
    match (&due.hook.scope, due.hook.phase) {
        (HookScope::Global, HookPhase::Pre) => "before anything is changed",
        (HookScope::Global, HookPhase::Post) => "now that everything is applied",
        (HookScope::Component(_), HookPhase::Pre) => "before anything of it is changed",
        (HookScope::Component(_), HookPhase::Post) => "now that all of it is applied and healthy",
    }
}

fn names(due: &DueHook) -> String {
    let names: Vec<&str> = due
        .migrations
        .iter()
        .map(|it| it.migration.name.as_str())
        .collect();
    let rest = names.len().saturating_sub(5);
    let listed = names[..names.len() - rest].join(", ");
    match (names.len(), rest) {
        (1, _) => format!("migration {listed}"),
        (_, 0) => format!("migrations {listed}"),
        _ => format!("migrations {listed} and {rest} more"),
    }
}
