//! The daemon: bells, fetching, passes, leases, shutdown, and the doors to the clock and the log.
//!
//! A replica stands by until it holds the lease, and leads while it does: for each claim there is a daemon of its own.
//! Each ReleaseSource has a source task, which fetches and keeps the last good snapshot, and a target task for home, which
//! passes whenever its bell rings; a webhook task rings the source task's. Bells carry no data; the full pass is the only path.

mod approval;
mod bell;
mod claims;
pub mod clock;
mod committed;
mod daemon;
mod failures;
mod fetching;
mod heartbeat;
pub mod lease;
mod listener;
mod memory;
mod migration_news;
mod migrations;
mod observers;
mod outlets;
mod pass;
mod record;
mod replica;
mod run_events;
mod runtimes;
mod secret_key;
mod secret_watch;
mod source_task;
mod target_task;
pub mod telemetry;
mod template_use;
mod webhook;
mod withdrawal;
mod worker;

pub use daemon::{Daemon, Settings};
pub use heartbeat::Heartbeats;
pub use migrations::{HomeConductor, Keep, conductor, follow_runs};
pub use outlets::Outlets;
pub use pass::{Engine, Pass, PassListener, PassRequest, Presence};
pub use record::Record;
pub use replica::{Ended, LeaseTaskDied, Replica};
pub use secret_key::read_secret_key;
pub use template_use::template_users;
pub use webhook::keys_of;
