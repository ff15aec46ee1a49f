//! Identifiers: a newtype for each, made only through a checked constructor.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name that its kind of identifier does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no {what}: {rule}")]
pub struct NameError {
    /// What the name was meant to be.
    pub what: &'static str,
    /// The name as it was given.
    pub name: String,
    /// The rule that it breaks, in words.
    pub rule: &'static str,
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Makes the identifier.
            ///
            /// # Errors
            ///
            /// When the name breaks the rule that the type documents.
            pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
                let name = name.into();
                let check: fn(&str) -> bool = $check;
                if check(&name) {
                    Ok(Self(name))
                } else {
                    Err(NameError { what: $what, name, rule: $rule })
                }
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(name: String) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

identifier!(
    /// The name of a ReleaseSource; a DNS label, since it becomes the value of a label on every object.
    SourceName,
    "source name",
    "lower-case letters, digits and `-`, at most 63, starting and ending with a letter or digit",
    is_dns_label
);
identifier!(
    /// The name of a module: `telemetry`. The pattern is that of `spec.moduleName` in Kyma's ModuleReleaseMeta.
    ModuleName,
    "module name",
    "parts of three or more lower-case letters, joined by `-`, at most 64 characters",
    |name| name.len() <= 64
        && name.split('-').all(|part| part.len() >= 3 && part.bytes().all(|b| b.is_ascii_lowercase()))
);
identifier!(
    /// The name of a channel: `regular`. The pattern is that of `spec.channels[].channel` in Kyma's ModuleReleaseMeta.
    ChannelName,
    "channel name",
    "three to 32 lower-case letters",
    |name| (3..=32).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase())
);

identifier!(
    /// The identity of a cluster: the uid of its namespace `kube-system`.
    ClusterUid,
    "cluster uid",
    "one to 64 letters, digits and `-`",
    |uid| (1..=64).contains(&uid.len()) && uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
);

/// What is deployed together on one target: a module, or one folder below `components/`.
///
/// It is written as the folder that holds it, `modules/telemetry` or `components/ingress`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ComponentName {
    /// A module: its ModuleTemplates and its ModuleReleaseMeta.
    Module(ModuleName),
    /// A folder below `components/`, by the folder's name (a DNS label).
    Folder(String),
}

impl ComponentName {
    /// Makes the name of a folder below `components/`.
    ///
    /// # Errors
    ///
    /// When the folder's name is no DNS label.
    pub fn folder(name: &str) -> Result<Self, NameError> {
        if is_dns_label(name) {
            Ok(Self::Folder(name.to_owned()))
        } else {
            Err(NameError {
                what: "component name",
                name: name.to_owned(),
                rule: "lower-case letters, digits and `-`, at most 63, starting and ending with a letter or digit",
            })
        }
    }
}

impl fmt::Display for ComponentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Module(name) => write!(f, "modules/{name}"),
            Self::Folder(name) => write!(f, "components/{name}"),
        }
    }
}

impl FromStr for ComponentName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.split_once('/') {
            Some(("modules", name)) => ModuleName::new(name).map(Self::Module),
            Some(("components", name)) => Self::folder(name),
            _ => Err(NameError {
                what: "component",
                name: text.to_owned(),
                rule: "`modules/NAME` or `components/NAME`",
            }),
        }
    }
}

impl TryFrom<String> for ComponentName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<ComponentName> for String {
    fn from(name: ComponentName) -> Self {
        name.to_string()
    }
}

/// One state of a source: what was asked for and what it resolved to, written `main@sha1:…` as Flux does.
///
/// A working tree that is followed in place has the reference `worktree` and a digest of its content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Revision {
    /// The branch, tag or commit that was asked for.
    pub reference: String,
    /// The algorithm and the hash: `sha1:…` for a commit, `sha256:…` for the content of a working tree.
    pub digest: String,
}

impl Revision {
    /// Makes the revision of a git commit (forty hexadecimal digits).
    pub fn commit(reference: impl Into<String>, commit: &str) -> Self {
        Self {
            reference: reference.into(),
            digest: format!("sha1:{commit}"),
        }
    }

    /// Returns the hash without its algorithm.
    pub fn hash(&self) -> &str {
        self.digest
            .split_once(':')
            .map_or(self.digest.as_str(), |(_, hash)| hash)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.reference, self.digest)
    }
}

/// A kind of object without its version, as the API server stores it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind, in camel case and singular.
    pub kind: String,
}

impl GroupKind {
    /// Makes a kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }

    /// Returns whether objects of this kind hold values that must be told nowhere, not even as a digest without a key: who
    /// can guess a value could then prove the guess.
    pub fn is_secret(&self) -> bool {
        self.group.is_empty() && self.kind == "Secret"
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}

impl FromStr for GroupKind {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        if kind.is_empty() {
            return Err(NameError {
                what: "kind",
                name: text.to_owned(),
                rule: "`Kind`, or `Kind.group` outside the core group",
            });
        }
        Ok(Self::new(group, kind))
    }
}

/// The identity of an object on one cluster; its API version is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Group and kind.
    pub kind: GroupKind,
    /// The namespace; none for a cluster-scoped object.
    pub namespace: Option<String>,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// Makes the key of an object.
    pub fn new(kind: GroupKind, namespace: Option<&str>, name: impl Into<String>) -> Self {
        Self {
            kind,
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

pub(super) fn is_dns_label(name: &str) -> bool {
    name.len() <= 63 && is_dns_part(name)
}

/// Returns whether a text can stand between the dots of a DNS subdomain, whatever its length.
pub(super) fn is_dns_part(name: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.bytes().all(|b| alphanumeric(b) || b == b'-')
        && name.bytes().next().is_some_and(alphanumeric)
        && name.bytes().last().is_some_and(alphanumeric)
}
