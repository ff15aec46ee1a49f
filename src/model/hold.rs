//! Holds: what is wanted but not done yet on purpose, with its reason.

use serde::{Deserialize, Serialize};

use super::place::Place;

/// Something wanted that is not done yet on purpose. What is held is frozen: neither changed nor pruned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hold {
    /// What is held: an object, a component, a deletion, a revision; in the words that messages use.
    pub what: String,
    /// The stable word for why.
    pub reason: HoldReason,
    /// One or two sentences that say why, ending with what lifts the hold.
    pub message: String,
    /// The place in git that caused it, where there is one.
    pub place: Option<Place>,
}

/// Why something is held; the words are stable, since conditions and metrics carry them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HoldReason {
    /// The file or object does not pass validation; the diagnostic says why.
    Invalid,
    /// The cluster does not serve this kind.
    KindUnknown,
    /// What is on the cluster could not be listed, so nothing can be said about it.
    Unobserved,
    /// A component that this one depends on is not healthy yet.
    DependencyNotReady,
    /// An object that must come first failed or is itself held.
    Requires,
    /// Another source owns the object.
    Conflict,
    /// Another writer keeps taking fields back.
    Contested,
    /// The change is to a field that cannot be changed in place.
    Immutable,
    /// The object carries an annotation that tells us to leave it alone.
    Disabled,
    /// The object is being deleted; it is applied again when it is gone.
    Terminating,
    /// A channel would go back or skip versions.
    Channel,
    /// A published version was changed.
    VersionChanged,
    /// A deletion needs a person's approval, or an announcement in git.
    ApprovalNeeded,
    /// Deletions wait because something could not be read.
    PruneUnsafe,
    /// A catalog object that others still refer to is to be deleted.
    InUse,
    /// The branch was rewound or the tag moved; the older revision stays until this is approved.
    Rewound,
    /// The last request for the object failed; it is tried again after a delay.
    BackOff,
    /// The source is suspended, so that nothing is deleted for it either.
    Suspended,
    /// A migration that comes first is judged or under way.
    MigrationPending,
    /// A precondition of a migration is false, or something that it must know is not known.
    MigrationBlocked,
    /// A migration is paused or cancelled, or a person must say what became of one of its steps.
    MigrationManual,
    /// A migration has failed.
    MigrationFailed,
    /// A migration is not valid, so that what it belongs to is not deployed.
    MigrationHeld,
    /// A post migration does not run, since what comes before it has failed.
    MigrationSuppressed,
}

impl HoldReason {
    /// Returns whether it is about migrations.
    pub fn is_migration(self) -> bool {
        matches!(
            self,
            Self::MigrationPending
                | Self::MigrationBlocked
                | Self::MigrationManual
                | Self::MigrationFailed
                | Self::MigrationHeld
                | Self::MigrationSuppressed
        )
    }

    /// Returns the stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::KindUnknown => "KindUnknown",
            Self::Unobserved => "Unobserved",
            Self::DependencyNotReady => "DependencyNotReady",
            Self::Requires => "Requires",
            Self::Conflict => "Conflict",
            Self::Contested => "Contested",
            Self::Immutable => "Immutable",
            Self::Disabled => "Disabled",
            Self::Terminating => "Terminating",
            Self::Channel => "Channel",
            Self::VersionChanged => "VersionChanged",
            Self::ApprovalNeeded => "ApprovalNeeded",
            Self::PruneUnsafe => "PruneUnsafe",
            Self::InUse => "InUse",
            Self::Rewound => "Rewound",
            Self::BackOff => "BackOff",
            Self::Suspended => "Suspended",
            Self::MigrationPending => "MigrationPending",
            Self::MigrationBlocked => "MigrationBlocked",
            Self::MigrationManual => "MigrationManual",
            Self::MigrationFailed => "MigrationFailed",
            Self::MigrationHeld => "MigrationHeld",
            Self::MigrationSuppressed => "MigrationSuppressed",
        }
    }
}

impl std::fmt::Display for HoldReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
