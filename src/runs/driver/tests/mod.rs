//! The driver over a world in memory, in virtual time. Tests are named by the cases of the acceptance list.

mod commands;
mod crash;
mod faults;
mod guards;
mod kills;
mod kit;
mod records;
mod steps;
mod time;
mod undoing;

pub(crate) use kit::spec;
