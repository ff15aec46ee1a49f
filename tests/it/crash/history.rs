//! What happened to each object on the way, as somebody sees who watches beside the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use tokio::task::JoinSet;

use super::stage::kinds;
use crate::support::world::World;

/// How long a watch may lag behind what happened, also where the API server was started again meanwhile.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often each object was created and deleted, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) deleted: BTreeMap<String, usize>,
    uids: BTreeMap<String, BTreeSet<String>>,
}

/// Watches until it is asked what it has seen.
pub(crate) struct Historian {
    kinds: Vec<(Api<DynamicObject>, Arc<Mutex<Chapter>>)>,
    labels: String,
    watches: JoinSet<()>,
}

/// What was seen of one kind.
#[derive(Default)]
struct Chapter {
    history: History,
    /// The names of the world, which the history is free of.
    names: [String; 2],
    /// The resource version of what is there, by namespace and name.
    present: BTreeMap<(String, String), String>,
    /// What a new list has named so far; a watch that broke begins with one.
    listed: BTreeSet<(String, String)>,
    /// Whether the first list is complete.
    begun: bool,
}

// === impl History ===

impl History {
    /// Returns how many objects of each name there were.
    pub(crate) fn created(&self) -> BTreeMap<String, usize> {
        self.uids
            .iter()
            .map(|(name, uids)| (name.clone(), uids.len()))
            .collect()
    }

    fn add(&mut self, other: &Self) {
        for (name, count) in &other.deleted {
            *self.deleted.entry(name.clone()).or_default() += count;
        }
        for (name, uids) in &other.uids {
            let ours = self.uids.entry(name.clone()).or_default();
            ours.extend(uids.iter().cloned());
        }
    }
}

// === impl Historian ===

impl Historian {
    /// Starts to watch the objects of a world's source, and returns when all that is there was seen.
    pub(crate) async fn start(world: &World) -> Self {
        let labels = format!("fairway.dev/source={}", world.name);
        let mut historian = Self {
            kinds: Vec::new(),
            labels,
            watches: JoinSet::new(),
        };
        for kind in kinds() {
            historian.watch(world, &kind);
        }
        let all = |chapters: &Self| {
            chapters
                .kinds
                .iter()
                .all(|(_, one)| one.lock().unwrap().begun)
        };
        historian.until(async |historian| all(historian)).await;
        historian
    }

    fn watch(&mut self, world: &World, kind: &ApiResource) {
        let api: Api<DynamicObject> = Api::all_with(world.client.clone(), kind);
        let chapter = Arc::new(Mutex::new(Chapter {
            names: [world.apps.clone(), world.name.clone()],
            ..Chapter::default()
        }));
        self.kinds.push((api.clone(), Arc::clone(&chapter)));
        let settings = watcher::Config::default().labels(&self.labels);
        self.watches.spawn(async move {
            let mut events = watcher(api, settings).default_backoff().boxed();
            while let Some(event) = events.next().await {
                // The watch mends itself: it goes on, or lists anew where it cannot.
                if let Ok(event) = event {
                    chapter.lock().unwrap().note(event);
                }
            }
        });
    }

    /// Waits until all that is there now was seen, and returns what happened.
    pub(crate) async fn end(self) -> History {
        self.until(Self::has_caught_up).await;
        let mut history = History::default();
        for (_, chapter) in &self.kinds {
            history.add(&chapter.lock().unwrap().history);
        }
        history
    }

    async fn has_caught_up(&self) -> bool {
        let ours = ListParams::default().labels(&self.labels);
        for (api, chapter) in &self.kinds {
            let list = api.list(&ours).await.unwrap();
            let there: BTreeMap<_, _> = list.items.iter().map(entry).collect();
            if chapter.lock().unwrap().present != there {
                return false;
            }
        }
        true
    }

    async fn until(&self, mut reached: impl AsyncFnMut(&Self) -> bool) {
        let waiting = async {
            while !reached(self).await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await;
        in_time.expect("the watches see all that happens");
    }
}

// === impl Chapter ===

impl Chapter {
    fn note(&mut self, event: watcher::Event<DynamicObject>) {
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(object) => {
                self.listed.insert(entry(&object).0);
                self.seen(&object);
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<_> = self.present.keys().cloned().collect();
                for key in gone.into_iter().filter(|key| !listed.contains(key)) {
                    self.gone(&key);
                }
                self.begun = true;
            }
            watcher::Event::Apply(object) => self.seen(&object),
            watcher::Event::Delete(object) => self.gone(&entry(&object).0),
        }
    }

    fn seen(&mut self, object: &DynamicObject) {
        let (key, version) = entry(object);
        let name = self.plain(&key.1);
        let uids = self.history.uids.entry(name).or_default();
        uids.insert(object.uid().unwrap_or_default());
        self.present.insert(key, version);
    }

    fn gone(&mut self, key: &(String, String)) {
        let name = self.plain(&key.1);
        *self.history.deleted.entry(name).or_default() += 1;
        self.present.remove(key);
    }

    fn plain(&self, name: &str) -> String {
        let [apps, source] = &self.names;
        name.replace(apps, "APPS").replace(source, "SOURCE")
    }
}

fn entry(object: &DynamicObject) -> ((String, String), String) {
    let key = (object.namespace().unwrap_or_default(), object.name_any());
    (key, object.resource_version().unwrap_or_default())
}
