//! Fairway: a GitOps sync agent for module release channels.
//!
//! The folders are the stages of the data's way, and each may import only those before it:
//! model ← expression ← cluster ← source, desired, observe ← plan ← runs ← execute ← fleet ← report, server, agent ← cli.

pub mod agent;
pub mod cli;
pub mod cluster;
pub mod desired;
pub mod execute;
pub mod expression;
pub mod fleet;
pub mod model;
pub mod observe;
pub mod plan;
pub mod report;
pub mod runs;
pub mod server;
pub mod source;
