//! The durable record of one target: its Target in the agent's namespace.
//!
//! It is what makes pruning safe over restarts: which cluster this is, and which kinds were ever applied there. So it is
//! written before the first object of a kind is applied, and without it nothing is pruned.

use std::collections::BTreeSet;

use serde_json::json;

use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::api::{HOME, Target, TargetFields, TargetStatus, status_differs, target_name};
use crate::model::{GroupKind, ObjectKey, SourceName, names};

/// The Target of one source, as it is stored.
pub struct Record {
    cluster: Cluster,
    namespace: String,
    source: SourceName,
    status: TargetStatus,
    exists: bool,
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
            exists: found.is_some(),
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
        if ours || (self.exists && !claim) {
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

    /// Deletes the Target of a source that is gone. What it has applied stays as it is, with its label: a source of the same
    /// name that comes later finds it there without a record, and a person has to adopt it.
    pub async fn forget(
        cluster: &Cluster,
        namespace: &str,
        source: &SourceName,
    ) -> Result<(), ClusterError> {
        let name = target_name(source, HOME);
        let Some(target) = cluster.get::<Target>(namespace, &name).await? else {
            return Ok(());
        };
        let key = ObjectKey::new(
            GroupKind::new(names::GROUP, "Target"),
            Some(namespace),
            &name,
        );
        let uid = target.metadata.uid.unwrap_or_default();
        let version = target.metadata.resource_version.unwrap_or_default();
        cluster.delete(&key, &uid, &version).await.map(drop)
    }

    /// Returns the sources that have a Target in a namespace.
    pub async fn sources(
        cluster: &Cluster,
        namespace: &str,
    ) -> Result<BTreeSet<SourceName>, ClusterError> {
        let targets = cluster.list::<Target>(namespace, "").await?;
        let names = targets.iter().filter_map(|target| {
            let (source, of) = target.metadata.name.as_deref()?.split_once('.')?;
            (of == HOME).then(|| SourceName::new(source).ok()).flatten()
        });
        Ok(names.collect())
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
    pub async fn write(&mut self, status: TargetStatus) -> Result<(), ClusterError> {
        if self.exists && !status_differs(&self.status, &status) {
            return Ok(());
        }
        let name = target_name(&self.source, HOME);
        if !self.exists {
            self.create(&name).await?;
        }
        let body = json!({
            "apiVersion": format!("{}/{}", names::GROUP, names::VERSION),
            "kind": "Target",
            "metadata": {"name": name},
            "status": status,
        });
        let patch = (Patch::Apply, &body);
        match self
            .cluster
            .patch::<Target>(
                &self.namespace,
                &name,
                Some("status"),
                names::MANAGER_STATUS,
                patch,
            )
            .await
        {
            Ok(_) => {
                self.status = status;
                Ok(())
            }
            Err(error) => {
                // Deleted under our feet: the next write creates it anew, but without the trust that it had.
                if matches!(error, ClusterError::NotFound { .. }) {
                    self.exists = false;
                    self.status = TargetStatus::default();
                }
                Err(error)
            }
        }
    }

    async fn create(&mut self, name: &str) -> Result<(), ClusterError> {
        let target = Target::new(name, TargetFields {});
        match self.cluster.create(&self.namespace, &target).await {
            // Created by an attempt whose answer was lost: it is there, which is all that was wanted.
            Ok(_) | Err(ClusterError::Conflict { .. }) => {
                self.exists = true;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
