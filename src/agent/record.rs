//! The durable record of one target: its Target in the agent's namespace.
//!
//! It is what makes pruning safe over restarts: which cluster this is, and which kinds were ever applied there. So it is
//! written before the first object of a kind is applied, and without it nothing is pruned.

use std::collections::BTreeSet;

use serde_json::json;

use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::api::{HOME, Target, TargetFields, TargetStatus, status_differs, target_name};
use crate::model::{ClusterUid, GroupKind, SourceName, names};

/// The Target of one source, as it is stored.
pub struct Record {
    cluster: Cluster,
    namespace: String,
    source: SourceName,
    /// The name of the Target.
    name: String,
    /// The cluster that the record is about; home, or a runtime.
    uid: ClusterUid,
    status: TargetStatus,
    exists: bool,
}

// === impl Record ===

impl Record {
    /// Reads the Target of home; one that is not there gives an empty record.
    pub async fn load(
        cluster: &Cluster,
        namespace: &str,
        source: &SourceName,
    ) -> Result<Self, ClusterError> {
        Self::load_of(cluster, namespace, source, (HOME, cluster.uid())).await
    }

    /// Reads the Target of any cluster, by its name and identity. `home` is where Targets are kept.
    pub async fn load_of(
        home: &Cluster,
        namespace: &str,
        source: &SourceName,
        (cluster, uid): (&str, &ClusterUid),
    ) -> Result<Self, ClusterError> {
        let name = target_name(source, cluster);
        let found = home.get::<Target>(namespace, &name).await?;
        Ok(Self {
            cluster: home.clone(),
            namespace: namespace.to_owned(),
            source: source.clone(),
            name,
            uid: uid.clone(),
            exists: found.is_some(),
            status: found.and_then(|target| target.status).unwrap_or_default(),
        })
    }

    /// Returns the identity of the cluster that the record is about.
    pub fn uid(&self) -> &ClusterUid {
        &self.uid
    }

    async fn reload(&self) -> Result<Self, ClusterError> {
        let stored = self
            .cluster
            .get::<Target>(&self.namespace, &self.name)
            .await?;
        Ok(Self {
            cluster: self.cluster.clone(),
            namespace: self.namespace.clone(),
            source: self.source.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            exists: stored.is_some(),
            status: stored.and_then(|target| target.status).unwrap_or_default(),
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
            Some(uid) if uid == self.uid.as_str() => Ok(()),
            Some(uid) => Err(format!(
                "the record of this target was written for another cluster (uid {uid}, this one is {}); {adopt}",
                self.uid
            )),
            None => Err(format!("the record of this target was lost; {adopt}")),
        }
    }

    /// Makes the record where there is none: at once when nothing of the source is on the cluster, or when a person has
    /// adopted the cluster; otherwise it stays without a cluster's uid, and nothing is pruned.
    pub async fn establish(&mut self, empty: bool, adopted: bool) -> Result<(), ClusterError> {
        let ours = self.status.cluster_uid.as_deref() == Some(self.uid.as_str());
        let claim = adopted || (self.status.cluster_uid.is_none() && empty);
        if ours || (self.exists && !claim) {
            return Ok(());
        }
        let mut status = self.status.clone();
        status.source = Some(self.source.to_string());
        if claim {
            status.cluster_uid = Some(self.uid.to_string());
        }
        self.write(status).await
    }

    /// Makes sure that what is stored still names the same cluster, and takes it as it is stored now.
    ///
    /// # Errors
    ///
    /// When the record cannot be read, is gone, or was written for another cluster since it was read.
    pub async fn confirm(&mut self) -> Result<(), ClusterError> {
        let stored = self.reload().await?;
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
    pub async fn write(&mut self, status: TargetStatus) -> Result<(), ClusterError> {
        if self.exists && !status_differs(&self.status, &status) {
            return Ok(());
        }
        let name = self.name.clone();
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
