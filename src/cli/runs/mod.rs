//! What people see of runs, and what they can do about them: `fairway get runs`, `describe run`, `run …` and `cancel`.
//!
//! All of it goes over the Kubernetes API alone. A run is read as the agent has written it; what a person wants of it is written into
//! its annotation `fairway.dev/command`, and counts once the agent has taken it into the run's status.

mod cancel;
mod command;
mod describe;
mod find;
mod logs;
mod paste;
mod table;
mod undo;
mod waiting;
mod wish;
mod words;

pub(super) use cancel::CancelArguments;
pub(super) use command::RunArguments;

pub(super) use cancel::cancel;
pub(super) use command::run;
pub(super) use describe::describe;
pub(super) use find::Known;
pub(super) use paste::Paste;
pub(super) use table::list;
pub(super) use undo::show as show_undo;
pub(super) use waiting::waiting_runs;
