//! The public HTTP port: deliveries of forges, which ring the bell of a source.
//!
//! What comes in are bytes of anybody. Nothing in them is read before their signature has been verified over the raw bytes,
//! in constant time ([`Verifier`]); then the repository and the references that they name are read ([`Announcement`]), and
//! compared with what the source follows. What goes out to the agent is a [`Delivery`], which carries no data to act on: it
//! is a reason to look at git, and nothing else.
//!
//! A wrong signature and a path that nobody has are answered alike. Time, bytes and connections are bounded, and nothing is
//! kept of a delivery that is refused but a count.

mod bodies;
mod guests;
mod keys;
mod payload;
mod receiver;
mod repository;
mod routes;
mod sign;
#[cfg(test)]
mod tests;
mod verify;

pub use keys::{KeyError, Keys};
pub use payload::{Announcement, DeliveryResult, Followed, FollowedReference, Unreadable};
pub use receiver::{Receiver, serve};
pub use repository::RepositoryName;
pub use routes::{Deliver, Delivery, Known, Registration, Route, Routes};
pub use sign::{SignedDelivery, signed_push};
pub use verify::{Fingerprint, Refused, Verifier};
