//! Secrets stay where they are: an agent that logs everything goes through all that can happen to a Secret and to credentials,
//! and none of their values is told anywhere.

use std::fmt::Write as _;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::canaries::{base64 as base64_of, inside_base64};
use crate::support::http::get;
use crate::support::world::{Agent, PASSWORD, World};

/// The value of a Secret in git, and what becomes of it.
const WANTED: &str = "canary-value-in-git";
const CHANGED: &str = "canary-value-changed-in-git";
const BY_HAND: &str = "canary-value-by-hand";
/// In Secrets that the API server, or a rule of ours, refuses.
const REFUSED: &str = "canary-value-of-a-refused-secret";
/// Credentials for git.
const WRONG: &str = "canary-password-that-is-wrong";
const BEARER: &str = "canary-bearer-token-of-git";
const IN_URL: &str = "canary-password-in-the-url";

/// What is told, by where.
type Told = Vec<(String, String)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_value_of_a_secret_is_told_anywhere() {
    let world = World::new().await;
    allow_secrets(&world).await;
    world.config_map("web", "settings", "one");
    write_secret(&world, "good", WANTED, "");
    write_secret(&world, "fixed", WANTED, "immutable: true\n");
    for (name, text) in refused() {
        let text = text.replace("APPS", &world.apps);
        world
            .repository
            .write(&format!("components/{name}/secret.yaml"), text);
    }
    world.repository.publish("Add Secrets");
    let filter = "trace,kube_client=trace,hyper_util=trace,hyper=trace,rustls=trace";
    let agent = world.agent_with(&["--log", filter]);
    world.declare(prune_freely()).await;
    world.until_reason("PartiallyApplied").await;
    until_password(&world, Some(WANTED)).await;

    by_hand(&world).await;
    until_password(&world, Some(WANTED)).await;
    write_secret(&world, "good", CHANGED, "");
    write_secret(&world, "fixed", CHANGED, "immutable: true\n");
    world.publish("Change the Secrets").await;
    until_password(&world, Some(CHANGED)).await;
    let mut told = commands(&world, "changed");

    credentials_fail(&world).await;
    // While a file cannot be read, nothing is pruned that it might hold.
    for (name, _) in refused() {
        world.repository.remove(&format!("components/{name}"));
    }
    write_secret(&world, "fixed", WANTED, "immutable: true\n");
    world.repository.remove("components/web/good.yaml");
    told.extend(commands(&world, "before the prune"));
    world.publish("Drop a Secret").await;
    until_password(&world, None).await;
    world.repository.remove("components/web");
    world.publish("Drop all of them").await;
    told.extend(commands(&world, "a folder gone"));

    told.push(("log".to_owned(), agent.log()));
    told.push(("audit lines".to_owned(), format!("{:?}", agent.audit())));
    told.push(("metrics".to_owned(), get(&agent.address(), "/metrics")));
    told.push(("events".to_owned(), world.events().await));
    told.push(status(&world).await);
    assert!(agent.log().contains("\"TRACE\""));
    assert_eq!(
        history(&agent),
        [
            ("apply", "changed", "missing"),
            ("apply", "changed", "drifted"),
            ("apply", "changed", "changed"),
            ("delete", "changed", "removed"),
        ]
        .map(|(action, result, why)| format!("{action} {result} {why}"))
    );
    let leaks = leaks(&world, &told);
    assert!(leaks.is_empty(), "{leaks}");
}

/// The shipped rights leave Secrets out; whoever has them in git adds them.
async fn allow_secrets(world: &World) {
    let name = format!("{}-secrets", world.name);
    world
        .plane
        .apply_yaml(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}}}\n\
             rules: [{{apiGroups: [''], resources: [secrets], verbs: [get, list, watch, create, patch, delete]}}]\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}\n\
             subjects: [{{kind: ServiceAccount, name: fairway, namespace: {}}}]\n",
            world.name
        ))
        .await;
}

/// Secrets that are not applied, each in a component of its own: the API server refuses the first, the rules the others.
fn refused() -> Vec<(&'static str, String)> {
    let secret = |name: &str, rest: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: APPS}}\n{rest}\n"
        )
    };
    let encoded = base64(REFUSED);
    vec![
        (
            "tls",
            secret(
                "tls",
                &format!("type: kubernetes.io/tls\ndata: {{tls.crt: {encoded}}}"),
            ),
        ),
        (
            "docker",
            secret(
                "docker",
                &format!(
                    "type: kubernetes.io/dockerconfigjson\nstringData: {{.dockerconfigjson: '{{\"auths\": {REFUSED}'}}"
                ),
            ),
        ),
        (
            "label",
            secret("label", &format!("stringData: {{'bad key!': {REFUSED}}}")),
        ),
        (
            "typo",
            secret("typo", &format!("dta: {{password: {REFUSED}}}")),
        ),
        ("token", secret("token", &format!("token: {REFUSED}"))),
        (
            "nested",
            secret("nested", &format!("data: {{password: [{REFUSED}]}}")),
        ),
        ("scalar", secret("scalar", &format!("data: {REFUSED}"))),
        ("list", secret("list", &format!("stringData: [{REFUSED}]"))),
        (
            "number",
            secret(
                "number",
                &format!("stringData: {{password: {REFUSED}, pin: 1234}}"),
            ),
        ),
        (
            "clear",
            secret("clear", &format!("data: {{password: {REFUSED}!}}")),
        ),
        (
            "open",
            secret("open", &format!("stringData: {{password: \"{REFUSED}}}")),
        ),
        (
            "twice",
            secret(
                "twice",
                &format!("stringData:\n  password: {REFUSED}\n  password: {REFUSED}"),
            ),
        ),
        (
            "alias",
            secret("alias", &format!("stringData: {{password: *{REFUSED}}}")),
        ),
        (
            "tag",
            secret("tag", &format!("stringData: {{password: !!int {REFUSED}}}")),
        ),
        ("key", secret("key", &format!("stringData:\n  {REFUSED}\n"))),
        (
            "kind",
            secret("kind", &format!("stringData: {{password: {REFUSED}}}"))
                .replace("kind: Secret\n", ""),
        ),
        (
            "status",
            secret("status", &format!("status: {{password: {REFUSED}}}")),
        ),
        (
            "config",
            format!(
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {{name: inside, namespace: APPS}}\n  stringData: [{REFUSED}]\n"
            ),
        ),
    ]
}

/// One Secret of three is more than may go by default.
fn prune_freely() -> Value {
    json!({"prune": {"enabled": true, "maxObjects": 10, "maxPercent": 100}})
}

fn write_secret(world: &World, name: &str, value: &str, more: &str) {
    let text = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: {}}}\n{more}data: {{password: {}}}\n",
        world.apps,
        base64(value)
    );
    world
        .repository
        .write(&format!("components/web/{name}.yaml"), text);
}

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.client.clone(), &world.apps)
}

/// Somebody changes the Secret's value, and its shape.
async fn by_hand(world: &World) {
    let patch = json!({"data": {"password": base64(BY_HAND), "more": base64(BY_HAND)}});
    secrets(world)
        .patch("good", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

async fn until_password(world: &World, value: Option<&str>) {
    let wanted = value.map(|value| value.as_bytes().to_vec());
    let condition = move |found: Option<&Secret>| {
        let data = found.and_then(|found| found.data.as_ref()?.get("password"));
        data.map(|ByteString(bytes)| bytes) == wanted.as_ref()
            && found.is_some() == wanted.is_some()
    };
    let waiting = kube::runtime::wait::await_condition(secrets(world), "good", condition);
    let patience = std::time::Duration::from_secs(40);
    let ended = tokio::time::timeout(patience, waiting).await;
    assert!(
        ended.is_ok(),
        "the Secret is never {value:?}: {:#?}",
        world.source().await.status
    );
}

/// Fetches with credentials that are refused, cannot be used, or meet a server that fails; in the end all is well.
async fn credentials_fail(world: &World) {
    world.secret(WRONG).await;
    world.reconcile().await;
    world.secret(&format!("{WRONG}\n")).await;
    world.reconcile().await;
    world.secret(PASSWORD).await;
    for fault in ["unauthorized", "deny", "error", "truncate 10"] {
        world.repository.write("README.md", fault);
        world.repository.publish("Make the agent fetch");
        world.server.fault(fault);
        world.reconcile().await;
    }
    world.server.fault("");
    for keys in [
        json!({"bearerToken": BEARER}),
        json!({"username": "ci", "bearerToken": BEARER, "password": WRONG}),
        json!({"username": "ci", "password": WRONG, "ca.crt": WRONG}),
    ] {
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "stringData": keys,
            "metadata": {"name": "git-credentials", "namespace": world.name},
        });
        let ca = String::from_utf8(world.server.certificate_authority()).unwrap();
        let keys = secret["stringData"].as_object_mut().unwrap();
        keys.entry("ca.crt").or_insert(Value::String(ca));
        forget_credentials(world).await;
        world.plane.apply_yaml(&secret.to_string()).await;
        world.reconcile().await;
    }
    let url = world.server.url();
    let with_password = url.replacen("https://", &format!("https://ci:{IN_URL}@"), 1);
    let declared = json!({"spec": {"url": with_password}});
    let parameters = PatchParams::default();
    let refused = world
        .sources()
        .patch(&world.name, &parameters, &Patch::Merge(&declared))
        .await;
    assert!(refused.is_err(), "the schema refuses it");
    forget_credentials(world).await;
    world.secret(PASSWORD).await;
    world.declare(prune_freely()).await;
    world.reconcile().await;
}

/// What `stringData` has set once stays in `data` when it is applied without it.
async fn forget_credentials(world: &World) {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.name);
    let parameters = kube::api::DeleteParams::default();
    secrets
        .delete("git-credentials", &parameters)
        .await
        .unwrap();
}

/// Runs every command that shows something, in every form.
fn commands(world: &World, when: &str) -> Told {
    let folder = world.repository.path().display().to_string();
    let (source, apps) = (world.name.as_str(), world.apps.as_str());
    let plan = [
        "plan",
        &folder,
        "--source",
        source,
        "--catalog-namespace",
        apps,
    ];
    let based = [&plan[..], &["--base", "HEAD~1"]].concat();
    let mut told = Told::new();
    for arguments in [
        &["get", "sources"][..],
        &["get", "targets"],
        &["get", "components"],
        &["get", "approvals"],
        &["describe", "source", source],
        &["describe", "target", source],
        &["validate", &folder],
        &["validate", &folder, "--base", "HEAD~1"],
        &plan,
        &based,
    ] {
        for form in ["text", "json"] {
            let arguments = [arguments, &["--output", form]].concat();
            let (_, out, err) = world.fairway(&arguments);
            told.push((format!("{arguments:?}, {when}"), out + &err));
        }
    }
    told
}

async fn status(world: &World) -> (String, String) {
    let (source, target) = (world.source().await, world.target().await);
    let text = json!({"source": source.status, "target": target, "labels": source.metadata});
    ("status".to_owned(), text.to_string())
}

/// What was done to the Secret `good`, by the audit lines; none has a digest, by which a guess could be proved.
fn history(agent: &Agent) -> Vec<String> {
    let lines = agent.audit();
    let secrets = lines
        .iter()
        .filter(|line| line["object"]["kind"]["kind"] == "Secret");
    assert!(secrets.clone().all(|line| line.get("digest").is_none()));
    let good = secrets.filter(|line| line["object"]["name"] == "good");
    let word = |line: &Value, field: &str| line[field].as_str().unwrap().to_owned();
    good.map(|line| {
        ["action", "result", "why"]
            .map(|field| word(line, field))
            .join(" ")
    })
    .collect()
}

/// Names each canary that is told, in clear or in base64, with where and what stands around it.
fn leaks(world: &World, told: &Told) -> String {
    let kubeconfig: Value = serde_json::from_str(&world.proxy.kubeconfig()).unwrap();
    let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap();
    let canaries = [
        PASSWORD, WANTED, CHANGED, BY_HAND, REFUSED, WRONG, BEARER, IN_URL, token,
    ];
    let mut leaks = String::new();
    for (place, text) in told {
        assert!(!text.is_empty(), "{place}");
        for canary in canaries {
            let forms = [vec![canary.to_owned()], inside_base64(canary)].concat();
            let Some(at) = forms.iter().find_map(|form| text.find(form.as_str())) else {
                continue;
            };
            let around: String = text[..at].chars().rev().take(200).collect();
            let around: String = around.chars().rev().collect();
            let shown = &canary[..canary.len().min(40)];
            writeln!(leaks, "{shown} in {place}: …{around}⟦here⟧").unwrap();
        }
    }
    leaks
}

fn base64(text: &str) -> String {
    base64_of(text.as_bytes())
}
