//! `fairway webhook show` and `test`, beside the running agent.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::forge::{Hooked, TOKEN, token};

/// The proxy goes on while a command waits for the agent behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_shown_and_tried_out_without_telling_its_token() {
    let hooked = Hooked::new("GitHub").await;
    let (world, url) = (&hooked.world, format!("http://{}", hooked.address));
    let (code, out, err) = world.fairway(&[
        "webhook",
        "show",
        &world.name,
        "--url",
        "https://hooks.example.com/",
    ]);
    assert_eq!(code, 0, "{err}");
    assert!(!out.contains(TOKEN) && !err.contains(TOKEN));
    let stable = out
        .replace(&world.name, "SOURCE")
        .replace(&hooked.path, "/hook/DIGEST");
    insta::assert_snapshot!("show", stable);

    let before = hooked.fetches();
    let (code, out, err) = world.fairway(&["webhook", "test", &world.name, "--url", &url]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(
        out,
        format!(
            "200 OK: looking for a new revision of {} (Announced)\n",
            world.name
        )
    );
    assert_eq!(hooked.fetches(), before + 1);
    let (code, out, _) = world.fairway(&["webhook", "show", &world.name, "--output", "json"]);
    assert_eq!(code, 0);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["path"], hooked.path.as_str());
    assert_eq!(shown["status"]["lastDelivery"]["result"], "Announced");

    // An agent that does not know the token, an address where nobody is, a source that has none.
    let other = format!("{url}/elsewhere");
    let (code, out, err) = world.fairway(&["webhook", "test", &world.name, "--url", &other]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.contains("404") && err.contains("fairway webhook show"),
        "{err}"
    );
    let (code, _, err) = world.fairway(&[
        "webhook",
        "test",
        &world.name,
        "--url",
        "http://127.0.0.1:1",
    ]);
    assert_eq!(code, 2);
    assert!(err.contains("nothing answers at"), "{err}");
    let (code, _, err) = world.fairway(&["webhook", "test", &world.name]);
    assert_eq!(code, 2);
    assert!(
        err.contains("fairway-webhook") || err.contains("Service"),
        "{err}"
    );
    token(world, json!({"token": "short"})).await;
    let (code, _, err) = world.fairway(&["webhook", "test", &world.name, "--url", &url]);
    assert_eq!(code, 2);
    assert!(err.contains("shorter than 16"), "{err}");
    world.declare(json!({})).await;
    let (code, _, err) = world.fairway(&["webhook", "show", &world.name]);
    assert_eq!(code, 2);
    assert!(err.contains("spec.webhook"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_provider_can_be_tried_out() {
    for (provider, with) in [
        ("GitLab", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("GitLab", TOKEN),
        ("Gitea", TOKEN),
        ("Forgejo", TOKEN),
        ("Bitbucket", TOKEN),
        ("Generic", TOKEN),
    ] {
        let hooked = Hooked::new(provider).await;
        token(&hooked.world, json!({"token": with})).await;
        let url = format!("http://{}", hooked.address);
        let (code, out, err) =
            hooked
                .world
                .fairway(&["webhook", "test", &hooked.world.name, "--url", &url]);
        assert_eq!(code, 0, "{provider}: {out}{err}");
        let (code, out, err) = hooked
            .world
            .fairway(&["webhook", "show", &hooked.world.name]);
        assert_eq!(code, 0, "{provider}: {err}");
        assert!(!out.contains(with), "{out}");
    }
}

/// Who has rights in the cluster and no way into its network goes through the API server. It proxies to no loopback address,
/// so that a machine which has no other cannot show this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_tried_out_through_the_api_server() {
    let Some(own) = outward_address() else {
        return;
    };
    let hooked = Hooked::listening("GitHub", &format!("{own}:0")).await;
    let (world, (_, port)) = (&hooked.world, hooked.address.rsplit_once(':').unwrap());
    let service =
        include_str!("../../../deploy/service.yaml").replace("fairway-system", &world.name);
    world.plane.apply_yaml(&service).await;
    // It proxies to nothing but pods, so that there has to be one with the agent's address.
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "fairway", "namespace": world.name},
        "spec": {
            "serviceAccountName": "fairway",
            "automountServiceAccountToken": false,
            "containers": [{"name": "agent", "image": "fairway"}],
        },
    });
    world.plane.apply_yaml(&pod.to_string()).await;
    let status = json!({"status": {"podIP": own, "podIPs": [{"ip": own}]}});
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), &world.name);
    pods.patch_status("fairway", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    let target = json!({"kind": "Pod", "namespace": world.name, "name": "fairway"});
    let ports = json!([{"name": "webhook", "port": port.parse::<u16>().unwrap()}]);
    let endpoints = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "fairway-webhook", "namespace": world.name},
        "subsets": [{"addresses": [{"ip": own, "targetRef": target}], "ports": ports}],
    });
    world.plane.apply_yaml(&endpoints.to_string()).await;
    // The API server needs a moment to see where the Service leads.
    let begun = Instant::now();
    let (mut code, mut out, mut err) = world.fairway(&["webhook", "test", &world.name]);
    while code != 0 && begun.elapsed() < Duration::from_secs(30) {
        assert!(err.contains("no endpoints available"), "{err}");
        (code, out, err) = world.fairway(&["webhook", "test", &world.name]);
    }
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(
        out,
        format!(
            "200 OK: looking for a new revision of {} (Announced)\n",
            world.name
        )
    );
}

/// Returns this machine's address on its way out; nothing is sent for it.
fn outward_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}
