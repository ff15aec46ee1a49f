//! The durable record of one target: its Target in the agent's namespace.
//!
//! It is what makes pruning safe over restarts: which cluster this is, and which kinds were ever applied there. So it is
//! written before the first object of a kind is applied, and without it nothing is pruned.
//!
//! Every write carries the resourceVersion that was seen last. When somebody else has written in between (a replica that took
//! over, `fairway sync`), the write is refused, the record is taken as it is stored now, and the pass begins anew with it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;

use super::committed::{committed_of, committed_to};
use crate::cluster::{Cluster, ClusterError, Patch};
use crate::model::api::{
    ConditionType, HOME, Target, TargetFields, TargetStatus, status_differs, target_name,
};
use crate::model::{ClusterUid, Digest, GroupKind, ObjectKey, SourceName, names};
use crate::plan::hooks::Committed;
use crate::plan::{JobRecord, Jobs};
use crate::report::created_jobs;

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
    created: Option<Timestamp>,
    /// The version that `status` was stored with; none where there is no Target.
    version: Option<String>,
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
        let mut record = Self {
            cluster: home.clone(),
            namespace: namespace.to_owned(),
            source: source.clone(),
            name: target_name(source, cluster),
            uid: uid.clone(),
            status: TargetStatus::default(),
            created: None,
            version: None,
        };
        record.reload().await?;
        Ok(record)
    }

    /// Returns the identity of the cluster that the record is about.
    pub fn uid(&self) -> &ClusterUid {
        &self.uid
    }

    /// Takes the record as it is stored now.
    async fn reload(&mut self) -> Result<(), ClusterError> {
        let found = self
            .cluster
            .get::<Target>(&self.namespace, &self.name)
            .await?;
        self.take(found);
        Ok(())
    }

    /// Takes a Target as it is stored.
    fn take(&mut self, found: Option<Target>) {
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

    /// Returns the name of the Target.
    pub fn name(&self) -> &str {
        &self.name
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

    /// Returns what was committed of components with migrations, and of the deploy as a whole.
    pub fn committed(&self) -> Committed {
        committed_of(&self.status)
    }

    /// Writes down what is committed, and deploys that are about to change something.
    ///
    /// # Errors
    ///
    /// As [`Record::write`].
    pub async fn commit(&mut self, committed: &Committed) -> Result<(), ClusterError> {
        let mut status = self.status.clone();
        committed_to(committed, &mut status);
        self.write(status).await
    }

    /// Returns whether the record belongs to this cluster, and otherwise why nothing may be pruned.
    pub fn trusted(&self) -> Result<(), String> {
        let adopt = format!(
            "if what carries the label {}={} here is this source's, say so: fairway adopt {}{} --reason '…'",
            names::LABEL_SOURCE,
            self.source,
            self.source,
            match self.name.split_once('.') {
                Some((_, cluster)) if cluster != HOME => format!(" --target {cluster}"),
                _ => String::new(),
            }
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
        if ours || (self.version.is_some() && !claim) {
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
        let known = self.status.cluster_uid.clone();
        self.reload().await?;
        if known == self.status.cluster_uid {
            return Ok(());
        }
        Err(ClusterError::Conflict {
            request: "delete what git does not want any more".to_owned(),
            message: "the record of this target is gone or was replaced".to_owned(),
        })
    }

    /// Deletes the Targets of a source that is gone, home's and those of runtimes. What it has applied stays as it is, with its
    /// label: a source of the same name that comes later finds it there without a record, and a person has to adopt it.
    pub async fn forget(
        cluster: &Cluster,
        namespace: &str,
        source: &SourceName,
    ) -> Result<(), ClusterError> {
        for target in cluster.list::<Target>(namespace, "").await? {
            let metadata = target.metadata;
            let name = metadata.name.unwrap_or_default();
            if source_of(&name).as_ref() != Some(source) {
                continue;
            }
            let kind = GroupKind::new(names::GROUP, "Target");
            let key = ObjectKey::new(kind, Some(namespace), name);
            let uid = metadata.uid.unwrap_or_default();
            let version = metadata.resource_version.unwrap_or_default();
            cluster.delete(&key, &uid, &version).await?;
        }
        Ok(())
    }

    /// Returns the sources that have a Target in a namespace.
    pub async fn sources(
        cluster: &Cluster,
        namespace: &str,
    ) -> Result<BTreeSet<SourceName>, ClusterError> {
        let targets = cluster.list::<Target>(namespace, "").await?;
        let names = targets
            .into_iter()
            .filter_map(|target| target.metadata.name);
        Ok(names.filter_map(|name| source_of(&name)).collect())
    }

    /// Returns the clusters that a source has Targets of, by their names.
    pub async fn clusters(
        cluster: &Cluster,
        namespace: &str,
        source: &SourceName,
    ) -> Result<BTreeSet<String>, ClusterError> {
        let targets = cluster.list::<Target>(namespace, "").await?;
        let names = targets
            .into_iter()
            .filter_map(|target| target.metadata.name);
        let own = |name: String| {
            let (of, cluster) = name.split_once('.')?;
            (of == source.to_string()).then(|| cluster.to_owned())
        };
        Ok(names.filter_map(own).collect())
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
    /// [`ClusterError::Conflict`] when another status was stored in between. The record is then as it is stored, so that a second
    /// attempt starts from there: what somebody else has written down is never lost.
    pub async fn write(&mut self, status: TargetStatus) -> Result<(), ClusterError> {
        if self.version.is_some() && !status_differs(&self.status, &status) {
            return Ok(());
        }
        if self.version.is_none() {
            self.create().await?;
        }
        let body = json!({
            "apiVersion": format!("{}/{}", names::GROUP, names::VERSION),
            "kind": "Target",
            "metadata": {"name": self.name, "resourceVersion": self.version},
            "status": status,
        });
        let patch = (Patch::Apply, &body);
        let written = self
            .cluster
            .patch::<Target>(
                &self.namespace,
                &self.name,
                Some("status"),
                names::MANAGER_STATUS,
                patch,
            )
            .await;
        match written {
            Ok(written) => {
                self.version = written.metadata.resource_version;
                self.status = status;
                Ok(())
            }
            Err(error @ ClusterError::Conflict { .. }) => {
                self.reload().await?;
                // Our own write, whose first answer was lost.
                let ours = self.version.is_some() && !status_differs(&self.status, &status);
                if ours { Ok(()) } else { Err(error) }
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

    async fn create(&mut self) -> Result<(), ClusterError> {
        let target = Target::new(&self.name, TargetFields {});
        match self.cluster.create(&self.namespace, &target).await {
            Ok(created) => {
                self.take(Some(created));
                Ok(())
            }
            Err(error @ ClusterError::Conflict { .. }) => {
                self.reload().await?;
                // Created by an attempt whose answer was lost: it is there and empty, which is all that was wanted.
                let empty = !status_differs(&self.status, &TargetStatus::default());
                if empty { Ok(()) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns the source that a Target's name begins with.
fn source_of(target: &str) -> Option<SourceName> {
    let (source, _) = target.split_once('.')?;
    SourceName::new(source).ok()
}
