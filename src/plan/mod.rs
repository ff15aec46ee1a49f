//! What to do about the difference: a pure function from [`crate::desired::Desired`] and [`crate::observe::Observed`].
//!
//! The pull request check, the command line and the agent plan with this same function: same inputs, same plan, byte for
//! byte. A [`Plan`] names objects, digests and reasons; an [`Action`] leaves execution no choices.
//!
//! The way through the rooms: `difference` judges each wanted object by itself (with `ownership` for drift), `readiness`
//! freezes components that must wait for others, `hooks` those that must wait for migrations, `requirements` settles what must come first, `prune` decides about what
//! git does not want any more, `order` makes phases, and `explain` puts the result in words. `check` asks again, in the
//! simplest way, whether a finished plan is one that may be carried out.

mod assume;
mod channels;
mod check;
mod difference;
mod explain;
pub mod hooks;
mod jobs;
mod kinds;
mod order;
mod output;
mod ownership;
mod planner;
mod prune;
mod readiness;
mod requirements;
mod view;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod testing;

pub use assume::observed_from;
pub use check::{Violation, check};
pub use explain::{
    Change, ChangeLine, Explanation, HoldLine, KeptLine, MigrationLine, PendingLines, Summary,
    UnhealthyLine,
};
pub use jobs::{JobRecord, Jobs};
pub use output::{
    Action, ActionKind, Approval, Deletion, Kept, PastFailure, PendingDeletion, Plan, PlanInput,
    PruneSettings, TemplateUse, Why,
};
pub use planner::plan;
