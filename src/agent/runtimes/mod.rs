//! The runtimes of one source: [`FleetTask`] finds them and opens the waves, a task for each brings its catalog up to home's, and
//! the [`Board`] tells the source's home task how they stand.

mod board;
mod contest;
mod fleet;
mod gone;
mod link;
mod observe;
mod pass;
mod task;

pub(super) use board::Board;
pub(super) use fleet::FleetTask;
