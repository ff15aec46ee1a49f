//! Waves: in which order runtimes get a revision.
//!
//! Home comes first, since nothing is published before its pass. Then come the runtimes that use what has changed, then all
//! others. A wave ends when each member has come to a result, good or bad, or has missed its deadline: one dead runtime holds
//! up nobody for longer than that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::kyma::RuntimeName;
use crate::model::{Revision, limits};

/// The place of a runtime in the order of one revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wave {
    /// It uses what has changed.
    Users,
    /// It does not.
    Others,
}

impl Wave {
    /// Returns the word that metrics carry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Others => "others",
        }
    }
}

/// The waves of the revision that is being rolled out. Times are durations since any fixed moment.
#[derive(Debug, Default)]
pub struct Waves {
    revision: Option<Revision>,
    began: Duration,
    members: BTreeMap<RuntimeName, Wave>,
    done: BTreeSet<RuntimeName>,
}

impl Waves {
    /// Begins the waves of a revision, with the place of each runtime. The same revision again changes nothing but the places
    /// of runtimes that are new.
    pub fn begin(
        &mut self,
        revision: &Revision,
        members: BTreeMap<RuntimeName, Wave>,
        now: Duration,
    ) {
        if self.revision.as_ref() != Some(revision) {
            self.revision = Some(revision.clone());
            self.began = now;
            self.done.clear();
            self.members = members;
            return;
        }
        self.members.retain(|name, _| members.contains_key(name));
        for (name, wave) in members {
            self.members.entry(name).or_insert(wave);
        }
    }

    /// Notes that a runtime has come to a result with a revision. Returns whether that has opened the second wave.
    pub fn done(&mut self, name: &RuntimeName, revision: &Revision) -> bool {
        if self.revision.as_ref() != Some(revision) || !self.done.insert(name.clone()) {
            return false;
        }
        self.wave(name) == Wave::Users && self.users_are_done()
    }

    /// Returns the place of a runtime; one that is not known is among the others.
    pub fn wave(&self, name: &RuntimeName) -> Wave {
        self.members.get(name).copied().unwrap_or(Wave::Others)
    }

    /// Returns how long a runtime has to wait for its turn at most; nothing when it may go now.
    pub fn wait(&self, name: &RuntimeName, now: Duration) -> Option<Duration> {
        if self.wave(name) == Wave::Users {
            return None;
        }
        let left = (self.began + limits::WAVE_DEADLINE).saturating_sub(now);
        (!self.users_are_done() && !left.is_zero()).then_some(left)
    }

    fn users_are_done(&self) -> bool {
        self.members
            .iter()
            .filter(|(_, wave)| **wave == Wave::Users)
            .all(|(name, _)| self.done.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> RuntimeName {
        RuntimeName::new(text).unwrap()
    }

    fn waves(revision: &Revision) -> Waves {
        let mut waves = Waves::default();
        let members = [
            ("user", Wave::Users),
            ("late", Wave::Users),
            ("other", Wave::Others),
        ];
        let members = members.map(|(text, wave)| (name(text), wave));
        waves.begin(revision, members.into(), Duration::from_secs(100));
        waves
    }

    #[test]
    fn others_wait_until_every_user_has_come_to_a_result() {
        let revision = Revision::commit("main", "1");
        let mut waves = waves(&revision);
        let now = Duration::from_secs(101);
        assert_eq!(waves.wait(&name("user"), now), None);
        assert!(waves.wait(&name("other"), now).is_some());
        assert!(!waves.done(&name("user"), &revision));
        assert!(!waves.done(&name("late"), &Revision::commit("main", "older")));
        assert!(waves.wait(&name("other"), now).is_some());
        assert!(waves.done(&name("late"), &revision));
        assert!(!waves.done(&name("late"), &revision));
        assert_eq!(waves.wait(&name("other"), now), None);
    }

    #[test]
    fn a_user_that_misses_its_deadline_holds_up_nobody() {
        let revision = Revision::commit("main", "1");
        let waves = waves(&revision);
        let end = Duration::from_secs(100) + limits::WAVE_DEADLINE;
        let second = Duration::from_secs(1);
        let before = end.saturating_sub(second);
        assert_eq!(waves.wait(&name("other"), before), Some(second));
        assert_eq!(waves.wait(&name("other"), end), None);
    }

    #[test]
    fn a_runtime_that_goes_no_longer_counts_and_a_new_one_finds_its_place() {
        let revision = Revision::commit("main", "1");
        let mut waves = waves(&revision);
        waves.done(&name("user"), &revision);
        let members = [
            ("user", Wave::Users),
            ("new", Wave::Users),
            ("other", Wave::Others),
        ];
        waves.begin(
            &revision,
            members.map(|(text, wave)| (name(text), wave)).into(),
            Duration::from_secs(150),
        );
        assert!(
            waves
                .wait(&name("other"), Duration::from_secs(151))
                .is_some()
        );
        waves.done(&name("new"), &revision);
        assert_eq!(waves.wait(&name("other"), Duration::from_secs(151)), None);
    }
}
