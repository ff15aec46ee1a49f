//! As whom a command does what a repository says: as whoever types it, or as the account that the declared source names.
//!
//! Who names an account for a source means that nothing of its repository happens with other rights, be it an agent or a person who
//! carries it out. A person who may not act as the account is refused instead of acting with more.

use std::io::Write as _;

use super::context::Context;
use super::failure::Failure;
use crate::cluster::{Acting, Cluster, ClusterError};
use crate::model::SourceName;
use crate::model::api::ReleaseSource;

/// Reads the ReleaseSource; none where it is not declared here, or whoever types may not read it.
///
/// # Errors
///
/// When it could not be read for another reason: nobody knows then whether it names an account.
pub(super) async fn declared(
    cluster: &Cluster,
    namespace: &str,
    source: &SourceName,
) -> Result<Option<ReleaseSource>, Failure> {
    match cluster.get(namespace, source.as_str()).await {
        Err(ClusterError::Forbidden { .. }) => Ok(None),
        found => found.map_err(Failure::of),
    }
}

/// Returns the connection for what the repository says, and tells as whom it acts where that is not whoever types.
///
/// # Errors
///
/// When the account is not there, or may not be acted as.
pub(super) async fn acting(
    cluster: &Cluster,
    namespace: &str,
    source: Option<&ReleaseSource>,
    context: &mut Context,
) -> Result<Acting, Failure> {
    let account = match source {
        Some(source) => source.spec.account(namespace),
        None => Ok(None),
    };
    let acting = match account {
        Ok(None) => return Ok(cluster.acting_as_itself()),
        Ok(Some(account)) => cluster.acting_as(account),
        Err(error) => cluster.acting_as_nobody(error),
    };
    acting.confirm().await.map_err(|error| {
        Failure::of(error).help(
            "the source names this account in spec.serviceAccountName, so that nothing of its repository is read or done with other \
             rights",
        )
    })?;
    if let Some(account) = acting.account() {
        writeln!(
            context.err,
            "acting as ServiceAccount {account}, which the source names"
        )?;
    }
    Ok(acting)
}
