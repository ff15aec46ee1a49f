//! The daemon: bells, fetching, passes, shutdown, and the doors to the clock and the log.
//!
//! Each ReleaseSource has a source task, which fetches and keeps the last good snapshot, and a target task for home, which
//! passes whenever its bell rings. Bells carry no data; the full pass is the only path.

mod approval;
mod bell;
mod claims;
pub mod clock;
mod daemon;
mod failures;
mod heartbeat;
mod memory;
mod outlets;
mod pass;
mod record;
mod secret_key;
mod source_task;
mod target_task;
pub mod telemetry;
mod template_use;

pub use daemon::{Daemon, Settings};
pub use heartbeat::Heartbeats;
pub use outlets::Outlets;
pub use pass::{Engine, Pass, PassListener, PassRequest, Presence};
pub use record::Record;
pub use secret_key::read_secret_key;
pub use template_use::template_users;
