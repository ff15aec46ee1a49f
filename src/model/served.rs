//! Kinds as a cluster serves them.

/// A kind as the cluster serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedKind {
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// The plural name in paths.
    pub plural: String,
    /// Served versions, the preferred one first.
    pub versions: Vec<String>,
}

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In none.
    Cluster,
}
