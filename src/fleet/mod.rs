//! Runtimes: the clusters whose catalogs follow home's.
//!
//! What comes in is home's [`crate::desired::Desired`] after home's pass, and the Kymas and kubeconfig Secrets of home; what
//! goes out is, for each runtime, a `Desired` of its own, which is planned and executed as home's is. [`Kyma`], [`Access`],
//! [`render`] and [`Waves`] are pure; [`discover()`] follows home, and [`prepare()`] makes a runtime ready for its first pass.

mod access;
mod catalog;
mod changes;
mod discover;
mod kyma;
mod prepare;
mod waves;

pub use access::{Access, AccessError, AccessSecret};
pub use catalog::{Published, RuntimeCatalog, render};
pub use changes::ChangedChannels;
pub use discover::{Discovered, Listing, discover};
pub use kyma::{Kyma, ModuleUse, RuntimeName};
pub use prepare::prepare;
pub use waves::{Wave, Waves};
