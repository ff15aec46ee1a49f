//! `spec.serviceAccountName`: what a repository says is done as the account of its source, and as nobody else.

mod applying;
mod changing;
mod commands;
mod migrating;
mod refusing;
mod stage;
