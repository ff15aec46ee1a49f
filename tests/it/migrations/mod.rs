//! Migrations and their runs, on the real control plane.

mod commands;
mod definitions;
pub(crate) mod deploy;
mod living;
mod records;
mod steps;
mod test_command;
