//! The board on which the runtime tasks of one source write how they stand, and its home task reads it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use crate::agent::bell::Bell;
use crate::fleet::RuntimeName;
use crate::model::Revision;
use crate::model::api::{CatalogMode, RuntimesSpec};
use crate::report::{RuntimeState, RuntimesReport};

/// How the runtimes of one source stand. A change rings the bell of the source's home task.
#[derive(Debug)]
pub(in crate::agent) struct Board {
    written: Mutex<Written>,
    home: Bell,
}

#[derive(Debug, Default)]
struct Written {
    /// Whether it is known which runtimes there are.
    listed: bool,
    /// How each stands, with the revision that this was said of; none before the first result.
    states: BTreeMap<RuntimeName, Option<(Revision, RuntimeState)>>,
}

// === impl Board ===

impl Board {
    pub(in crate::agent) fn new(home: Bell) -> Self {
        Self {
            written: Mutex::default(),
            home,
        }
    }

    /// Notes that the runtimes are known now.
    pub(super) fn listed(&self) {
        let before = std::mem::replace(&mut self.written().listed, true);
        if !before {
            self.home.ring();
        }
    }

    /// Puts a runtime on the board, of which nothing is known yet.
    pub(super) fn add(&self, name: &RuntimeName) {
        self.written().states.entry(name.clone()).or_insert(None);
        self.home.ring();
    }

    /// Writes how a runtime stands with a revision.
    pub(super) fn set(&self, name: &RuntimeName, revision: &Revision, state: RuntimeState) {
        let said = Some((revision.clone(), state));
        let before = self.written().states.insert(name.clone(), said.clone());
        if before != Some(said) {
            self.home.ring();
        }
    }

    /// Takes a runtime off, since it is gone or nobody may touch it.
    pub(super) fn remove(&self, name: &RuntimeName) {
        if self.written().states.remove(name).is_some() {
            self.home.ring();
        }
    }

    /// Forgets everything, since the runtimes are not followed any more.
    pub(super) fn clear(&self) {
        *self.written() = Written::default();
    }

    /// Returns how all stand with a revision; nothing where the source has no runtimes.
    pub(in crate::agent) fn report(
        &self,
        spec: &RuntimesSpec,
        revision: Option<&Revision>,
    ) -> Option<RuntimesReport> {
        if spec.catalog == CatalogMode::Off {
            return None;
        }
        let written = self.written();
        let states: BTreeMap<String, RuntimeState> = written
            .states
            .iter()
            .map(|(name, said)| (name.to_string(), now(said.as_ref(), revision)))
            .collect();
        let tolerated = spec.tolerated(states.len());
        Some(RuntimesReport {
            listed: written.listed,
            states,
            tolerated,
        })
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written
            .lock()
            .expect("nothing panics while holding the board")
    }
}

/// What was said of another revision counts only where it stands in the way of this one, too.
fn now(said: Option<&(Revision, RuntimeState)>, revision: Option<&Revision>) -> RuntimeState {
    match said {
        Some((of, state)) if Some(of) == revision || *state != RuntimeState::Synced => {
            state.clone()
        }
        _ => RuntimeState::Behind("it has not come to this revision yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_yet_and_what_was_said_of_another_revision_is_behind() {
        let board = Board::new(Bell::default());
        let spec = RuntimesSpec {
            catalog: CatalogMode::Sync,
            ..RuntimesSpec::default()
        };
        let (old, new) = (Revision::commit("main", "1"), Revision::commit("main", "2"));
        let name = RuntimeName::new("one").unwrap();
        assert!(!board.report(&spec, Some(&old)).unwrap().listed);
        board.listed();
        board.add(&name);
        let state = |revision| {
            let report = board.report(&spec, Some(revision)).unwrap();
            assert!(report.listed);
            report.states["one"].clone()
        };
        assert!(matches!(state(&old), RuntimeState::Behind(_)));
        board.set(&name, &old, RuntimeState::Synced);
        assert_eq!(state(&old), RuntimeState::Synced);
        assert!(matches!(state(&new), RuntimeState::Behind(_)));
        board.set(&name, &old, RuntimeState::Unreachable("gone".to_owned()));
        assert!(matches!(state(&new), RuntimeState::Unreachable(_)));
        board.clear();
        assert!(!board.report(&spec, Some(&new)).unwrap().listed);
    }
}
