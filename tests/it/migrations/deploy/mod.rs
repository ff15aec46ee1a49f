//! Migrations around a deploy, by the agent as a process under the shipped rights: the acceptance cases of the engine, by their
//! names.

mod cases;
mod jobs;
mod kills;
mod lifecycle;
mod once;
pub(crate) mod stage;
mod thin;
mod together;
