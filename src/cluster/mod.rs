//! The only door to a Kubernetes API.
//!
//! What goes in are requests on objects of any kind; what comes out are their answers, or a [`ClusterError`] that says what
//! failed and whether trying again can help. It is guaranteed that the cluster is the one that was expected (its identity is
//! read before anything else), that every request has a deadline, that no more than `limits::CLUSTER_CONCURRENCY` are in
//! flight, that no answer is larger than its limit, and that a write is sent again only where sending it twice is the same as
//! sending it once. kube's own retry is off: it may sleep for minutes. A connection that was put under a claim writes only while
//! that claim holds, which is asked before each attempt.

mod acting;
mod answer;
mod body_limit;
mod claim;
mod closest;
mod connection;
mod discovery;
mod error;
mod kubeconfig;
mod leases;
mod objects;
mod path;
mod questions;
mod rights;
mod takeover;
mod typed;
mod watch;
mod whole;

pub use acting::Acting;
pub use answer::{Answer, Deleted};
pub use claim::{Claim, Guard, Held};
pub use connection::Cluster;
pub use discovery::Served;
pub use error::ClusterError;
pub use kubeconfig::{AccessPolicy, KubeconfigError, RemoteAccess};
pub use objects::is_unserved;
pub use questions::Access;
pub use rights::Rules;
pub use typed::{Patch, Typed};
pub use watch::{Change, Page, Selection};
pub use whole::{ApplyManner, PatchForm, WholeSelection};
