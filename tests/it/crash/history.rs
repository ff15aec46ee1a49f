//! What happened to each object on the way, as somebody sees who watches beside the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::StreamExt as _;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use tokio::task::JoinSet;

use super::stage::kinds;
use crate::support::world::World;

/// How often each object was created and deleted, by kind and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) deleted: BTreeMap<String, usize>,
    uids: BTreeMap<String, BTreeSet<String>>,
}

/// Watches until it is asked what it has seen.
pub(crate) struct Historian {
    history: Arc<Mutex<History>>,
    watches: JoinSet<()>,
}

impl History {
    /// Returns how many objects of each name there were.
    pub(crate) fn created(&self) -> BTreeMap<String, usize> {
        self.uids
            .iter()
            .map(|(name, uids)| (name.clone(), uids.len()))
            .collect()
    }
}

impl Historian {
    /// Starts to watch the objects of a world's source, from their present state on.
    pub(crate) async fn start(world: &World) -> Self {
        let history: Arc<Mutex<History>> = Arc::default();
        let mut watches = JoinSet::new();
        let labels = format!("fairway.dev/source={}", world.name);
        for kind in kinds() {
            let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &kind);
            let list = api
                .list(&ListParams::default().labels(&labels))
                .await
                .unwrap();
            let version = list.metadata.resource_version.clone().unwrap();
            let parameters = WatchParams::default().labels(&labels);
            let mut events = api.watch(&parameters, &version).await.unwrap().boxed();
            let (history, names) = (
                Arc::clone(&history),
                (world.name.clone(), world.apps.clone()),
            );
            watches.spawn(async move {
                while let Some(Ok(event)) = events.next().await {
                    let (object, deleted) = match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, 0),
                        WatchEvent::Deleted(object) => (object, 1),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                    };
                    let name = object
                        .name_any()
                        .replace(&names.1, "APPS")
                        .replace(&names.0, "SOURCE");
                    let mut history = history.lock().unwrap();
                    let uids = history.uids.entry(name.clone()).or_default();
                    uids.insert(object.uid().unwrap_or_default());
                    *history.deleted.entry(name).or_default() += deleted;
                }
            });
        }
        Self { history, watches }
    }

    /// Stops, and returns what was seen.
    pub(crate) fn end(mut self) -> History {
        self.watches.abort_all();
        let mut history = self.history.lock().unwrap().clone();
        history.deleted.retain(|_, count| *count > 0);
        history
    }
}
