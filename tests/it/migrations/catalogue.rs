//! The whole catalogue of examples in one deploy, on a cluster with a past, under the rights that `fairway migration rbac` prints.

use fairway::model::api::RunPhase;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use super::deploy::stage;
use super::examples::{
    allow, api, copy, copy_changed, definition, old_operator, operator, pods, put, put_soon,
    small_volumes, volume_driver, volumes,
};
use crate::support::control_plane::ControlPlane;
use crate::support::world::World;

const ISTIO: &str = "networking.istio.io";
const GATEWAY: (&str, &str, &str) = (ISTIO, "v1beta1", "Gateway");
const VIRTUAL_SERVICE: (&str, &str, &str) = (ISTIO, "v1beta1", "VirtualService");

fn release(world: &World, release: &str) {
    let text = format!("apiVersion: fairway.dev/v1alpha1\nkind: Repository\nrelease: {release}\n");
    world.repository.write("fairway.yaml", text);
}

/// What git had before: components in their last version.
fn before(world: &World) {
    release(world, "1.11.0");
    let component = |name: &str, version: &str| {
        let text =
            format!("apiVersion: fairway.dev/v1alpha1\nkind: Component\nversion: {version}\n");
        let file = format!("components/{name}/component.yaml");
        world.repository.write(&file, text);
    };
    component("nats", "2.9.0");
    let ordered = [(
        "podManagementPolicy: Parallel",
        "podManagementPolicy: OrderedReady",
    )];
    copy_changed(world, "components/nats/statefulset.yaml", &ordered);
    component("warden", "1.1.0");
    let older = [("warden-admission:1.2.0", "warden-admission:1.1.3")];
    copy_changed(world, "components/warden/deployment.yaml", &older);
}

/// What others had made on the cluster.
async fn past(world: &World) {
    let logs = format!("logs-{}.example.com", world.apps);
    let pipelines = (logs.as_str(), "logpipelines", "LogPipeline");
    for kind in [
        definition((ISTIO, "gateways", "Gateway"), &["v1beta1"]),
        definition((ISTIO, "virtualservices", "VirtualService"), &["v1beta1"]),
        definition(pipelines, &["v1alpha1", "v1beta1"]),
    ] {
        world
            .plane
            .apply_texts(&world.client, &kind.to_string())
            .await;
    }
    put_soon(
        world,
        GATEWAY,
        "ingress-gateway",
        json!({"spec": {"selector": {"istio": "ingressgateway"}}}),
    )
    .await;
    for name in ["dashboards", "team-a"] {
        let more = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": format!("{}-dashboards", world.apps)}},
            "spec": {"hosts": [format!("{name}.example.com"), "other.example.org"]},
        });
        put_soon(world, VIRTUAL_SERVICE, name, more).await;
    }
    for name in ["one", "two"] {
        put_soon(
            world,
            (&logs, "v1alpha1", "LogPipeline"),
            name,
            json!({"spec": {"input": name}}),
        )
        .await;
    }
    // From now on they are stored in the other version.
    let newer = definition(pipelines, &["v1beta1", "v1alpha1"]);
    world
        .plane
        .apply_texts(&world.client, &newer.to_string())
        .await;
    for name in ["dashboard-mixer", "dashboard-pilot", "dashboard-pods"] {
        put(world, json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"observability.example.com/dashboard": "true"}},
        }))
        .await;
    }
    // An installer has mounted certificates into what git had applied.
    let certificates = json!({"name": "certs", "secret": {"secretName": "warden-certificates"}});
    let mount = json!({"name": "certs", "mountPath": "/tmp/certificates"});
    put(world, json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "warden-admission"},
        "spec": {"template": {"spec": {
            "volumes": [certificates], "containers": [{"name": "admission", "volumeMounts": [mount]}],
        }}},
    }))
    .await;
}

/// A cluster with a past that has what git had before, and the rights for the examples, which are not published yet.
pub(crate) async fn set(world: &World) {
    before(world);
    world.repository.publish("Before");
    let mut agent = world.agent();
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (_, well) = agent.terminate();
    assert!(well, "{}", agent.log());
    past(world).await;
    copy_all(world);
    allow(world).await;
}

fn copy_all(world: &World) {
    release(world, "1.12.0");
    for folder in ["ingress", "logging", "nats", "observability", "warden"] {
        copy(world, &format!("components/{folder}"));
    }
    copy(world, "migrations");
}

/// Publishes the examples.
pub(crate) fn act(world: &World) -> String {
    copy_all(world);
    world.repository.publish("The whole catalogue")
}

/// Returns what of the past is there as it is now, one line each.
pub(crate) async fn present(world: &World) -> Vec<String> {
    let gateway = api(world, GATEWAY).get("ingress-gateway").await.unwrap();
    let release = &gateway.annotations()["meta.helm.sh/release-name"];
    let mut lines = vec![format!("gateway of {release}")];
    let services = api(world, VIRTUAL_SERVICE);
    let services = services.list(&ListParams::default()).await.unwrap();
    lines.extend(
        services
            .iter()
            .map(|it| format!("{}: {}", it.name_any(), it.data["spec"]["hosts"])),
    );
    let dashboards = ListParams::default().labels("observability.example.com/dashboard=true");
    let dashboards = world.config_maps().list(&dashboards).await.unwrap();
    lines.extend(dashboards.iter().map(ResourceExt::name_any));
    let name = format!("logpipelines.logs-{}.example.com", world.apps);
    let definitions =
        kube::core::GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions = kube::api::ApiResource::from_gvk(&definitions);
    let definitions =
        kube::Api::<kube::api::DynamicObject>::all_with(world.client.clone(), &definitions);
    let kind = definitions.get(&name).await.unwrap();
    lines.push(format!("stored: {}", kind.data["status"]["storedVersions"]));
    let warden = api(world, ("apps", "v1", "Deployment"));
    let warden = warden.get("warden-admission").await.unwrap();
    let spec = &warden.data["spec"]["template"]["spec"];
    let is_mounted = spec.to_string().contains("certs");
    lines.push(format!(
        "warden {} mounts certificates: {is_mounted}",
        spec["containers"][0]["image"]
    ));
    let set = api(world, ("apps", "v1", "StatefulSet"));
    let set = set.get("nats").await.unwrap();
    lines.push(format!("nats {}", set.data["spec"]["podManagementPolicy"]));
    lines
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_migrates_a_cluster_with_a_past_in_one_deploy() {
    let world = World::on(ControlPlane::full()).await;
    set(&world).await;
    old_operator(&world).await;
    small_volumes(&world).await;
    let set = api(&world, ("apps", "v1", "StatefulSet"))
        .get("nats")
        .await
        .unwrap();
    let loki = pods(&world, "app.kubernetes.io/name=loki").await;

    let commit = act(&world);
    let _driver = volume_driver(&world);
    let _agent = world.agent();
    crate::crash::stage::settled(&world, &commit).await;

    assert_eq!(
        stage::outcomes(&world).await,
        [
            "adopt-gateway",
            "grow-loki-volumes",
            "remove-certificate-volume",
            "remove-nats-operator",
            "remove-old-dashboards",
            "rename-dashboards-host",
            "rewrite-log-pipelines",
            "start-nats-in-parallel",
        ]
        .map(|name| format!("{name} {}", RunPhase::Succeeded))
    );
    assert_eq!(
        present(&world).await,
        [
            "gateway of ingress",
            r#"dashboards: ["dashboards-internal.example.com","other.example.org"]"#,
            r#"team-a: ["team-a-internal.example.com","other.example.org"]"#,
            "dashboard-pods",
            r#"stored: ["v1beta1"]"#,
            r#"warden "registry.example.com/platform/warden-admission:1.2.0" mounts certificates: false"#,
            r#"nats "Parallel""#,
        ]
    );

    // The operator went, and the set was made anew.
    let left = operator(&world).await;
    assert_eq!(
        left.iter().filter(|line| line.ends_with(": None")).count(),
        5,
        "{left:#?}"
    );
    let again = api(&world, ("apps", "v1", "StatefulSet"))
        .get("nats")
        .await
        .unwrap();
    assert_ne!(again.uid(), set.uid());
    // The volumes grew, and their pods were left alone.
    let volumes = volumes(&world).await;
    assert_eq!(
        volumes
            .iter()
            .filter(|line| line.matches("30Gi").count() == 2)
            .count(),
        2,
        "{volumes:#?}"
    );
    let kept = pods(&world, "app.kubernetes.io/name=loki").await;
    let uids = |pods: &[k8s_openapi::api::core::v1::Pod]| {
        pods.iter().map(ResourceExt::uid).collect::<Vec<_>>()
    };
    assert_eq!(uids(&kept), uids(&loki));
}
