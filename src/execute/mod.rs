//! Doing what a plan says, and nothing else: it makes no choices.
//!
//! What comes in is a [`crate::plan::Plan`]; what goes out is an [`Outcome`] with one [`Effect`] for each action. Phases run
//! one after another, the actions of a phase side by side within the cluster's concurrency. A failure stops only what
//! requires it; everything that was answered is told to the observer at once, so that the next plan knows it.

mod outcome;
mod run;
mod serve;

pub use outcome::{Effect, EffectResult, Failure, FailureKind, Outcome};
pub use run::Executor;
