//! The task of all runtimes of one source: finds them, gives each a task of its own, and opens the waves.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::gone::say_who_is_gone;
use super::task::{Memory, RuntimeTask, Surroundings};
use crate::agent::bell::Bell;
use crate::agent::outlets::Outlets;
use crate::cluster::{AccessPolicy, Cluster};
use crate::fleet::{
    AccessError, AccessSecret, ChangedChannels, Discovered, Kyma, Published, RuntimeName, Wave,
    Waves, discover,
};
use crate::model::api::{CatalogMode, ReleaseSource};
use crate::model::{Revision, SourceName};

/// Keeps the runtimes of one source in step.
pub(in crate::agent) struct FleetTask {
    pub(in crate::agent) source: SourceName,
    pub(in crate::agent) namespace: String,
    pub(in crate::agent) home: Cluster,
    pub(in crate::agent) resource: watch::Receiver<Arc<ReleaseSource>>,
    pub(in crate::agent) published: watch::Receiver<Option<Arc<Published>>>,
    pub(in crate::agent) board: Arc<Board>,
    pub(in crate::agent) outlets: Outlets,
    pub(in crate::agent) policy: AccessPolicy,
    pub(in crate::agent) stop: CancellationToken,
}

/// Whose turn it is.
pub(in crate::agent) struct Gate {
    waves: Waves,
    start: Instant,
}

/// The runtimes while they are followed.
struct Following {
    /// What is followed: the namespace of the catalog, and how.
    what: (String, CatalogMode),
    discovered: watch::Receiver<Discovered>,
    around: Surroundings,
    running: BTreeMap<RuntimeName, Running>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
    /// The revision before the one that is rolled out.
    last: Option<Arc<Published>>,
    wanted: Wanted,
    /// Whether the records of runtimes that went while nobody looked were looked for.
    looked_for_gone: bool,
}

/// One runtime with its task.
struct Running {
    bell: Bell,
    stop: CancellationToken,
    /// What was found of it when its bell was last rung.
    seen: Found,
}

/// What is found of one runtime on home.
type Found = (Option<Kyma>, Result<AccessSecret, AccessError>);

/// What of a ReleaseSource concerns runtimes; our own writes of its status do not.
type Wanted = (Option<i64>, Option<BTreeMap<String, String>>);

// === impl Gate ===

impl Gate {
    /// Returns how long a runtime has to wait for its turn at most; nothing when it may go now.
    pub(in crate::agent) fn wait(&self, name: &RuntimeName) -> Option<Duration> {
        self.waves.wait(name, self.start.elapsed())
    }

    /// Returns the wave of a runtime.
    pub(in crate::agent) fn wave(&self, name: &RuntimeName) -> Wave {
        self.waves.wave(name)
    }

    /// Notes that a runtime has come to a result with a revision. Returns whether that has opened the second wave.
    pub(in crate::agent) fn done(&mut self, name: &RuntimeName, revision: &Revision) -> bool {
        self.waves.done(name, revision)
    }
}

// === impl FleetTask ===

impl FleetTask {
    pub(in crate::agent) async fn run(mut self) {
        let fleet = Bell::default();
        let mut following: Option<Following> = None;
        let mut opened = false;
        loop {
            self.adjust(&mut following, &fleet, std::mem::take(&mut opened))
                .await;
            let discovered = async {
                match &mut following {
                    Some(following) => following.discovered.changed().await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => break,
                changed = self.resource.changed() => if changed.is_err() { break },
                changed = self.published.changed() => if changed.is_err() { break },
                found = discovered => if !found { break },
                () = fleet.rung() => opened = true,
            }
        }
        if let Some(following) = following {
            following.end().await;
        }
    }

    /// Follows what the spec wants to be followed, and gives each runtime its task.
    async fn adjust(&mut self, following: &mut Option<Following>, fleet: &Bell, opened: bool) {
        let spec = self.resource.borrow_and_update().spec.clone();
        let what = (spec.catalog.namespace.clone(), spec.runtimes.catalog);
        if following.as_ref().is_some_and(|one| one.what != what)
            && let Some(old) = following.take()
        {
            old.end().await;
        }
        if what.1 == CatalogMode::Off {
            return;
        }
        let one = match following {
            Some(one) => one,
            None => following.insert(self.follow(what, fleet)),
        };
        let published = self.published.borrow_and_update().clone();
        let metadata = self.resource.borrow().metadata.clone();
        one.adjust(
            published,
            (metadata.generation, metadata.annotations),
            opened,
        );
    }

    fn follow(&self, what: (String, CatalogMode), fleet: &Bell) -> Following {
        let stop = self.stop.child_token();
        let (sender, discovered) = watch::channel(Discovered::default());
        let mut tasks = JoinSet::new();
        let (cluster, namespace, ended) = (self.home.clone(), what.0.clone(), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = discover(cluster, namespace, sender) => {}
                () = ended.cancelled() => {}
            }
        });
        let around = Surroundings {
            source: self.source.clone(),
            namespace: self.namespace.clone(),
            home: self.home.clone(),
            resource: self.resource.clone(),
            published: self.published.clone(),
            discovered: discovered.clone(),
            board: Arc::clone(&self.board),
            gate: Arc::new(Mutex::new(Gate {
                waves: Waves::default(),
                start: Instant::now(),
            })),
            fleet: fleet.clone(),
            outlets: self.outlets.clone(),
            policy: self.policy,
        };
        Following {
            what,
            discovered,
            around,
            running: BTreeMap::new(),
            tasks,
            stop,
            last: None,
            wanted: Wanted::default(),
            looked_for_gone: false,
        }
    }
}

// === impl Following ===

impl Following {
    /// Starts and ends tasks as runtimes come and go, opens the waves of a new revision, and rings the bells of those whom
    /// something concerns.
    fn adjust(&mut self, published: Option<Arc<Published>>, wanted: Wanted, opened: bool) {
        let news = match (&self.last, &published) {
            (Some(last), Some(published)) => !Arc::ptr_eq(last, published),
            (last, published) => last.is_some() != published.is_some(),
        };
        let all = news || opened || self.wanted != wanted;
        let found: BTreeMap<RuntimeName, Found> = {
            let found = self.discovered.borrow_and_update().clone();
            if !found.listed.is_complete() {
                return;
            }
            if let Some(published) = &published {
                self.open_waves(published, &found);
            }
            let each = found.kymas.iter().map(|(name, kyma)| {
                let access = found.access.of(name).cloned();
                (name.clone(), (Some(kyma.clone()), access))
            });
            each.collect()
        };
        (self.last, self.wanted) = (published, wanted);
        let board = Arc::clone(&self.around.board);
        self.running.retain(|name, one| {
            let stays = found.contains_key(name);
            if !stays {
                one.stop.cancel();
                board.remove(name);
                tracing::info!(runtime.name = %name, "a runtime is gone; what it has stays");
            }
            stays
        });
        if !std::mem::replace(&mut self.looked_for_gone, true) {
            let looking = Box::pin(say_who_is_gone(self.around.clone()));
            let stop = self.stop.clone();
            self.tasks
                .spawn(async move { stop.run_until_cancelled(looking).await.unwrap_or_default() });
        }
        for (name, seen) in found {
            match self.running.get_mut(&name) {
                Some(one) if one.seen == seen && !all => {}
                Some(one) => {
                    one.seen = seen;
                    one.bell.ring();
                }
                None => {
                    tracing::info!(runtime.name = %name, "following a runtime");
                    board.add(&name);
                    let one = self.start(&name, seen);
                    self.running.insert(name, one);
                }
            }
        }
        // Only now: before, it could look as if there were none.
        board.listed();
        while self.tasks.try_join_next().is_some() {}
    }

    fn open_waves(&self, published: &Arc<Published>, found: &Discovered) {
        let changed = self
            .last
            .as_ref()
            .map(|last| ChangedChannels::between(last, published));
        let members = found.kymas.iter().map(|(name, kyma)| {
            let uses = changed.as_ref().is_none_or(|changed| changed.concern(kyma));
            (name.clone(), if uses { Wave::Users } else { Wave::Others })
        });
        let members = members.collect();
        let mut gate = self
            .around
            .gate
            .lock()
            .expect("nothing panics while holding the gate");
        let now = gate.start.elapsed();
        gate.waves.begin(&published.desired.revision, members, now);
    }

    fn start(&mut self, name: &RuntimeName, seen: Found) -> Running {
        let bell = Bell::default();
        let stop = self.stop.child_token();
        let task = RuntimeTask {
            name: name.clone(),
            around: self.around.clone(),
            bell: bell.clone(),
            stop: stop.clone(),
            memory: Memory::default(),
        };
        self.tasks.spawn(Box::pin(task.run()));
        Running { bell, stop, seen }
    }

    async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.around.board.clear();
    }
}
