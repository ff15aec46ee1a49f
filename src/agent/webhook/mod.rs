//! The webhook of one source: its entry in the routing table, what was heard, and `status.webhook`.

mod burst;
mod desk;
mod read;
mod task;

pub use read::keys_of;
pub(super) use task::WebhookTask;
