//! A world for one test: a namespace with the shipped rights, a git repository behind https, and the agent as a process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairway::model::api::{
    Condition as StatusCondition, ConditionType, ReleaseSource, Target, find,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{Condition, await_condition};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use super::agent::Agent;
use super::agent::{FAIRWAY, command};
use super::canaries;
use super::control_plane::ControlPlane;
use super::git_server::GitServer;
use super::proxy::Proxy;
use super::repository::Repository;

/// How long anything may take before a test gives up. Generous, since two cores serve a whole Kubernetes.
const PATIENCE: Duration = Duration::from_secs(90);
const USER: &str = "ci";
/// The password of the git server, which must never be told anywhere.
pub(crate) const PASSWORD: &str = "canary-password-of-the-git-server";

/// Everything that one test of the whole agent needs. What it has started is stopped when it is dropped.
pub(crate) struct World {
    /// The cluster.
    pub(crate) plane: &'static ControlPlane,
    /// The administrator's client.
    pub(crate) client: kube::Client,
    /// The namespace of the agent; its name is the source's name as well.
    pub(crate) name: String,
    /// A namespace for the objects of the test.
    pub(crate) apps: String,
    /// The repository that the agent follows.
    pub(crate) repository: Repository,
    /// The server of that repository.
    pub(crate) server: GitServer,
    /// Stands between the agent and the API server.
    pub(crate) proxy: Proxy,
    directory: TempDir,
}

// === impl World ===

impl World {
    /// Makes a world on the control plane that all tests share.
    pub(crate) async fn new() -> Self {
        Self::on(ControlPlane::minimal()).await
    }

    /// Makes a world on a control plane.
    pub(crate) async fn on(plane: &'static ControlPlane) -> Self {
        let client = plane.client().await;
        let name = plane.namespace_by(&client).await;
        let apps = plane.namespace_by(&client).await;
        install((plane, &client), &name, &apps).await;
        Self::beside(plane, name, apps).await
    }

    /// Makes a world where everything is installed already, in namespaces that are there.
    pub(crate) async fn beside(plane: &'static ControlPlane, name: String, apps: String) -> Self {
        let client = plane.client().await;
        let directory = tempfile::tempdir().expect("there is room for a directory");
        let server = GitServer::lent(&name, PASSWORD);
        let repository = Repository::create(&directory.path().join("modules"));
        repository.remote(
            server.repository().to_str().expect("test paths are UTF-8"),
            None,
        );
        let proxy = Proxy::start_as(plane, &name, "fairway").await;
        let world = Self {
            plane,
            client,
            name,
            apps,
            repository,
            server,
            proxy,
            directory,
        };
        world.secret(PASSWORD).await;
        world
    }

    /// Installs a file of `deploy/` that is not installed by itself, as an operator has changed it.
    pub(crate) async fn opt_in(&self, file: &str, change: impl FnOnce(String) -> String) {
        let text = change(shipped_into(file, &self.name, &self.apps));
        self.plane.apply_texts(&self.client, &text).await;
    }

    /// Starts the agent under the token of the shipped ServiceAccount.
    pub(crate) fn agent(&self) -> Agent {
        self.agent_with(&[])
    }

    /// Starts the agent with further arguments.
    pub(crate) fn agent_with(&self, arguments: &[&str]) -> Agent {
        self.agent_by(FAIRWAY, arguments)
    }

    /// Starts the agent so that no file of its can grow beyond 128 KiB, as on a volume that is full.
    pub(crate) fn agent_without_room(&self) -> Agent {
        let script = "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\"";
        self.agent_by(&["sh", "-c", script, FAIRWAY[0]], &[])
    }

    fn agent_by(&self, program: &[&str], arguments: &[&str]) -> Agent {
        let path = self.directory.path().join("agent.kubeconfig");
        std::fs::write(&path, self.proxy.kubeconfig()).expect("it can be written");
        let directory = self.directory.path();
        Agent::start(program, &path, &self.name, directory, arguments)
    }

    /// Starts the agent straight at the API server, without the proxy.
    pub(crate) fn agent_direct(&self) -> Agent {
        self.agent_direct_with(&[])
    }

    /// Does the same with further arguments.
    pub(crate) fn agent_direct_with(&self, arguments: &[&str]) -> Agent {
        let path = self.directory.path().join("direct.kubeconfig");
        let admin = std::fs::read_to_string(self.plane.kubeconfig()).expect("it can be read");
        let mut direct: Value = serde_yaml::from_str(&admin).expect("a kubeconfig is YAML");
        let own: Value =
            serde_yaml::from_str(&self.proxy.kubeconfig()).expect("a kubeconfig is YAML");
        // The cluster of the administrator's file, the account of the agent's.
        direct["users"][0]["user"] = own["users"][0]["user"].clone();
        std::fs::write(&path, direct.to_string()).expect("the kubeconfig can be written");
        let directory = self.directory.path();
        Agent::start(FAIRWAY, &path, &self.name, directory, arguments)
    }

    /// Asks for a pass, as `fairway reconcile` does.
    pub(crate) async fn ring(&self) -> String {
        let at = format!("{:?}", Instant::now());
        let patch = json!({"metadata": {"annotations": {"fairway.dev/requestedAt": at}}});
        self.sources()
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .expect("it is there");
        at
    }

    /// The folder where the agent keeps its mirrors.
    pub(crate) fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// Creates or changes the ReleaseSource; `spec` is merged over a default.
    pub(crate) async fn declare(&self, spec: Value) {
        self.declare_as(&self.name, spec).await;
    }

    /// Does the same with a source of another name.
    pub(crate) async fn declare_as(&self, name: &str, spec: Value) {
        let mut body = json!({
            "apiVersion": "fairway.dev/v1alpha1",
            "kind": "ReleaseSource",
            "metadata": {"name": name},
            "spec": {
                "url": self.server.url(),
                "ref": {"branch": "main"},
                "interval": "1h",
                "secretRef": {"name": "git-credentials"},
                "catalog": {"namespace": self.apps},
            },
        });
        let fields = body["spec"].as_object_mut().expect("it is an object");
        for (key, value) in spec.as_object().expect("a spec is an object") {
            fields.insert(key.clone(), value.clone());
        }
        let parameters = PatchParams::apply("test").force();
        self.sources()
            .patch(name, &parameters, &Patch::Apply(&body))
            .await
            .expect("it is valid");
    }

    /// Asks for a pass, as `fairway reconcile` does, and waits until it has been reported.
    pub(crate) async fn reconcile(&self) -> ReleaseSource {
        let at = self.ring().await;
        self.until_source(
            "the pass is reported",
            move |source: Option<&ReleaseSource>| {
                let status = source.and_then(|source| source.status.as_ref());
                status.is_some_and(|status| status.last_handled_reconcile_at.as_ref() == Some(&at))
            },
        )
        .await
    }

    /// Commits and pushes, asks for a pass, and waits for its report.
    pub(crate) async fn publish(&self, message: &str) -> ReleaseSource {
        self.repository.publish(message);
        self.reconcile().await
    }

    /// Waits for a condition of the source.
    pub(crate) async fn until_source(
        &self,
        what: &str,
        condition: impl Condition<ReleaseSource>,
    ) -> ReleaseSource {
        let waiting = await_condition(self.sources(), &self.name, condition);
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found.expect("it can be watched").expect("it is there"),
            Err(tokio::time::error::Elapsed { .. }) => panic!(
                "not so after {PATIENCE:?}: {what}; {:#?}",
                self.source().await.status
            ),
        }
    }

    /// Waits until the source has this reason in `Ready`.
    pub(crate) async fn until_reason(&self, reason: &'static str) -> ReleaseSource {
        self.until_source(reason, move |source: Option<&ReleaseSource>| {
            source.is_some_and(|source| ready(source).1 == reason)
        })
        .await
    }

    /// Writes a component's ConfigMap into the repository.
    pub(crate) fn config_map(&self, component: &str, name: &str, data: &str) {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {}}}\ndata: {{value: {data:?}}}\n",
            self.apps
        );
        self.repository
            .write(&format!("components/{component}/{name}.yaml"), text);
    }

    /// Returns the value that a ConfigMap has on the cluster; none when it is not there.
    pub(crate) async fn value(&self, name: &str) -> Option<String> {
        let found = self
            .config_maps()
            .get_opt(name)
            .await
            .expect("it can be read")?;
        found.data.unwrap_or_default().get("value").cloned()
    }

    /// Waits until a ConfigMap has a value, or is gone.
    pub(crate) async fn until_value(&self, name: &str, value: Option<&str>) {
        let wanted = value.map(str::to_owned);
        let condition = move |found: Option<&ConfigMap>| {
            let data = found.and_then(|found| found.data.as_ref());
            data.and_then(|data| data.get("value")).cloned() == wanted
                && found.is_some() == wanted.is_some()
        };
        let waiting = await_condition(self.config_maps(), name, condition);
        let ended = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(
            ended.is_ok(),
            "{name} is not {value:?} after {PATIENCE:?} but {:?}",
            self.value(name).await
        );
    }

    /// Returns the source as it is.
    pub(crate) async fn source(&self) -> ReleaseSource {
        self.sources().get(&self.name).await.expect("it is there")
    }

    /// Returns the target as it is.
    pub(crate) async fn target(&self) -> Target {
        self.targets()
            .get(&format!("{}.home", self.name))
            .await
            .expect("it is there")
    }

    /// The sources in the agent's namespace.
    pub(crate) fn sources(&self) -> Api<ReleaseSource> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The targets in the agent's namespace.
    pub(crate) fn targets(&self) -> Api<Target> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Returns all Events of the agent's namespace as text.
    pub(crate) async fn events(&self) -> String {
        let api: Api<k8s_openapi::api::events::v1::Event> =
            Api::namespaced(self.client.clone(), &self.name);
        format!(
            "{:?}",
            api.list(&kube::api::ListParams::default())
                .await
                .expect("they can be listed")
                .items
        )
    }

    /// The ConfigMaps in the namespace of the test's objects.
    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.apps)
    }

    /// The ModuleReleaseMetas in the catalog's namespace.
    pub(crate) fn kyma(&self, kind: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("operator.kyma-project.io", "v1beta2", kind);
        Api::namespaced_with(
            self.client.clone(),
            &self.apps,
            &ApiResource::from_gvk(&kind),
        )
    }

    /// Runs a command of the command line as the administrator; returns its exit code, stdout and stderr. Blocks its thread, so
    /// that a command which waits for the agent needs a test with several.
    pub(crate) fn fairway(&self, arguments: &[&str]) -> (i32, String, String) {
        self.fairway_by(self.plane.kubeconfig(), arguments)
    }

    /// Runs a command through the proxy, under the rights of the agent.
    pub(crate) fn fairway_through_proxy(&self, arguments: &[&str]) -> (i32, String, String) {
        let path = self.directory.path().join("command.kubeconfig");
        std::fs::write(&path, self.proxy.kubeconfig()).expect("it can be written");
        self.fairway_by(&path, arguments)
    }

    fn fairway_by(&self, kubeconfig: &Path, arguments: &[&str]) -> (i32, String, String) {
        let output = command(FAIRWAY)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--namespace", &self.name])
            .args(arguments)
            .output()
            .expect("the binary is built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let place = format!("fairway {arguments:?}");
        canaries::search(&place, &text(&output.stdout));
        canaries::search(&place, &text(&output.stderr));
        (
            output.status.code().unwrap_or(-1),
            text(&output.stdout),
            text(&output.stderr),
        )
    }

    /// Writes the Secret with the credentials.
    pub(crate) async fn secret(&self, password: &str) {
        let ca = String::from_utf8(self.server.certificate_authority()).expect("PEM is text");
        let body = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "git-credentials", "namespace": self.name},
            "stringData": {"username": USER, "password": password, "ca.crt": ca},
        });
        let text = body.to_string();
        self.plane.apply_texts(&self.client, &text).await;
    }
}

/// Returns status, reason and message of `Ready`.
pub(crate) fn ready(source: &ReleaseSource) -> (String, String, String) {
    let status = source.status.as_ref();
    ready_among(status.map(|status| status.conditions.as_slice()))
}

/// Returns status, reason and message of `Ready` among conditions; empty words where it is not there.
pub(crate) fn ready_among(conditions: Option<&[StatusCondition]>) -> (String, String, String) {
    let ready = find(conditions.unwrap_or_default(), ConditionType::Ready);
    ready.map_or_else(Default::default, |one| {
        let status = format!("{:?}", one.status);
        (status, one.reason.clone(), one.message.clone())
    })
}

/// Installs what `deploy/` ships into a namespace of the test, in the place of `fairway-system`.
async fn install((plane, client): (&ControlPlane, &kube::Client), namespace: &str, apps: &str) {
    define(plane, client).await;
    for file in [
        "serviceaccount.yaml",
        "role.yaml",
        "role-apply.yaml",
        "role-runtimes.yaml",
    ] {
        let text = shipped_into(file, namespace, apps);
        plane.apply_texts(client, &text).await;
    }
}

/// Returns a file of `deploy/` for a namespace of the test.
fn shipped_into(file: &str, namespace: &str, apps: &str) -> String {
    // Bindings of cluster roles have no namespace; each world has its own beside the others.
    shipped(&deploy().join(file))
        .replace("fairway-system", namespace)
        .replace("kcp-system", apps)
        .replace(
            "kind: ClusterRoleBinding\nmetadata:\n  name: fairway",
            &format!("kind: ClusterRoleBinding\nmetadata:\n  name: {namespace}-fairway"),
        )
}

/// Installs the definitions that `deploy/` ships, once for all tests of a control plane.
pub(crate) async fn define(plane: &ControlPlane, client: &kube::Client) {
    let definitions = || {
        let folders = ["crds", "kyma-crds"].map(|folder| deploy().join(folder));
        let entries = folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).expect("deploy is part of the project"));
        let paths = entries.map(|entry| entry.expect("it can be read").path());
        let definitions = paths.filter(|path| !path.ends_with("kustomization.yaml"));
        definitions.map(|path| shipped(&path)).collect()
    };
    plane.prepare(client, definitions).await;
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn shipped(path: &Path) -> String {
    std::fs::read_to_string(path).expect("deploy is part of the project")
}
