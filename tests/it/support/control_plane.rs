//! A real control plane, started once for all tests of the process and stopped with it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use fairway::cluster::Cluster;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::Scope;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// A cluster that tests may do anything to.
pub(crate) struct ControlPlane {
    kubeconfig: PathBuf,
    /// The administrator's connection settings, once it was looked at that the cluster may be thrown away.
    config: OnceCell<kube::Config>,
    /// What its API is known to serve.
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, Scope)>>,
    /// Whether it has what all worlds share.
    prepared: OnceCell<()>,
}

impl ControlPlane {
    /// etcd and the API server alone; no controller acts on anything.
    pub(crate) fn minimal() -> &'static Self {
        static PLANE: OnceLock<ControlPlane> = OnceLock::new();
        PLANE.get_or_init(|| Self::start("minimal"))
    }

    /// All parts: controllers, scheduler and a simulated kubelet.
    pub(crate) fn full() -> &'static Self {
        static PLANE: OnceLock<ControlPlane> = OnceLock::new();
        PLANE.get_or_init(|| Self::start("all"))
    }

    /// All parts, for what concerns the cluster as a whole, such as installing and uninstalling. One test has it.
    pub(crate) fn of_its_own(test: &str) -> Self {
        Self::launch("all", test)
    }

    /// etcd and the API server for one test, which may stop and start them. They end with the process of the tests.
    pub(crate) fn own() -> &'static Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        Box::leak(Box::new(Self::launch("minimal", &format!("own-{next}"))))
    }

    /// Runs a command of the `control-plane` binary on a control plane that this process has started.
    #[expect(clippy::disallowed_methods, reason = "the binary is a process")]
    pub(crate) fn command(&self, arguments: &[&str]) {
        let state = self.kubeconfig.parent().expect("it is a file");
        let output = Command::new(binary())
            .env_remove("KUBECONFIG")
            .args(&arguments[..1])
            .arg("--state")
            .arg(state)
            .args(&arguments[1..])
            .output()
            .expect("the binary was built");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn start(parts: &str) -> Self {
        // Only this variable can name another cluster; KUBECONFIG may be somebody's real one.
        if let Some(kubeconfig) = super::environment("FAIRWAY_TEST_KUBECONFIG") {
            return Self::at(kubeconfig.into());
        }
        Self::launch(parts, parts)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "tests start the control plane as a process"
    )]
    fn launch(parts: &str, name: &str) -> Self {
        let process = std::process::id();
        let state =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("control-plane-{process}-{name}"));
        let up = Command::new(binary())
            .env_remove("KUBECONFIG")
            .args([
                "up",
                "--parts",
                parts,
                "--watch-parent",
                &process.to_string(),
                "--state",
            ])
            .arg(&state)
            .output()
            .expect("the control plane can be started");
        assert!(
            up.status.success(),
            "{}",
            String::from_utf8_lossy(&up.stderr)
        );
        Self::at(state.join("kubeconfig"))
    }

    fn at(kubeconfig: PathBuf) -> Self {
        Self {
            kubeconfig,
            config: OnceCell::new(),
            kinds: Mutex::default(),
            prepared: OnceCell::new(),
        }
    }

    /// The path of the administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs the real kubectl as the administrator in a namespace.
    #[expect(clippy::disallowed_methods, reason = "kubectl is a process")]
    pub(crate) fn kubectl(&self, namespace: &str, arguments: &[&str]) {
        let output = Command::new(binary())
            .env_remove("KUBECONFIG")
            .args(["kubectl", "--namespace", namespace, "--kubeconfig"])
            .arg(self.kubeconfig())
            .args(arguments)
            .output()
            .expect("the binary was built");
        assert!(
            output.status.success(),
            "kubectl {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// The administrator's connection settings, after a look that the cluster may be thrown away.
    pub(crate) async fn config(&self) -> kube::Config {
        let config = self.config.get_or_init(async || {
            let config = config_of(self.kubeconfig()).await;
            let client = kube::Client::try_from(config.clone()).unwrap();
            Api::<ConfigMap>::namespaced(client, "kube-system")
                .get("fairway-throwaway")
                .await
                .expect(
                    "a cluster without ConfigMap kube-system/fairway-throwaway is not for tests",
                );
            config
        });
        config.await.clone()
    }

    /// Applies what all worlds on it share, with the first of them.
    pub(crate) async fn prepare(&self, client: &kube::Client, texts: impl FnOnce() -> Vec<String>) {
        let prepared = self.prepared.get_or_init(async || {
            for text in texts() {
                self.apply_texts(client, &text).await;
            }
        });
        prepared.await;
    }

    /// kube's own client with all rights. A client belongs to the test that made it, since it lives on its runtime.
    pub(crate) async fn client(&self) -> kube::Client {
        kube::Client::try_from(self.config().await).unwrap()
    }

    /// Our own connection, with all rights.
    pub(crate) async fn cluster(&self) -> Cluster {
        Cluster::connect(self.config().await, None).await.unwrap()
    }

    /// Makes a namespace that nobody else uses. It is left behind: removing one takes five seconds.
    pub(crate) async fn namespace(&self) -> String {
        self.namespace_by(&self.client().await).await
    }

    /// Does the same with a client that is there.
    pub(crate) async fn namespace_by(&self, client: &kube::Client) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{next}", std::process::id());
        let namespace = json!({"metadata": {"name": name}});
        Api::<Namespace>::all(client.clone())
            .create(
                &PostParams::default(),
                &serde_json::from_value(namespace).unwrap(),
            )
            .await
            .unwrap();
        name
    }

    /// Applies the objects of a YAML text as the manager `test`.
    pub(crate) async fn apply_yaml(&self, text: &str) {
        self.apply_texts(&self.client().await, text).await;
    }

    /// Does the same with a client that is there.
    pub(crate) async fn apply_texts(&self, client: &kube::Client, text: &str) {
        for value in serde_yaml::from_multiple::<Value>(text).unwrap() {
            self.apply_as(client, "test", value).await;
        }
    }

    /// Applies one object as the given manager, with force.
    pub(crate) async fn apply_as(
        &self,
        client: &kube::Client,
        manager: &str,
        value: Value,
    ) -> DynamicObject {
        let object: DynamicObject = serde_json::from_value(value).unwrap();
        let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
        let (resource, scope) = self.served(client, &kind).await;
        let api = match (&object.metadata.namespace, scope) {
            (Some(namespace), Scope::Namespaced) => {
                Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource)
            }
            _ => Api::all_with(client.clone(), &resource),
        };
        let name = object.metadata.name.clone().unwrap();
        let params = PatchParams::apply(manager).force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .unwrap()
    }

    /// Returns how a kind is served; what is known is not asked again.
    async fn served(&self, client: &kube::Client, kind: &GroupVersionKind) -> (ApiResource, Scope) {
        if let Some(known) = self.kinds.lock().unwrap().get(kind) {
            return known.clone();
        }
        let (resource, capabilities) = kube::discovery::pinned_kind(client, kind).await.unwrap();
        let known = (resource, capabilities.scope);
        let mut kinds = self.kinds.lock().unwrap();
        kinds.insert(kind.clone(), known.clone());
        known
    }
}

/// Returns the binary that holds all parts, built where it is not there yet.
#[expect(clippy::disallowed_methods, reason = "the build is a script")]
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control-plane/build");
        let built = Command::new(&build)
            .output()
            .expect("tests/control-plane/build can be run");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        PathBuf::from(String::from_utf8(built.stdout).unwrap().trim())
    })
}

/// Reads a kubeconfig file.
pub(crate) async fn config_of(kubeconfig: &Path) -> kube::Config {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap()
}
