//! The durable record of one target: its Target in the agent's namespace.
//!
//! It is what makes pruning safe over restarts: which cluster this is, and which kinds were ever applied there. So it is
//! written before the first object of a kind is applied, and without it nothing is pruned.
//!
//! Every write carries the resourceVersion that was seen last. When somebody else has written in between (a replica that took
//! over, `fairway sync`), the write is refused, the record is taken as it is stored now, and the pass begins anew with it.

use std::collections::BTreeSet;

use kube::ResourceExt;
use serde_json::json;

use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::api::{HOME, Target, TargetFields, TargetStatus, status_differs, target_name};
use crate::model::{GroupKind, SourceName, names};

/// The Target of one source, as it is stored.
pub struct Record {
    cluster: Cluster,
    namespace: String,
    source: SourceName,
    status: TargetStatus,
    /// The version that `status` was stored with; none where there is no Target.
    version: Option<String>,
}

// === impl Record ===

impl Record {
    /// Reads the Target; one that is not there gives an empty record.
    pub async fn load(
        cluster: &Cluster,
        namespace: &str,
        source: &SourceName,
    ) -> Result<Self, ClusterError> {
        let found = cluster
            .get::<Target>(namespace, &target_name(source, HOME))
            .await?;
        Ok(Self {
            cluster: cluster.clone(),
            namespace: namespace.to_owned(),
            source: source.clone(),
            version: found.as_ref().and_then(ResourceExt::resource_version),
            status: found.and_then(|target| target.status).unwrap_or_default(),
        })
    }

    /// Returns what is stored.
    pub fn status(&self) -> &TargetStatus {
        &self.status
    }

    /// Returns the kinds that were ever applied.
    pub fn kinds(&self) -> BTreeSet<GroupKind> {
        self.status
            .kinds
            .iter()
            .filter_map(|text| text.parse().ok())
            .collect()
    }

    /// Returns whether the record belongs to this cluster, and otherwise why nothing may be pruned.
    pub fn trusted(&self) -> Result<(), String> {
        let adopt = format!(
            "if what carries the label {}={} here is this source's, say so: fairway adopt {} --reason '…'",
            names::LABEL_SOURCE,
            self.source,
            self.source
        );
        match &self.status.cluster_uid {
            Some(uid) if uid == self.cluster.uid().as_str() => Ok(()),
            Some(uid) => Err(format!(
                "the record of this target was written for another cluster (uid {uid}, this one is {}); {adopt}",
                self.cluster.uid()
            )),
            None => Err(format!("the record of this target was lost; {adopt}")),
        }
    }

    /// Makes the record where there is none: at once when nothing of the source is on the cluster, or when a person has
    /// adopted the cluster; otherwise it stays without a cluster's uid, and nothing is pruned.
    pub async fn establish(&mut self, empty: bool, adopted: bool) -> Result<(), ClusterError> {
        let ours = self.status.cluster_uid.as_deref() == Some(self.cluster.uid().as_str());
        let claim = adopted || (self.status.cluster_uid.is_none() && empty);
        if ours || (self.version.is_some() && !claim) {
            return Ok(());
        }
        let mut status = self.status.clone();
        status.source = Some(self.source.to_string());
        if claim {
            status.cluster_uid = Some(self.cluster.uid().to_string());
        }
        self.write(status).await
    }

    /// Makes sure that what is stored still names the same cluster, and takes it as it is stored now.
    ///
    /// # Errors
    ///
    /// When the record cannot be read, is gone, or was written for another cluster since it was read.
    pub async fn confirm(&mut self) -> Result<(), ClusterError> {
        let stored = Self::load(&self.cluster, &self.namespace, &self.source).await?;
        let same = stored.status.cluster_uid == self.status.cluster_uid;
        *self = stored;
        if same {
            return Ok(());
        }
        Err(ClusterError::Conflict {
            request: "delete what git does not want any more".to_owned(),
            message: "the record of this target is gone or was replaced".to_owned(),
        })
    }

    /// Adds kinds that are about to be applied, if they are new.
    pub async fn add_kinds(&mut self, kinds: &BTreeSet<GroupKind>) -> Result<(), ClusterError> {
        let mut all: BTreeSet<String> = self.status.kinds.iter().cloned().collect();
        all.extend(kinds.iter().map(ToString::to_string));
        if all.len() == self.status.kinds.len() {
            return Ok(());
        }
        let mut status = self.status.clone();
        status.kinds = all.into_iter().collect();
        self.write(status).await
    }

    /// Stores a status, if it differs from what is stored.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Conflict`] when another status was stored in between; that is what this record has then.
    pub async fn write(&mut self, status: TargetStatus) -> Result<(), ClusterError> {
        if self.version.is_some() && !status_differs(&self.status, &status) {
            return Ok(());
        }
        if self.version.is_none() {
            self.create().await?;
        }
        let name = target_name(&self.source, HOME);
        let body = json!({
            "apiVersion": format!("{}/{}", names::GROUP, names::VERSION),
            "kind": "Target",
            "metadata": {"name": name, "resourceVersion": self.version},
            "status": status,
        });
        let patch = (Patch::Apply, &body);
        let written = self
            .cluster
            .patch::<Target>(
                &self.namespace,
                &name,
                Some("status"),
                names::MANAGER_STATUS,
                patch,
            )
            .await;
        match written {
            Ok(target) => {
                self.version = target.resource_version();
                self.status = status;
                Ok(())
            }
            Err(error @ ClusterError::Conflict { .. }) => {
                *self = Self::load(&self.cluster, &self.namespace, &self.source).await?;
                // Our own write, whose first answer was lost.
                let ours = self.version.is_some() && !status_differs(&self.status, &status);
                if ours { Ok(()) } else { Err(error) }
            }
            Err(error) => {
                // Deleted under our feet: the next write creates it anew, but without the trust that it had.
                if matches!(error, ClusterError::NotFound { .. }) {
                    self.version = None;
                    self.status = TargetStatus::default();
                }
                Err(error)
            }
        }
    }

    async fn create(&mut self) -> Result<(), ClusterError> {
        let target = Target::new(&target_name(&self.source, HOME), TargetFields {});
        match self.cluster.create(&self.namespace, &target).await {
            Ok(target) => {
                self.version = target.resource_version();
                Ok(())
            }
            Err(error @ ClusterError::Conflict { .. }) => {
                *self = Self::load(&self.cluster, &self.namespace, &self.source).await?;
                // Created by an attempt whose answer was lost: it is there and empty, which is all that was wanted.
                let empty = !status_differs(&self.status, &TargetStatus::default());
                if empty { Ok(()) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }
}
