//! How the runtimes of a source stand: counts, the condition `CatalogSynced`, and what that means for `Ready`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::text::{bounded, counted, some_of};
use crate::model::api::ConditionReason as Reason;
use crate::model::api::ConditionStatus::{self, False, True, Unknown};
use crate::model::api::ConditionType as Type;
use crate::model::api::{RuntimesStatus, TargetStatus, set, unset};
use crate::model::limits::CONDITION_MESSAGE_MAX;

/// How one runtime stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuntimeState {
    /// Its catalog is as the last revision wants it.
    Synced,
    /// It is not there yet; the text says why.
    Behind(String),
    /// Something is held there until a person does something; the text says what.
    Held(String),
    /// It cannot be reached; the text says why.
    Unreachable(String),
}

/// How all runtimes of a source stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimesReport {
    /// Whether it is known which runtimes there are; before that, nothing may be said of all.
    pub listed: bool,
    /// The runtimes by name.
    pub states: BTreeMap<String, RuntimeState>,
    /// How many may be unreachable.
    pub tolerated: usize,
}

/// Status, reason and message of a condition.
pub(super) type Words = (ConditionStatus, Reason, String);

// === impl RuntimesReport ===

impl RuntimesReport {
    /// Returns the counts.
    pub fn status(&self) -> RuntimesStatus {
        let count = |fits: fn(&RuntimeState) -> bool| {
            i64::try_from(self.states.values().filter(|state| fits(state)).count())
                .unwrap_or(i64::MAX)
        };
        RuntimesStatus {
            total: count(|_| true),
            synced: count(|state| *state == RuntimeState::Synced),
            behind: count(|state| matches!(state, RuntimeState::Behind(_) | RuntimeState::Held(_))),
            unreachable: count(|state| matches!(state, RuntimeState::Unreachable(_))),
        }
    }

    /// Returns `CatalogSynced`.
    pub(super) fn catalog_synced(&self) -> Words {
        if !self.listed {
            let message = "it is not known yet which runtimes there are".to_owned();
            return (Unknown, Reason::Behind, message);
        }
        let total = counted(self.states.len(), "runtime");
        let held = self.named(|state| match state {
            RuntimeState::Held(why) => Some(why),
            _ => None,
        });
        let behind = self.named(|state| match state {
            RuntimeState::Behind(why) => Some(why),
            _ => None,
        });
        let unreachable = self.named(|state| match state {
            RuntimeState::Unreachable(why) => Some(why),
            _ => None,
        });
        let words = |what: &str, names: &[String]| {
            let some = some_of(names.len(), names.iter().cloned());
            format!("{} of {total} {what}: {some}", names.len())
        };
        if !held.is_empty() {
            (False, Reason::Held, words("held", &held))
        } else if !behind.is_empty() {
            (Unknown, Reason::Behind, words("behind", &behind))
        } else if !unreachable.is_empty() {
            (
                False,
                Reason::Unreachable,
                words("unreachable", &unreachable),
            )
        } else {
            (True, Reason::Synced, format!("{total} in step"))
        }
    }

    /// Returns what spoils `Ready`: all that spoils `CatalogSynced`, except for unreachable runtimes that are tolerated.
    pub(super) fn spoils_ready(&self) -> Option<Words> {
        let (status, reason, message) = self.catalog_synced();
        let unreachable = usize::try_from(self.status().unreachable).unwrap_or(usize::MAX);
        let tolerated = reason == Reason::Unreachable && unreachable <= self.tolerated;
        (status != True && !tolerated).then_some((status, reason, message))
    }

    fn named<'a>(&'a self, why: fn(&'a RuntimeState) -> Option<&'a String>) -> Vec<String> {
        self.states
            .iter()
            .filter_map(|(name, state)| Some(format!("{name}: {}", why(state)?)))
            .collect()
    }
}

/// Returns the status of a runtime's Target on which no pass could be done: it cannot be reached, or must not be written to.
/// What is known of the time before stays.
pub fn target_blocked(
    before: &TargetStatus,
    source: &str,
    (reason, message): (Reason, &str),
    now: Timestamp,
) -> TargetStatus {
    let mut status = before.clone();
    status.source = Some(source.to_owned());
    let message = bounded(message, CONDITION_MESSAGE_MAX);
    let mut write = |type_, value, reason| {
        let words = (value, reason, message.clone());
        set(&mut status.conditions, type_, words, None, now);
    };
    write(Type::Ready, False, reason);
    if reason == Reason::Unreachable {
        write(Type::Reconciling, True, Reason::Retrying);
        unset(&mut status.conditions, Type::Stalled);
    } else {
        write(Type::Stalled, True, reason);
        unset(&mut status.conditions, Type::Reconciling);
    }
    status
}

/// Returns the status of a runtime's Target whose catalog somebody else syncs: what it shows of the last revision.
pub fn target_observed(
    before: &TargetStatus,
    source: &str,
    shown: Result<usize, &str>,
    now: Timestamp,
) -> TargetStatus {
    let mut status = before.clone();
    status.source = Some(source.to_owned());
    let words = match shown {
        Ok(objects) => {
            status.objects = i64::try_from(objects).ok();
            (
                True,
                Reason::Synced,
                format!("shows {}", counted(objects, "object")),
            )
        }
        Err(missing) => (
            Unknown,
            Reason::Behind,
            bounded(missing, CONDITION_MESSAGE_MAX),
        ),
    };
    set(&mut status.conditions, Type::Ready, words, None, now);
    unset(&mut status.conditions, Type::Reconciling);
    unset(&mut status.conditions, Type::Stalled);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(states: &[(&str, RuntimeState)], tolerated: usize) -> RuntimesReport {
        let states = states
            .iter()
            .map(|(name, state)| ((*name).to_owned(), state.clone()));
        RuntimesReport {
            listed: true,
            states: states.collect(),
            tolerated,
        }
    }

    fn gone() -> RuntimeState {
        RuntimeState::Unreachable("no route to host".to_owned())
    }

    #[test]
    fn unreachable_runtimes_spoil_ready_only_beyond_what_is_tolerated() {
        let some = [
            ("one", gone()),
            ("two", RuntimeState::Synced),
            ("three", RuntimeState::Synced),
        ];
        let within = report(&some, 1);
        assert_eq!(within.spoils_ready(), None);
        let (status, reason, message) = within.catalog_synced();
        assert_eq!((status, reason), (False, Reason::Unreachable));
        insta::assert_snapshot!(message, @"1 of 3 runtimes unreachable: one: no route to host");
        assert!(report(&some, 0).spoils_ready().is_some());
    }

    #[test]
    fn what_waits_for_a_person_is_said_first() {
        let states = [
            ("one", gone()),
            ("two", RuntimeState::Behind("waits for its turn".to_owned())),
            (
                "three",
                RuntimeState::Held("a deletion waits for approval".to_owned()),
            ),
        ];
        let report = report(&states, 3);
        let (status, reason, message) = report.spoils_ready().unwrap();
        assert_eq!((status, reason), (False, Reason::Held));
        insta::assert_snapshot!(message, @"1 of 3 runtimes held: three: a deletion waits for approval");
        let counts = report.status();
        assert_eq!(
            (
                counts.total,
                counts.synced,
                counts.behind,
                counts.unreachable
            ),
            (3, 0, 2, 1)
        );
    }

    #[test]
    fn all_in_step_and_none_at_all_are_fine() {
        assert_eq!(
            report(&[("one", RuntimeState::Synced)], 0).spoils_ready(),
            None
        );
        let (status, _, message) = report(&[], 0).catalog_synced();
        assert_eq!(status, True);
        insta::assert_snapshot!(message, @"0 runtimes in step");
    }
}
