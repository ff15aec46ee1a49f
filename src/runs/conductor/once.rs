//! Runs that happen once: which record counts, and whether it may go on. What the target remembers decides (`plan::hooks::Once`); a
//! conductor knows that much of it as was written down.

use super::naming::run_name;
use super::state::{RunEntry, State};
use crate::model::api::{Run, RunPhase, RunSpec, RunStatus};
use crate::model::migration::{DeployAction, FailurePolicy, RunPolicy};
use crate::model::{Digest, limits};
use crate::plan::hooks::{OnceRun, OnceStand, Trust};
use crate::runs::machine::is_lost;

/// What there is of a migration before anything is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// A Run that counts.
    Existing(String),
    /// None; this would be its name.
    New(String),
    /// None, and there was one: the one of this name asks a person.
    Lost(String),
}

/// Returns whether the record of a run decides, and not the state of the cluster.
pub fn happens_once(run: &Run) -> bool {
    run.spec.definition.policy.run.is_once()
}

/// Returns how a run stands that happens once; none of one that does not.
pub(super) fn once_run(run: &Run) -> Option<OnceRun> {
    happens_once(run).then(|| OnceRun {
        name: run.metadata.name.clone().unwrap_or_default(),
        uid: run.metadata.uid.clone().unwrap_or_default(),
        migration: run.spec.migration.clone(),
        stand: stand_of(run),
    })
}

fn stand_of(run: &Run) -> OnceStand {
    let Some(status) = &run.status else {
        return OnceStand::Blank;
    };
    if is_void(status) {
        OnceStand::Void
    } else if status.phase.is_over() || is_lost(status) {
        OnceStand::Settled
    } else if *status == RunStatus::default() {
        OnceStand::Blank
    } else {
        OnceStand::Open
    }
}

/// Returns whether another run may take its place: it has done nothing.
fn is_void(status: &RunStatus) -> bool {
    // What was taken back may happen once more.
    if status.is_undone() {
        return true;
    }
    status.phase == RunPhase::Superseded && status.started_at.is_none()
}

/// Returns whether a person is asked about a run as a whole: nothing of it is under way.
pub(super) fn is_asked(run: &Run) -> bool {
    run.status.as_ref().is_some_and(is_lost)
}

/// Returns whether that keeps other migrations of its hook from beginning.
pub(super) fn is_in_the_way(run: &Run) -> bool {
    is_asked(run) && run.spec.definition.policy.on_failure != Some(FailurePolicy::Warn)
}

// === impl State ===

impl State {
    /// Returns whether a run may go on; one that does not happen once always may.
    pub(super) fn trust(&self, run: &Run) -> Trust {
        let Some(of_it) = once_run(run) else {
            return Trust::Known;
        };
        let remembered = self.once.as_ref();
        remembered.map_or(Trust::Unwritten, |once| once.trust(&of_it))
    }

    /// Returns the runs that happen once, as their records stand.
    pub(super) fn once_runs(&self) -> Option<Vec<OnceRun>> {
        let runs = self.runs.values();
        self.is_listed
            .then(|| runs.filter_map(|entry| once_run(&entry.run)).collect())
    }

    /// Returns why a run that happens once must not be made now; none where it may.
    pub(super) fn no_room(&self, name: &str) -> Option<String> {
        let Some(once) = &self.once else {
            return Some(
                "it is not known yet which migrations that happen once were begun".to_owned(),
            );
        };
        if once.begun.contains_key(name) {
            return None;
        }
        let runs = self.runs.values();
        let waiting = runs.filter(|entry| {
            once_run(&entry.run).is_some_and(|run| {
                run.stand != OnceStand::Void && !once.begun.contains_key(&run.name)
            })
        });
        (!once.has_room(waiting.count())).then(|| {
            format!(
                "the Target remembers {} runs that happen once and has no room for more; take those out of its `status.onceRuns` whose migrations never come back",
                limits::ONCE_REMEMBERED_MAX
            )
        })
    }

    /// Looks for the Run of a migration that happens once: by the names that it can have, in what is there and in what is remembered.
    pub(super) fn find_once(&self, spec: &RunSpec, previous: Option<&Digest>) -> Found {
        let begun = self.once.as_ref().map(|once| &once.begun);
        let (mut free, mut lost) = (None, None);
        for again in 0..limits::RUNS_AGAIN_MAX {
            let name = run_name(spec, previous, again);
            match self.runs.get(&name) {
                Some(entry) if entry.run.status.as_ref().is_some_and(is_void) => {}
                Some(_) => return Found::Existing(name),
                None if begun.is_some_and(|begun| begun.contains_key(&name)) => {
                    lost.get_or_insert(name);
                }
                None => {
                    free.get_or_insert(name);
                }
            }
        }
        if let Some(name) = self.hop_from_anywhere(spec) {
            return Found::Existing(name);
        }
        let doubts = self.once.as_ref().map(|once| &once.doubts);
        let is_doubtful = doubts.is_some_and(|doubts| doubts.contains(&spec.migration));
        match (lost, free) {
            (Some(name), _) => Found::Lost(name),
            (None, Some(name)) if is_doubtful => Found::Lost(name),
            (None, Some(name)) => Found::New(name),
            (None, None) => Found::Existing(run_name(spec, previous, limits::RUNS_AGAIN_MAX - 1)),
        }
    }

    /// An upgrade from nobody knows where, since the record of the target was lost, is the hop that a Run tells of.
    fn hop_from_anywhere(&self, spec: &RunSpec) -> Option<String> {
        let is_unknown = spec.definition.policy.run == RunPolicy::OncePerHop
            && spec.from.is_none()
            && spec.action == Some(DeployAction::Upgrade);
        let is_it = |entry: &RunEntry| {
            let one = &entry.run.spec;
            one.migration == spec.migration
                && one.component == spec.component
                && one.to == spec.to
                && one.cluster_uid == spec.cluster_uid
                && once_run(&entry.run).is_some_and(|run| run.stand != OnceStand::Void)
        };
        let mut runs = self.runs.iter();
        let found = runs.find(|(_, entry)| is_unknown && is_it(entry));
        found.map(|(name, _)| name.clone())
    }
}
