//! From a cluster to what is there: one watch for each kind that is ours, kept as small projections.
//!
//! What goes out is [`Observed`], an immutable view. What could *not* be listed is a value there, not an empty list: nothing
//! that is missing from it may be called absent.

mod fields;
mod follow;
mod health;
mod observed;
mod observer;
mod project;
mod store;

pub use crate::model::{Scope, ServedKind};
pub use fields::FieldSet;
pub use observed::{Health, KindObservation, Observed, ObservedObject, Ownership};
pub use observer::{Observer, WeakObserver};
