//! Holds of migrations in words: which migration, what it waits for, since when, whose it is, and the command that ends it.

use crate::desired::HeldMigration;
use crate::model::migration::{FailurePolicy, HookPhase, HookScope};
use crate::model::{ComponentName, Hold, HoldReason, limits};

use super::input::{HookState, MigrationStand, Stand, UndoState};
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

/// Hooks that are judged before anything of their deploy is changed, each with what that waits for.
pub(super) fn preflight(hooks: &[(&DueHook, &str)]) -> Hold {
    let migrations: Vec<&str> = hooks
        .iter()
        .flat_map(|(due, _)| &due.migrations)
        .map(|it| it.migration.name.as_str())
        .collect();
    let waits = hooks.iter().map(|(_, message)| *message);
    let waits = waits.filter(|message| !message.is_empty()).min();
    let mut places = hooks.iter().flat_map(|(due, _)| &due.migrations);
    Hold {
        what: "every change of the deploy".to_owned(),
        reason: HoldReason::MigrationPending,
        message: format!(
            "{} {} judged before anything is changed{}; it goes on by itself",
            named(&migrations),
            if migrations.len() == 1 { "is" } else { "are" },
            waits.map_or_else(String::new, |message| format!(" ({message})")),
        ),
        place: places.next().map(|it| it.migration.place.clone()),
    }
}

/// A migration that preflight has found must not begin as things are.
pub(super) fn found(due: &DueHook, stand: &MigrationStand, migration: &DueMigration) -> Hold {
    let held = match (&due.hook.scope, migration.failure_policy(&due.hook)) {
        (_, FailurePolicy::BlockDeploy) => "nothing of this target is changed before it may begin",
        (HookScope::Global, _) => "the deploy is not complete before it ends well",
        (HookScope::Component(name), _) => {
            &format!("nothing of {name} is changed before it may begin")
        }
    };
    let way_out = with_command(held.to_owned(), stand);
    of_stand_with(due, stand, Some(migration), &way_out)
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
    of_stand_with(due, stand, migration, &way_out(due, stand, migration))
}

fn of_stand_with(
    due: &DueHook,
    stand: &MigrationStand,
    migration: Option<&DueMigration>,
    way_out: &str,
) -> Hold {
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
        Stand::Manual | Stand::Lost => "needs a person",
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
        reason: reason_of(stand.stand),
        message: format!("it{owner} {verb}{since}{message}. {way_out}"),
        place: migration.map(|it| it.migration.place.clone()),
    }
}

fn reason_of(stand: Stand) -> HoldReason {
    match stand {
        Stand::Judging | Stand::Running => HoldReason::MigrationPending,
        Stand::Blocked => HoldReason::MigrationBlocked,
        Stand::Paused | Stand::Manual | Stand::Lost | Stand::Cancelled => {
            HoldReason::MigrationManual
        }
        Stand::Failed => HoldReason::MigrationFailed,
    }
}

/// The deletions of a removed component, which come after what its migrations have changed is taken back.
pub(super) fn undo_first(
    name: &ComponentName,
    state: Option<&UndoState>,
    is_released: bool,
) -> Hold {
    let first =
        "it said `onRemove: Undo`, so that what its migrations have changed is taken back first";
    let after = format!("what is left of {name} is deleted after that");
    let undoing = state.and_then(|it| it.undoing.as_ref());
    let running = state.and_then(|it| it.running.as_ref());
    let (reason, message) = match (undoing, running, state) {
        (Some(stand), _, _) => (reason_of(stand.stand), taken_back(name, stand)),
        (None, Some(stand), _) => {
            let run = stand.run.as_deref().unwrap_or_default();
            let message = format!(
                "{first}, and run {run} is not over; {after}; see fairway describe run {run}"
            );
            (HoldReason::MigrationPending, message)
        }
        (None, None, Some(_)) if !is_released => (
            HoldReason::MigrationPending,
            format!("{first}, once the rest of its deletions is approved; {after}"),
        ),
        (None, None, Some(state)) => {
            let runs = match state.open {
                1 => "1 run".to_owned(),
                count => format!("{count} runs"),
            };
            (
                HoldReason::MigrationPending,
                format!("{first}: {runs}; {after}"),
            )
        }
        (None, None, None) => (
            HoldReason::MigrationPending,
            format!("{first}, and it is not known yet which runs there are; {after}"),
        ),
    };
    Hold {
        what: format!("deletion of {name}"),
        reason,
        message,
        place: None,
    }
}

/// A run that is being taken back since its component was removed.
fn taken_back(name: &ComponentName, stand: &MigrationStand) -> String {
    let run = stand.run.as_deref().unwrap_or_default();
    let message = match stand.message.lines().next() {
        None | Some("") => String::new(),
        Some(line) => format!(": {}", line.trim_end_matches('.')),
    };
    let (verb, command) = match stand.stand {
        Stand::Judging | Stand::Running => {
            ("is under way", format!("see fairway describe run {run}"))
        }
        Stand::Blocked => ("is blocked", format!("see fairway describe run {run}")),
        Stand::Paused => (
            "is paused",
            format!("fairway run resume {run} --reason '…'"),
        ),
        Stand::Manual | Stand::Lost => (
            "needs a person",
            format!(
                "look with fairway describe run {run}, and say what you saw: fairway run resolve {run} STEP done|again|fail --reason '…'; fairway run resolve {run} keep --reason '…' leaves what is not taken back as it is"
            ),
        ),
        Stand::Failed | Stand::Cancelled => (
            if stand.stand == Stand::Failed {
                "has failed"
            } else {
                "was cancelled"
            },
            format!(
                "fairway run retry {run} --reason '…' tries again, and fairway run resolve {run} keep --reason '…' leaves what is not taken back as it is"
            ),
        ),
    };
    format!(
        "taking back run {run} of migration {} {verb}{message}. What is left of {name} is deleted only after that has ended well, or was given up; {command}",
        stand.migration
    )
}

/// A removed component that asks for an undo and has no object left whose deletion could be approved.
pub(super) fn unannounced_undo(name: &ComponentName) -> Hold {
    Hold {
        what: format!("undo of {name}"),
        reason: HoldReason::ApprovalNeeded,
        message: format!(
            "{name} is gone and said `onRemove: Undo`, but nothing of it is left here whose deletion could be approved. What its migrations have changed is taken back once fairway.yaml announces the removal; fairway plan --remove {name} shows it:\nremovals:\n  - component: {name}"
        ),
        place: None,
    }
}

/// A component that is in git again while it is still being taken back.
pub(super) fn back_too_early(name: &ComponentName, state: &UndoState) -> Hold {
    let stand = state.undoing.as_ref();
    let run = stand.and_then(|it| it.run.as_deref()).unwrap_or_default();
    Hold {
        what: name.to_string(),
        reason: stand.map_or(HoldReason::MigrationPending, |it| reason_of(it.stand)),
        message: format!(
            "it is in git again while run {run} is taken back, since it was removed with `onRemove: Undo`. Nothing of it is changed before that run has ended; nothing else is taken back; see fairway describe run {run}"
        ),
        place: None,
    }
}

/// A component whose `onRemove: Undo` has no room in the record.
pub(super) fn too_many_to_undo(name: &ComponentName) -> Hold {
    Hold {
        what: name.to_string(),
        reason: HoldReason::MigrationHeld,
        message: format!(
            "more than {} components say `onRemove: Undo`, which is more than the record of this target can hold: this one would be \
             kept. Split the source, or take it out of some",
            limits::COMMITTED_MAX
        ),
        place: None,
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
        Some(FailurePolicy::BlockDeploy) if matches!(stand.stand, Stand::Failed | Stand::Lost) => {
            "nothing of this target is changed before it ends well".to_owned()
        }
        _ => held,
    };
    with_command(held, stand)
}

fn with_command(held: String, stand: &MigrationStand) -> String {
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
        Stand::Lost => format!(
            "look whether it took effect, and say what you saw: fairway run resolve {run} done|again|fail --reason '…'"
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
    let names = due.migrations.iter();
    let names: Vec<&str> = names.map(|it| it.migration.name.as_str()).collect();
    named(&names)
}

fn named(names: &[&str]) -> String {
    let rest = names.len().saturating_sub(5);
    let listed = names[..names.len() - rest].join(", ");
    match (names.len(), rest) {
        (1, _) => format!("migration {listed}"),
        (_, 0) => format!("migrations {listed}"),
        _ => format!("migrations {listed} and {rest} more"),
    }
}
