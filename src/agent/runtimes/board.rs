//! The board on which the runtime tasks of one source write how they stand, and its home task reads it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use crate::agent::bell::Bell;
use crate::fleet::RuntimeName;
use crate::model::api::{CatalogMode, RuntimesSpec};
use crate::report::{RuntimeState, RuntimesReport};

/// How the runtimes of one source stand. A change rings the bell of the source's home task.
#[derive(Debug)]
pub(in crate::agent) struct Board {
    states: Mutex<BTreeMap<RuntimeName, RuntimeState>>,
    home: Bell,
}

// === impl Board ===

impl Board {
    pub(in crate::agent) fn new(home: Bell) -> Self {
        Self {
            states: Mutex::default(),
            home,
        }
    }

    /// Writes how a runtime stands. Returns whether that is news.
    pub(in crate::agent) fn set(&self, name: &RuntimeName, state: RuntimeState) -> bool {
        let before = self.states().insert(name.clone(), state.clone());
        let news = before != Some(state);
        if news {
            self.home.ring();
        }
        news
    }

    /// Takes a runtime off, since it is gone or nobody may touch it.
    pub(in crate::agent) fn remove(&self, name: &RuntimeName) {
        if self.states().remove(name).is_some() {
            self.home.ring();
        }
    }

    /// Returns how all stand; nothing where the source has no runtimes.
    pub(in crate::agent) fn report(&self, spec: &RuntimesSpec) -> Option<RuntimesReport> {
        if spec.catalog == CatalogMode::Off {
            return None;
        }
        let states: BTreeMap<String, RuntimeState> = self
            .states()
            .iter()
            .map(|(name, state)| (name.to_string(), state.clone()))
            .collect();
        let tolerated = spec.tolerated(states.len());
        Some(RuntimesReport { states, tolerated })
    }

    fn states(&self) -> MutexGuard<'_, BTreeMap<RuntimeName, RuntimeState>> {
        self.states
            .lock()
            .expect("nothing panics while holding the board")
    }
}
