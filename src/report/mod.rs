//! From what a pass did to the outside: conditions, Events, metrics and audit lines.
//!
//! What comes in is a [`PassReport`]. Statuses and notices are pure functions of it and of what was reported before, so that
//! a pass that changes nothing writes nothing: no message holds a time, a duration or a count of what one pass did.

mod audit;
mod conditions;
mod events;
mod history;
mod metrics;
mod migration_metrics;
mod pass;
mod run_events;
mod runtimes;
#[cfg(test)]
mod tests;
mod text;
mod verdict;

pub use audit::{AuditLog, Decided, DecisionAction, Origin, RunAction, RunNews};
pub use conditions::{created_jobs, source_status, source_suspended, target_status};
pub use events::{Change, EventSink, Notice, notices};
pub use metrics::{LeaseMeasure, Metrics};
pub use pass::{Effect, EffectKind, EffectResult, FetchFailure, PassReport};
pub use run_events::run_notices;
pub use runtimes::{RuntimeState, RuntimesReport, target_blocked, target_observed};
pub use text::{bounded, failed_to};
pub use verdict::needs_person;
