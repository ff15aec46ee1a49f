//! Migrations and their runs, on the real control plane.

pub(crate) mod catalogue;
mod commands;
mod definitions;
pub(crate) mod deploy;
pub(crate) mod examples;
mod history;
mod living;
mod plan;
mod preflight;
mod records;
mod steps;
mod store;
mod sync;
mod test_command;
pub(crate) mod undo;
