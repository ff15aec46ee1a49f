//! From a snapshot to what is wanted, with diagnostics that name file, line and column.
//!
//! What comes in is a [`crate::model::Snapshot`]; what goes out is [`Desired`]. Everything here is pure: the same snapshot
//! gives the same result, byte for byte. Files are parsed by blob id, so that an unchanged file is never parsed twice.
//! One bad file never hides another: what is wrong is held by name, and what could not be read is listed in
//! [`Desired::unread`], so that nothing is deleted for its sake.

mod cache;
mod catalog;
mod channels;
mod compare;
mod components;
mod custom;
mod evaluate;
mod facts;
mod finding;
mod kinds;
mod kyma_schemas;
mod layout;
pub mod migrations;
mod module;
mod modules;
mod object;
mod output;
mod own_schemas;
mod read;
mod schema;
mod settings;
mod texts;
pub mod yaml;

pub use cache::Cache;
pub use catalog::{
    Assignment, Catalog, CatalogModule, CatalogRelease, CatalogVersion, Deprecation, Edge,
    MovePolicy, ReleaseGraph,
};
pub use channels::{Move, MoveRefusal, judge_move, stops_between};
pub use compare::compare_with_base;
pub use evaluate::{EvaluateOptions, evaluate};
pub use output::{
    Desired, DesiredComponent, HeldMigration, OnRemove, Removal, RepositorySettings, Unread,
    UpgradePolicy,
};
pub use own_schemas::json_schemas;
