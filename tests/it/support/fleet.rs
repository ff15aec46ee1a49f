//! Runtimes of a world: Kymas beside the catalog, each with a kubeconfig Secret that leads back to the same API server, into
//! a namespace of its own.

use std::net::SocketAddr;
use std::path::Path;

use fairway::model::api::Target;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use super::canaries;
use super::line::Line;
use super::world::{World, ready_among};

/// One runtime.
pub(crate) struct Runtime {
    /// The name of its Kyma.
    pub(crate) name: String,
    /// The namespace of its catalog.
    pub(crate) namespace: String,
    /// The line that its kubeconfig leads through.
    pub(crate) line: Line,
}

impl World {
    /// Copies the example repository's modules into the world's, and publishes them.
    pub(crate) fn publish_modules(&self) {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples-repo");
        let mut folders = vec![examples.join("modules")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let relative = path.strip_prefix(&examples).unwrap();
                    let content = std::fs::read(&path).unwrap();
                    self.repository.write(relative.to_str().unwrap(), content);
                }
            }
        }
        let settings = std::fs::read(examples.join("fairway.yaml")).unwrap();
        self.repository.write("fairway.yaml", settings);
        self.repository.publish("Publish the modules");
    }

    /// Moves the first channel of telemetry that offers `from`.
    pub(crate) fn set_version(&self, from: &str, to: &str) {
        let path = "modules/telemetry/module-release-meta.yaml";
        let text = std::fs::read_to_string(self.repository.path().join(path)).unwrap();
        let changed = text.replacen(&format!("version: {from}"), &format!("version: {to}"), 1);
        assert_ne!(text, changed, "{path} names {from}");
        self.repository.write(path, changed);
    }

    /// Adds a runtime with the given labels on its Kyma and modules in its spec.
    pub(crate) async fn runtime(&self, name: &str, labels: Value, modules: Value) -> Runtime {
        let runtime = Runtime {
            name: name.to_owned(),
            namespace: self.plane.namespace().await,
            line: Line::to(self.api_server()).await,
        };
        self.kyma_of(name, labels, modules).await;
        self.access(&runtime, &self.kubeconfig_of(&runtime)).await;
        runtime
    }

    /// Creates or changes the Kyma of a runtime.
    pub(crate) async fn kyma_of(&self, name: &str, labels: Value, modules: Value) {
        let body = json!({
            "apiVersion": "operator.kyma-project.io/v1beta2",
            "kind": "Kyma",
            "metadata": {"name": name, "namespace": self.apps, "labels": labels},
            "spec": {"channel": "regular", "modules": modules},
        });
        self.plane.apply_yaml(&body.to_string()).await;
    }

    /// Writes the Secret that leads to a runtime.
    pub(crate) async fn access(&self, runtime: &Runtime, kubeconfig: &str) {
        let body = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": format!("kubeconfig-{}", runtime.name),
                "namespace": self.apps,
                "labels": {"operator.kyma-project.io/kyma-name": runtime.name},
                "annotations": {"fairway.dev/namespace": runtime.namespace},
            },
            "stringData": {"config": kubeconfig},
        });
        self.plane.apply_yaml(&body.to_string()).await;
    }

    /// Returns a kubeconfig that leads through the runtime's line.
    pub(crate) fn kubeconfig_of(&self, runtime: &Runtime) -> String {
        let mut config = admin(self.plane.kubeconfig());
        let key = config["users"][0]["user"]["client-key-data"].as_str();
        canaries::register(&key.expect("the administrator has a key")[..200]);
        config["clusters"][0]["cluster"]["server"] =
            json!(format!("https://{}", runtime.line.address()));
        config.to_string()
    }

    /// Returns where the API server listens.
    pub(crate) fn api_server(&self) -> SocketAddr {
        let config = admin(self.plane.kubeconfig());
        let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
        server.strip_prefix("https://").unwrap().parse().unwrap()
    }

    /// Waits until the Target of a runtime has this reason in `Ready`.
    pub(crate) async fn until_runtime(&self, runtime: &Runtime, reason: &'static str) -> Target {
        self.until_target(runtime, reason, move |ready| ready.0 == reason)
            .await
    }

    /// Waits until reason and message of `Ready` of a runtime's Target are as wanted.
    pub(crate) async fn until_target(
        &self,
        runtime: &Runtime,
        what: &str,
        wanted: impl Fn((String, String)) -> bool,
    ) -> Target {
        let name = format!("{}.{}", self.name, runtime.name);
        let wanted = |target: Option<&Target>| target.is_some_and(|target| wanted(ready(target)));
        let waiting = await_condition(self.targets(), &name, wanted);
        match tokio::time::timeout(std::time::Duration::from_secs(90), waiting).await {
            Ok(found) => found.unwrap().unwrap(),
            Err(tokio::time::error::Elapsed { .. }) => panic!(
                "{name} is not {what} but {:#?}",
                self.targets().get_opt(&name).await.unwrap()
            ),
        }
    }

    /// Returns the catalog objects of a kind on a runtime.
    pub(crate) async fn catalog(&self, runtime: &Runtime, kind: &str) -> Vec<DynamicObject> {
        let api = self.catalog_api(runtime, kind);
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// Returns the API of the catalog objects of a kind on a runtime.
    pub(crate) fn catalog_api(&self, runtime: &Runtime, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("operator.kyma-project.io", "v1beta2", kind);
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.client.clone(), &runtime.namespace, &resource)
    }

    /// Waits until a channel of a module offers a version on a runtime; none means that there is no such channel.
    pub(crate) async fn until_channel(
        &self,
        runtime: &Runtime,
        (module, channel): (&str, &str),
        version: Option<&str>,
    ) {
        let (channel, wanted) = (channel.to_owned(), version.map(str::to_owned));
        let offers = move |found: Option<&DynamicObject>| {
            let found = found.map(|found| found.data["spec"]["channels"].clone());
            let channels = found
                .and_then(|found| found.as_array().cloned())
                .unwrap_or_default();
            let offered = channels
                .iter()
                .find(|one| one["channel"] == channel.as_str());
            offered
                .and_then(|one| one["version"].as_str())
                .map(str::to_owned)
                == wanted
        };
        let api = self.catalog_api(runtime, "ModuleReleaseMeta");
        let waiting = await_condition(api, module, offers);
        let ended = tokio::time::timeout(std::time::Duration::from_secs(90), waiting).await;
        if ended.is_err() {
            let name = format!("{}.{}", self.name, runtime.name);
            let target = self.targets().get_opt(&name).await.unwrap();
            let live = self.catalog_api(runtime, "ModuleReleaseMeta");
            let live = live.get_opt(module).await.unwrap();
            panic!("{module} is not {version:?} on {name}: {target:#?}; {live:#?}");
        }
    }
}

/// Returns reason and message of `Ready`.
pub(crate) fn ready(target: &Target) -> (String, String) {
    let status = target.status.as_ref();
    let (_, reason, message) = ready_among(status.map(|status| status.conditions.as_slice()));
    (reason, message)
}

fn admin(kubeconfig: &Path) -> Value {
    serde_yaml::from_str(&std::fs::read_to_string(kubeconfig).unwrap()).unwrap()
}
