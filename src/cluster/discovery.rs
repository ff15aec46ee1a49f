//! Which kinds a cluster serves, by aggregated discovery: two requests, whatever the number of groups.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, RwLock};

use serde::Deserialize;
use tokio::time::{Duration, Instant, sleep};

use super::connection::{Cluster, Outgoing};
use super::error::{ClusterError, Words};
use crate::model::{GroupKind, Scope, ServedKind, limits};

/// What a cluster serves, at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Served {
    /// Kinds by name.
    pub kinds: Arc<HashMap<GroupKind, ServedKind>>,
    /// Groups whose server does not answer: what they serve is not known, and must not be taken for "nothing".
    pub unavailable: BTreeSet<String>,
}

/// What discovery last found. Asking goes one at a time; looking at what is known waits for nobody.
#[derive(Default)]
pub(super) struct Discovery {
    known: RwLock<Option<(Served, Instant)>>,
    asking: tokio::sync::Mutex<()>,
}

impl Discovery {
    fn known(&self) -> Option<(Served, Instant)> {
        self.known.read().expect(NO_PANIC).clone()
    }

    fn set(&self, known: Option<(Served, Instant)>) {
        *self.known.write().expect(NO_PANIC) = known;
    }
}

const NO_PANIC: &str = "nothing panics while it holds the lock";

impl Served {
    /// Looks up a kind in one version; any version if none is named.
    ///
    /// # Errors
    ///
    /// [`ClusterError::KindUnknown`] or, where that cannot be said, [`ClusterError::GroupUnavailable`].
    pub fn kind(
        &self,
        kind: &GroupKind,
        version: Option<&str>,
    ) -> Result<&ServedKind, ClusterError> {
        let found = self.kinds.get(kind).filter(|served| {
            version.is_none_or(|version| served.versions.iter().any(|one| one == version))
        });
        match found {
            Some(served) => Ok(served),
            None if self.unavailable.contains(&kind.group) => Err(ClusterError::GroupUnavailable {
                group: kind.group.clone(),
            }),
            None => Err(ClusterError::KindUnknown {
                kind: kind.clone(),
                version: version.unwrap_or("any").to_owned(),
            }),
        }
    }
}

impl Cluster {
    /// Returns what is known of what the cluster serves, without asking it.
    pub fn known_served(&self) -> Option<Served> {
        self.discovery().known().map(|(served, _)| served)
    }

    /// Returns what the cluster serves, from memory if it was ever asked.
    pub async fn served(&self) -> Result<Served, ClusterError> {
        match self.known_served() {
            Some(served) => Ok(served),
            None => self.refresh_served().await,
        }
    }

    /// Asks the cluster again what it serves.
    pub async fn refresh_served(&self) -> Result<Served, ClusterError> {
        let _turn = self.discovery().asking.lock().await;
        self.discover().await
    }

    /// Waits until every one of the kinds is served, for this long at most. Returns whether they are.
    ///
    /// # Errors
    ///
    /// When discovery fails.
    pub async fn until_served(
        &self,
        kinds: &[&GroupKind],
        patience: Duration,
    ) -> Result<bool, ClusterError> {
        let deadline = Instant::now() + patience;
        let mut pause = limits::SERVED_PAUSE_MIN;
        let mut served = self.served().await?;
        while !kinds.iter().all(|kind| served.kinds.contains_key(*kind)) {
            if Instant::now() + pause > deadline {
                return Ok(false);
            }
            sleep(pause).await;
            pause *= 2;
            served = self.refresh_served().await?;
        }
        Ok(true)
    }

    /// Finds a kind. One that is unknown may have been served since: discovery is asked again, though not in a flurry.
    ///
    /// # Errors
    ///
    /// As [`Served::kind`], or when discovery fails.
    pub async fn resolve(
        &self,
        kind: &GroupKind,
        version: Option<&str>,
    ) -> Result<ServedKind, ClusterError> {
        if let Some(known) = self.known_served()
            && let Ok(found) = known.kind(kind, version)
        {
            return Ok(found.clone());
        }
        let _turn = self.discovery().asking.lock().await;
        let served = match self.discovery().known() {
            Some((served, asked)) if asked.elapsed() < limits::DISCOVERY_INTERVAL => served,
            _ => self.discover().await?,
        };
        served.kind(kind, version).cloned()
    }

    /// Forgets what was discovered, since a request has shown that it does not hold any more.
    pub(super) fn forget_served(&self) {
        self.discovery().set(None);
    }

    async fn discover(&self) -> Result<Served, ClusterError> {
        let (core, groups) = tokio::try_join!(self.groups("/api"), self.groups("/apis"))?;
        let served = Served::from_groups(core.into_iter().chain(groups));
        self.discovery().set(Some((served.clone(), Instant::now())));
        Ok(served)
    }

    async fn groups(&self, path: &str) -> Result<Vec<Group>, ClusterError> {
        let words = Words {
            request: "discover what the cluster serves",
            secret: false,
        };
        let mut request = Outgoing::get(path, words);
        request.accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let list: GroupList = self.send(request).await?.json(words)?;
        // A server without aggregated discovery answers something else, which would read as "serves nothing".
        if list.kind != "APIGroupDiscoveryList" || list.items.is_empty() {
            return Err(ClusterError::AnswerInvalid {
                request: words.request.to_owned(),
                message: "no aggregated discovery, which needs Kubernetes 1.30".to_owned(),
            });
        }
        Ok(list.items)
    }
}

#[derive(Deserialize)]
struct GroupList {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: GroupName,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Default, Deserialize)]
struct GroupName {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "version")]
    name: String,
    #[serde(default)]
    freshness: String,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(rename = "resource")]
    plural: String,
    scope: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

impl Served {
    fn from_groups(groups: impl IntoIterator<Item = Group>) -> Self {
        let mut kinds: HashMap<GroupKind, ServedKind> = HashMap::new();
        let mut unavailable = BTreeSet::new();
        for group in groups {
            for version in group.versions {
                // "Stale": the list is what the group's server said when it last answered, perhaps never.
                if version.freshness == "Stale" {
                    unavailable.insert(group.metadata.name.clone());
                }
                for resource in version.resources {
                    let Some(kind) = resource.response_kind.map(|response| response.kind) else {
                        continue;
                    };
                    // What cannot be read is no object: reviews and the like.
                    if !resource.verbs.iter().any(|verb| verb == "get") {
                        continue;
                    }
                    let scope = match resource.scope.as_str() {
                        "Namespaced" => Scope::Namespaced,
                        _ => Scope::Cluster,
                    };
                    let served = kinds
                        .entry(GroupKind::new(group.metadata.name.clone(), kind))
                        .or_insert_with(|| ServedKind {
                            scope,
                            plural: resource.plural,
                            versions: Vec::new(),
                        });
                    if !served.versions.contains(&version.name) {
                        served.versions.push(version.name.clone());
                    }
                }
            }
        }
        Self {
            kinds: Arc::new(kinds),
            unavailable,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn served() -> Served {
        let resource = |plural: &str, kind: &str, scope: &str, verbs: &[&str]| json!({"resource": plural, "scope": scope, "verbs": verbs, "responseKind": {"kind": kind}});
        let groups = json!([
            {"metadata": {"name": ""}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                resource("namespaces", "Namespace", "Cluster", &["get", "list"]),
            ]}]},
            {"metadata": {"name": "autoscaling"}, "versions": [
                {"version": "v2", "resources": [resource("hpas", "HPA", "Namespaced", &["get"])]},
                {"version": "v1", "resources": [resource("hpas", "HPA", "Namespaced", &["get"])]},
            ]},
            {"metadata": {"name": "authorization.k8s.io"}, "versions": [
                {"version": "v1", "resources": [resource("reviews", "Review", "Cluster", &["create"])]},
            ]},
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]},
        ]);
        Served::from_groups(serde_json::from_value::<Vec<Group>>(groups).unwrap())
    }

    #[test]
    fn kinds_have_their_scope_and_their_versions_in_order() {
        let served = served();
        let namespace = served
            .kind(&GroupKind::new("", "Namespace"), Some("v1"))
            .unwrap();
        assert_eq!(namespace.scope, Scope::Cluster);
        let hpa = served
            .kind(&GroupKind::new("autoscaling", "HPA"), None)
            .unwrap();
        assert_eq!(hpa.versions, ["v2", "v1"]);
        assert_eq!(hpa.scope, Scope::Namespaced);
        assert_eq!(hpa.plural, "hpas");
    }

    #[test]
    fn unknown_is_told_from_unavailable() {
        let served = served();
        let kind = |group: &str, kind: &str, version| {
            served
                .kind(&GroupKind::new(group, kind), version)
                .unwrap_err()
        };
        assert!(matches!(
            kind("autoscaling", "HPA", Some("v3")),
            ClusterError::KindUnknown { .. }
        ));
        assert!(matches!(
            kind("authorization.k8s.io", "Review", None),
            ClusterError::KindUnknown { .. }
        ));
        let stale = kind("metrics.k8s.io", "PodMetrics", None);
        assert!(
            matches!(stale, ClusterError::GroupUnavailable { group } if group == "metrics.k8s.io")
        );
    }
}
