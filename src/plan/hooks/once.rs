//! What a target remembers of runs that happen once, so that a record that is lost is told apart from one that never was.
//!
//! A run of a migration whose record decides (`OncePerCluster`, `OncePerHop`) is written down here, by the name and the uid of its
//! record, after that record was made and before its first effect. So whatever is not written down has had no effect: killed
//! anywhere, the next agent goes on. What is written down and has no record, or another one, was begun and is lost: a person decides.
//! Where the memory itself is lost, the records that are there tell; of what has none, nobody knows.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::limits;

/// What a target remembers of runs that happen once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Once {
    /// The runs that were begun here, with the uids of their records.
    pub begun: BTreeMap<String, String>,
    /// Migrations of which nobody knows whether they ever ran here: the memory was lost, and there is no record of them.
    pub doubts: BTreeSet<String>,
}

/// A run that happens once, as its record stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnceRun {
    /// The name of the record.
    pub name: String,
    /// Its uid: one that was made anew has another.
    pub uid: String,
    /// The migration.
    pub migration: String,
    /// How far it is.
    pub stand: OnceStand,
}

/// How far a run is that happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceStand {
    /// Its record says nothing: it was just made, or it was put back without what it had said.
    Blank,
    /// It has begun.
    Open,
    /// It is over, or a person is asked what became of it: nothing of it goes on by itself.
    Settled,
    /// Another one took its place before it had an effect.
    Void,
}

/// Whether a run may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It is written down.
    Known,
    /// It is not written down yet, so that no effect of it was begun.
    Unwritten,
    /// What was done before is not in its record.
    Lost(Loss),
}

/// What was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The record of a run that was begun.
    Record,
    /// What the record of a run that was begun has said last: this one was put back as it was at some time before.
    Progress,
    /// What the target remembers, and the record with it.
    Memory,
}

// === impl Once ===

impl Once {
    /// Returns whether a run may go on.
    pub fn trust(&self, run: &OnceRun) -> Trust {
        match self.begun.get(&run.name) {
            Some(uid) if *uid == run.uid => Trust::Known,
            Some(_) if run.stand == OnceStand::Blank => Trust::Lost(Loss::Record),
            Some(_) if run.stand == OnceStand::Open => Trust::Lost(Loss::Progress),
            None if run.stand == OnceStand::Blank && self.doubts.contains(&run.migration) => {
                Trust::Lost(Loss::Memory)
            }
            _ => Trust::Unwritten,
        }
    }

    /// Returns whether one more can be remembered, besides those that wait to be written down.
    pub fn has_room(&self, waiting: usize) -> bool {
        self.begun.len() + waiting < limits::ONCE_REMEMBERED_MAX
    }

    /// Writes down what records tell. `doubtful` are the migrations that happen once, where the memory was lost.
    pub fn learn<'a>(&mut self, runs: &[OnceRun], doubtful: impl Iterator<Item = &'a str>) {
        self.doubts.extend(doubtful.map(str::to_owned));
        for run in runs {
            let is_new = run.stand != OnceStand::Void && self.trust(run) == Trust::Unwritten;
            if is_new && (self.begun.contains_key(&run.name) || self.has_room(0)) {
                self.begun.insert(run.name.clone(), run.uid.clone());
            }
            if self.trust(run) == Trust::Known {
                self.doubts.remove(&run.migration);
            }
        }
        // There is no room for the runs of more than so many either.
        while self.doubts.len() > limits::ONCE_REMEMBERED_MAX {
            self.doubts.pop_last();
        }
    }
}

// === impl Loss ===

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Record => {
                "it was begun on this cluster before, and the record of that was lost: nothing else tells whether it took effect"
            }
            Self::Progress => {
                "its record was put back as it was at some time before, and nothing else tells what was done after that"
            }
            Self::Memory => {
                "what this cluster remembers of migrations that happen once was lost, and so was the record of this one, if there was any: nothing else tells whether it took effect"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn run(name: &str, uid: &str, stand: OnceStand) -> OnceRun {
        OnceRun {
            name: name.to_owned(),
            uid: uid.to_owned(),
            migration: "bill".to_owned(),
            stand,
        }
    }

    fn once(begun: &[(&str, &str)], doubts: &[&str]) -> Once {
        let text = |text: &&str| (*text).to_owned();
        Once {
            begun: begun.iter().map(|(a, b)| (text(a), text(b))).collect(),
            doubts: doubts.iter().map(text).collect(),
        }
    }

    #[rstest]
    #[case::just_made(&[], &[], OnceStand::Blank, Trust::Unwritten)]
    #[case::memory_lost(&[], &[], OnceStand::Open, Trust::Unwritten)]
    #[case::written(&[("a", "1")], &[], OnceStand::Blank, Trust::Known)]
    #[case::under_way(&[("a", "1")], &["bill"], OnceStand::Open, Trust::Known)]
    #[case::made_anew(&[("a", "0")], &[], OnceStand::Blank, Trust::Lost(Loss::Record))]
    #[case::put_back(&[("a", "0")], &[], OnceStand::Open, Trust::Lost(Loss::Progress))]
    #[case::put_back_and_over(&[("a", "0")], &[], OnceStand::Settled, Trust::Unwritten)]
    #[case::all_lost(&[], &["bill"], OnceStand::Blank, Trust::Lost(Loss::Memory))]
    #[case::doubt_is_of_another(&[], &["mail"], OnceStand::Blank, Trust::Unwritten)]
    #[case::a_record_tells(&[], &["bill"], OnceStand::Open, Trust::Unwritten)]
    fn a_run_goes_on_where_nothing_can_be_missing(
        #[case] begun: &[(&str, &str)],
        #[case] doubts: &[&str],
        #[case] stand: OnceStand,
        #[case] wanted: Trust,
    ) {
        assert_eq!(once(begun, doubts).trust(&run("a", "1", stand)), wanted);
    }

    #[test]
    fn records_are_learned_and_end_doubts_and_what_is_lost_is_not() {
        let mut memory = once(&[("a", "0")], &[]);
        memory.learn(&[run("a", "1", OnceStand::Blank)], std::iter::empty());
        assert_eq!(memory, once(&[("a", "0")], &[]));
        memory.learn(&[run("a", "1", OnceStand::Settled)], std::iter::empty());
        assert_eq!(memory, once(&[("a", "1")], &[]));

        // The memory was lost: what has a record is known again, and what has none is in doubt until it has.
        let mut memory = Once::default();
        memory.learn(&[], ["bill", "mail"].into_iter());
        memory.learn(&[run("a", "1", OnceStand::Blank)], ["bill"].into_iter());
        assert_eq!(memory, once(&[], &["bill", "mail"]));
        memory.learn(&[run("a", "1", OnceStand::Settled)], ["bill"].into_iter());
        assert_eq!(memory, once(&[("a", "1")], &["mail"]));
        let before = memory.clone();
        memory.learn(&[run("a", "1", OnceStand::Settled)], ["bill"].into_iter());
        memory.learn(&[run("b", "1", OnceStand::Void)], std::iter::empty());
        assert_eq!(memory, before);
    }

    #[test]
    fn no_more_is_remembered_than_has_room() {
        let mut memory = Once::default();
        let runs: Vec<OnceRun> = (0..=limits::ONCE_REMEMBERED_MAX)
            .map(|number| run(&format!("run-{number:04}"), "1", OnceStand::Blank))
            .collect();
        memory.learn(&runs, std::iter::empty());
        assert_eq!(memory.begun.len(), limits::ONCE_REMEMBERED_MAX);
        let last = runs.last().unwrap();
        assert_eq!(memory.trust(last), Trust::Unwritten);
        assert!(!memory.has_room(0));
        // What is known already is learned anew all the same.
        let again = run("run-0000", "2", OnceStand::Settled);
        memory.learn(std::slice::from_ref(&again), std::iter::empty());
        assert_eq!(memory.trust(&again), Trust::Known);
    }
}
