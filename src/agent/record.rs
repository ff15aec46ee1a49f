//! The durable record of one target: its Target in the agent's namespace.
//!
//! It is what makes pruning safe over restarts: which cluster this is, and which kinds were ever applied there. So it is
//! written before the first object of a kind is applied, and without it nothing is pruned.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;

use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::api::{
    ConditionType, HOME, Target, TargetFields, TargetStatus, status_differs, target_name,
};
use crate::model::{Digest, GroupKind, ObjectKey, SourceName, names};
use crate::plan::{JobRecord, Jobs};
use crate::report::created_jobs;

/// The Target of one source, as it is stored.
pub struct Record {
    cluster: Cluster,
    namespace: String,
    source: SourceName,
    status: TargetStatus,
    exists: bool,
    created: Option<Timestamp>,
    /// Guards each write: two agents, or a person, may have the same record in hand.
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
        let mut record = Self {
            cluster: cluster.clone(),
            namespace: namespace.to_owned(),
            source: source.clone(),
            exists: false,
            status: TargetStatus::default(),
            created: None,
            version: None,
        };
        record.take(found);
        Ok(record)
    }

    /// Takes a Target as it is stored.
    fn take(&mut self, found: Option<Target>) {
        self.exists = found.is_some();
        let (metadata, status) = found.map_or_else(Default::default, |target| {
            (target.metadata, target.status.unwrap_or_default())
        });
        self.created = metadata.creation_timestamp.map(|created| created.0);
        self.version = metadata.resource_version;
        self.status = status;
        self.status
            .conditions
            .retain(|one| ConditionType::is_ours(&one.type_));
    }

    /// Returns when the Target was created; none while there is none.
    pub fn created(&self) -> Option<Timestamp> {
        self.created
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

    /// Returns the Jobs that were created.
    pub fn jobs(&self) -> Jobs {
        let kind = GroupKind::new("batch", "Job");
        let jobs = self.status.jobs.iter().map(|job| {
            let key = ObjectKey::new(kind.clone(), Some(&job.namespace), job.name.as_str());
            let record = JobRecord {
                digest: Digest::from_text(job.digest.as_str()),
                uid: job.uid.clone(),
            };
            (key, record)
        });
        jobs.collect()
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

    /// Writes down what is about to be applied: kinds that are new, and Jobs that are begun.
    pub async fn begin(
        &mut self,
        kinds: &BTreeSet<GroupKind>,
        jobs: &Jobs,
    ) -> Result<(), ClusterError> {
        let mut all: BTreeSet<String> = self.status.kinds.iter().cloned().collect();
        all.extend(kinds.iter().map(ToString::to_string));
        let begun = jobs.values().any(|job| job.uid.is_none()) && self.jobs() != *jobs;
        if all.len() == self.status.kinds.len() && !begun {
            return Ok(());
        }
        let mut status = self.status.clone();
        status.kinds = all.into_iter().collect();
        status.jobs = created_jobs(jobs);
        self.write(status).await
    }

    /// Writes down which Jobs were created.
    pub async fn keep_jobs(&mut self, jobs: &Jobs) -> Result<(), ClusterError> {
        let mut status = self.status.clone();
        status.jobs = created_jobs(jobs);
        self.write(status).await
    }

    /// Stores a status, if it differs from what is stored.
    ///
    /// # Errors
    ///
    /// When the Target has been changed since it was read, or cannot be written. After a conflict the record is as it is
    /// stored, so that a second attempt starts from there: what somebody else has written down is never lost.
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
            "metadata": {"name": name, "resourceVersion": self.version},
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
            Ok(written) => {
                self.version = written.metadata.resource_version;
                self.status = status;
                Ok(())
            }
            Err(error @ ClusterError::Conflict { .. }) => {
                *self = Self::load(&self.cluster, &self.namespace, &self.source).await?;
                // It was ours: the first answer was lost, and the request sent again.
                if self.exists && !status_differs(&self.status, &status) {
                    return Ok(());
                }
                Err(error)
            }
            Err(error) => {
                // Deleted under our feet: the next write creates it anew, but without the trust that it had.
                if matches!(error, ClusterError::NotFound { .. }) {
                    self.take(None);
                }
                Err(error)
            }
        }
    }

    async fn create(&mut self, name: &str) -> Result<(), ClusterError> {
        let target = Target::new(name, TargetFields {});
        match self.cluster.create(&self.namespace, &target).await {
            Ok(created) => {
                self.take(Some(created));
                Ok(())
            }
            // Created by an attempt whose answer was lost, or by somebody else: what it says must be known first.
            Err(error @ ClusterError::Conflict { .. }) => {
                *self = Self::load(&self.cluster, &self.namespace, &self.source).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}
