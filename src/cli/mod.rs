//! The command line: one file per command, and what the commands share.
//!
//! What comes in is argv, as [`Arguments`]; what goes out is an exit code, data on stdout, and everything else on stderr.
//! A command gets a [`Context`] and nothing else of the outside, and answers with an [`Exit`] or a [`Failure`]; [`run()`] is
//! the one place that turns these into a code and a message.
//!
//! To add a command: write its arguments and a `run` in a file of its own, and list it in [`arguments::Command`].

mod acting;
mod agent;
mod alone;
mod approve;
mod arguments;
mod check;
mod connection;
mod context;
mod create;
mod describe;
mod draw;
mod explain;
mod failure;
mod generate;
mod get;
mod history;
mod identity;
mod install;
mod installed;
mod manifests;
mod migration;
mod migration_plan;
mod migration_rbac;
mod migration_retire;
mod migration_test;
mod pages;
mod plan;
mod progress;
mod reconcile;
mod repository;
mod resources;
mod run;
mod runs;
mod signals;
mod suspend;
mod sync;
mod sync_runs;
mod terminal;
mod uninstall;
mod validate;
mod waiting;
mod webhook;
mod webhook_delivery;

pub use arguments::{Arguments, ClusterArguments, Command, OutputFormat};
pub use context::Context;
pub use draw::{Summary, draw_diagnostics};
pub use failure::{Exit, Failure};
pub use run::run;
pub use terminal::printable;
