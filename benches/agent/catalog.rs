//! A repository of modules, the agent that follows it, and looks at where a version has arrived.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::watcher::{Config, Event, watcher};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::forge::{Hooked, TOKEN, token, until_path, webhook_address};
use crate::support::control_plane::ControlPlane;
use crate::support::fleet::Runtime;
use crate::support::world::World;

/// Longest time that anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing is measured while the answer to the last delivery still waits for others: 500 ms of quiet end a burst.
pub(crate) const BETWEEN: Duration = Duration::from_millis(700);

/// Returns the name of a module; the catalog allows letters alone, three or more after a hyphen.
fn name(module: usize) -> String {
    let letter = b'a' + u8::try_from(module).unwrap();
    format!("module-{}", char::from(letter).to_string().repeat(3))
}

/// Makes a world with so many modules of so many patch versions each, whose channels offer the first.
pub(crate) async fn world(modules: usize, versions: usize) -> World {
    let world = World::on(ControlPlane::minimal()).await;
    world.repository.write(
        "fairway.yaml",
        "apiVersion: fairway.dev/v1alpha1\nkind: Repository\nrelease: 1.0.0\nchannels: {regular: {}, fast: {}}\n",
    );
    for number in 0..modules {
        let module = name(number);
        for patch in 0..versions {
            let text = format!(
                "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\n\
                 metadata: {{name: {module}-1.0.{patch}}}\n\
                 spec: {{moduleName: {module}, version: 1.0.{patch}, descriptor: {{}}}}\n"
            );
            let folder = format!("modules/{module}/1.0.{patch}");
            world
                .repository
                .write(&format!("{folder}/module-template.yaml"), text);
        }
        set(&world, number, 0);
    }
    world.repository.publish("Publish the modules");
    world
}

/// Writes which patch version the channels of a module offer.
pub(crate) fn set(world: &World, module: usize, patch: usize) {
    let module = name(module);
    let text = format!(
        "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleReleaseMeta\nmetadata: {{name: {module}}}\n\
         spec:\n  moduleName: {module}\n  ocmComponentName: example.com/{module}\n  channels:\n  \
         - {{channel: regular, version: 1.0.{patch}}}\n  - {{channel: fast, version: 1.0.{patch}}}\n"
    );
    let path = format!("modules/{module}/module-release-meta.yaml");
    world.repository.write(&path, text);
}

/// Makes a runtime that wants nothing but the catalog.
pub(crate) async fn runtime(world: &World, name: &str) -> Runtime {
    world.runtime(name, json!({}), json!([])).await
}

/// Starts the agent with a webhook, and waits until home has everything.
pub(crate) async fn follow(world: World, spec: Value) -> Hooked {
    token(&world, json!({"token": TOKEN})).await;
    let agent =
        world.agent_direct_with(&["--webhook-listen", "127.0.0.1:0", "--allow-local-runtimes"]);
    let mut body = json!({
        "webhook": {"provider": "GitHub", "secretRef": {"name": "hook"}},
    });
    for (key, value) in spec.as_object().unwrap() {
        body[key] = value.clone();
    }
    world.declare(body).await;
    world.until_reason("Synced").await;
    let path = until_path(&world, |_| true).await;
    let address = webhook_address(&agent);
    Hooked {
        world,
        agent,
        address,
        path,
    }
}

/// What one watch has seen of a namespace's ModuleReleaseMetas and ModuleTemplates: when each first had its version.
pub(crate) struct Sight {
    seen: watch::Receiver<BTreeMap<String, Instant>>,
    watching: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for Sight {
    fn drop(&mut self) {
        for watching in &self.watching {
            watching.abort();
        }
    }
}

impl Sight {
    /// Watches kinds of a namespace, and returns when the watches are there.
    pub(crate) async fn of(apis: Vec<Api<DynamicObject>>) -> Self {
        let (seen, receiver) = watch::channel(BTreeMap::new());
        let mut watching = Vec::new();
        for api in apis {
            let (ready, is_ready) = tokio::sync::oneshot::channel();
            watching.push(tokio::spawn(look(api, seen.clone(), ready)));
            is_ready.await.unwrap();
        }
        Self {
            seen: receiver,
            watching,
        }
    }

    /// Waits until a module's `regular` channel offers a patch version, and returns when that was seen.
    pub(crate) async fn offers(&self, module: usize, patch: usize) -> Instant {
        let key = format!("{} 1.0.{patch}", name(module));
        self.until(|seen| seen.get(&key).copied()).await
    }

    /// Waits until so many things were seen, and returns when the last of them was.
    pub(crate) async fn has(&self, count: usize) -> Instant {
        let last = |seen: &BTreeMap<String, Instant>| {
            let last = seen.values().max().copied();
            last.filter(|_| seen.len() >= count)
        };
        self.until(last).await
    }

    async fn until(
        &self,
        found: impl Fn(&BTreeMap<String, Instant>) -> Option<Instant>,
    ) -> Instant {
        let mut seen = self.seen.clone();
        let waiting = seen.wait_for(|seen| found(seen).is_some());
        let seen = tokio::time::timeout(PATIENCE, waiting).await;
        found(&seen.expect("it was never seen").unwrap()).unwrap()
    }
}

async fn look(
    api: Api<DynamicObject>,
    seen: watch::Sender<BTreeMap<String, Instant>>,
    ready: tokio::sync::oneshot::Sender<()>,
) {
    let mut ready = Some(ready);
    let mut events = pin!(watcher(api, Config::default()));
    while let Some(event) = events.next().await {
        match event.unwrap() {
            Event::Apply(found) | Event::InitApply(found) => {
                let now = Instant::now();
                let name = found.metadata.name.unwrap();
                let offered = found.data["spec"]["channels"][0]["version"].as_str();
                let key =
                    offered.map_or_else(|| name.clone(), |version| format!("{name} {version}"));
                seen.send_modify(|seen| {
                    seen.entry(key).or_insert(now);
                });
            }
            Event::InitDone => {
                let _ = ready.take().map(|ready| ready.send(()));
            }
            _ => {}
        }
    }
}
