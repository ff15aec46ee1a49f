//! What a pass tells to those who report it.

use std::fmt;

use jiff::Timestamp;

use super::runtimes::RuntimesReport;
use crate::desired::Desired;
use crate::execute;
use crate::model::api::{Claim, ConditionReason};
use crate::model::snapshot::CommitInfo;
use crate::model::{ObjectKey, Revision, SourceName};
use crate::plan::{Plan, Why};

/// One pass of one source on one target, as far as it came.
#[derive(Debug, Clone, Copy)]
pub struct PassReport<'a> {
    /// The source.
    pub source: &'a SourceName,
    /// The cluster's name: `home`.
    pub cluster: &'a str,
    /// The generation of the ReleaseSource that the pass worked with.
    pub generation: i64,
    /// The value of the annotation that asked for this pass, if there is one.
    pub requested_at: Option<&'a str>,
    /// How the last fetch went, in this pass or before it.
    pub fetched: Result<(), &'a FetchFailure>,
    /// The revision that the pass worked with; none before the first fetch that succeeds.
    pub revision: Option<&'a Revision>,
    /// Who made that revision.
    pub commit: &'a CommitInfo,
    /// What the revision wants, where the pass came that far.
    pub desired: Option<&'a Desired>,
    /// The plan that was left after everything possible was done, where the pass came that far. It knows what failed: such an
    /// object is held until it is due again.
    pub plan: Option<&'a Plan>,
    /// What other sources want of what this one owns.
    pub claims: &'a [Claim],
    /// What was done, in order.
    pub effects: &'a [Effect],
    /// How the runtimes of the source stand; none on a runtime, and where the source has none.
    pub runtimes: Option<&'a RuntimesReport>,
    /// What is wrong with the clock of the agent, where anything is.
    pub clock: Option<&'a str>,
    /// Why the pass ended early, as a fragment that completes "failed to …".
    pub failed: Option<&'a str>,
    /// Whether that is since the account that the source names cannot be acted as: nothing goes on before a person does something.
    pub is_of_account: bool,
    /// Whether the process was told to stop before the pass had ended.
    pub stopped: bool,
    /// When the pass started.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
}

/// A fetch that did not succeed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FetchFailure {
    /// What went wrong, as a lowercase fragment without any credential.
    pub message: String,
    /// The way out.
    pub help: Option<String>,
    /// Whether trying again can help.
    pub retryable: bool,
    /// The commit that a branch was rewound to, where following it waits for an approval.
    pub rewound_to: Option<String>,
    /// Whether the revision was read, but is not signed as it has to be.
    pub unverified: bool,
}

/// One thing that was done on the cluster, or tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// When it ended.
    pub at: Timestamp,
    /// The object.
    pub key: ObjectKey,
    /// What was done.
    pub kind: EffectKind,
    /// Digest of what was applied; none for a deletion.
    pub digest: Option<String>,
    /// Why.
    pub why: Why,
    /// How it ended.
    pub result: EffectResult,
}

/// What was done with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EffectKind {
    /// It was applied.
    Apply,
    /// It was deleted.
    Delete,
}

/// How something that was done ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectResult {
    /// The cluster has changed.
    Changed,
    /// The cluster was as it should be already.
    Unchanged,
    /// It failed; the text is a lowercase fragment.
    Failed(String),
}

// === impl PassReport ===

impl PassReport<'_> {
    /// Returns the effects that changed the cluster.
    pub fn changes(&self) -> impl Iterator<Item = &Effect> {
        self.effects
            .iter()
            .filter(|effect| effect.result == EffectResult::Changed)
    }

    /// Returns how many objects of the source are as git wants them; none where nothing could be planned.
    pub fn objects_in_step(&self) -> Option<usize> {
        let plan = self.plan.filter(|_| !self.is_withdrawal())?;
        Some(plan.unchanged)
    }

    /// Returns whether the source is being deleted, and what it has applied with it.
    pub fn is_withdrawal(&self) -> bool {
        self.desired.is_some_and(|desired| desired.withdrawn)
    }

    /// Returns how many actions are left, since the process was told to stop or had no more patience.
    pub fn unfinished(&self) -> usize {
        self.plan.map_or(0, |plan| plan.actions().count())
    }

    /// Returns whether the pass came to its end, whatever that was like.
    pub fn is_finished(&self) -> bool {
        (self.failed.is_none() || self.is_of_account) && !self.stopped
    }

    /// Returns whether the revision is on the cluster as a whole: nothing invalid, held, waiting or left.
    pub fn is_applied_in_full(&self) -> bool {
        self.failed.is_none()
            && self.desired.is_some_and(Desired::is_valid)
            && self
                .plan
                .is_some_and(|plan| plan.holds.is_empty() && plan.pending.is_none())
            && self.unfinished() == 0
    }
}

// === impl FetchFailure ===

impl FetchFailure {
    /// Returns the reason that conditions carry.
    pub fn reason(&self) -> ConditionReason {
        if self.rewound_to.is_some() {
            ConditionReason::Rewound
        } else if self.unverified {
            ConditionReason::SignatureRefused
        } else if self.retryable {
            ConditionReason::FetchFailed
        } else {
            ConditionReason::FetchRefused
        }
    }
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.help {
            Some(help) => write!(f, "{}; {help}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

// === impl Effect ===

impl Effect {
    /// Makes the effect of what execution has done; none where it was not even tried.
    pub fn of(done: &execute::Effect, at: Timestamp) -> Option<Self> {
        let result = match &done.result {
            execute::EffectResult::Applied | execute::EffectResult::Deleted => {
                EffectResult::Changed
            }
            execute::EffectResult::Unchanged | execute::EffectResult::AlreadyGone => {
                EffectResult::Unchanged
            }
            execute::EffectResult::Failed(failure) => EffectResult::Failed(failure.message.clone()),
            execute::EffectResult::Skipped(_) | execute::EffectResult::Stopped => return None,
        };
        Some(Self {
            at,
            key: done.key.clone(),
            kind: if done.digest.is_some() {
                EffectKind::Apply
            } else {
                EffectKind::Delete
            },
            digest: done.digest.clone(),
            why: done.why.clone(),
            result,
        })
    }
}

impl EffectResult {
    /// Returns the word that metrics and audit lines carry.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Failed(_) => "failed",
        }
    }
}

impl EffectKind {
    /// Returns the word that metrics and audit lines carry.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Delete => "delete",
        }
    }
}
