//! The nouns that every stage shares: identifiers, places, diagnostics, objects, snapshots, limits and the API types.
//!
//! Nothing here has an effect: no file system, no clock, no network. A later stage may import these; they import no stage.

pub mod account;
pub mod api;
pub mod diagnostic;
pub mod digest;
pub mod hold;
pub mod ident;
pub mod limits;
pub mod migration;
pub mod names;
pub mod nearest;
pub mod object;
pub mod place;
pub mod selector;
pub mod served;
pub mod snapshot;
pub mod version;

pub use account::Account;
pub use diagnostic::{Code, Diagnostic, Severity};
pub use digest::{Digest, SecretKey};
pub use hold::{Hold, HoldReason};
pub use ident::{
    ChannelName, ClusterUid, ComponentName, GroupKind, ModuleName, NameError, ObjectKey, Revision,
    SourceName,
};
pub use nearest::nearest;
pub use object::DesiredObject;
pub use place::Place;
pub use selector::Selector;
pub use served::{Scope, ServedKind};
pub use snapshot::{BlobError, BlobId, BlobStore, EntryKind, FileEntry, Snapshot};
pub use version::{ModuleVersion, VersionError};
