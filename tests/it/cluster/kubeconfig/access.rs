//! What is used.

use fairway::cluster::{AccessPolicy, Cluster, RemoteAccess};
use rstest::rstest;

use super::{CANARY, base64, fixture, good, spoiled, with_user};
use crate::support::control_plane::ControlPlane;

const ALLOWS_LOCAL: AccessPolicy = AccessPolicy {
    forbid_local: false,
};

#[rstest]
#[case::as_it_is(good())]
#[case::the_only_context(spoiled("current-context: runtime\n", ""))]
#[case::an_empty_current_context(spoiled("current-context: runtime", "current-context: ''"))]
#[case::several_contexts(good() + "- name: second\n  context: {cluster: shoot, user: robot, namespace: a}\n")]
#[case::what_tools_keep(good() + "preferences: {colors: true}\nextensions:\n- {name: a, extension: {b: [c]}}\n")]
#[case::what_programs_write(with_user("token: x\n    exec: null\n    tokenFile: null"))]
#[case::a_check_that_is_on(spoiled(
    "    server:",
    "    insecure-skip-tls-verify: false\n    server:"
))]
#[case::a_name_for_tls(spoiled("    server:", "    tls-server-name: api.internal\n    server:"))]
#[case::no_compression(spoiled("    server:", "    disable-compression: true\n    server:"))]
#[case::a_path(spoiled(":6443", "/k8s/clusters/c-abc"))]
#[case::an_address(spoiled("api.runtime.example.com", "10.0.0.1"))]
#[case::an_address_of_six_bytes(spoiled("api.runtime.example.com", "'[2001:db8::1]'").replace("//'[", "//[").replace("]':", "]:"))]
#[case::a_name_with_digits(spoiled("api.runtime.example.com", "api.1.2.3.4.nip.io"))]
#[case::json(serde_json::to_string(&serde_yaml::from_str::<serde_json::Value>(&good()).unwrap()).unwrap())]
#[case::a_byte_order_mark(format!("\u{feff}{}", good()))]
fn is_accepted(#[case] text: String) {
    let access = RemoteAccess::parse(text.as_bytes(), AccessPolicy::default()).unwrap();
    let config = access.config();
    assert_eq!(config.proxy_url, None);
    assert!(!config.accept_invalid_certs);
    assert!(config.root_cert.is_some());
    assert_eq!(config.root_cert_file, None);
    assert!(config.auth_info.token.is_some());
    assert!(!format!("{access:?}").contains("canary"), "{access:?}");
}

#[test]
fn a_client_certificate_is_accepted_also_where_its_base64_is_broken_into_lines() {
    let lines = |name: &str| {
        let text = base64(&fixture(name));
        let lines: Vec<_> = text
            .as_bytes()
            .chunks(64)
            .map(|line| format!("      {}\n", String::from_utf8_lossy(line)))
            .collect();
        lines.concat()
    };
    let (certificate, key) = (lines("client.crt"), lines("client.key"));
    let text = with_user(&format!(
        "client-certificate-data: |\n{certificate}    client-key-data: |\n{key}"
    ));
    let access = RemoteAccess::parse(text.as_bytes(), AccessPolicy::default()).unwrap();
    let user = access.config().auth_info;
    assert_eq!(
        user.client_certificate_data,
        Some(base64(&fixture("client.crt")))
    );
    assert!(user.client_key_data.is_some());
    assert!(user.token.is_none());
}

#[test]
fn the_server_is_told_and_nothing_else() {
    let access = RemoteAccess::parse(good().as_bytes(), AccessPolicy::default()).unwrap();
    assert_eq!(
        format!("{access:?}"),
        "RemoteAccess { server: https://api.runtime.example.com:6443/, .. }"
    );
    assert!(!format!("{:?}", access.config()).contains(CANARY));
}

#[tokio::test]
async fn reaches_a_real_cluster() {
    let plane = ControlPlane::minimal();
    let bytes = std::fs::read(plane.kubeconfig()).unwrap();
    let access = RemoteAccess::parse(&bytes, ALLOWS_LOCAL).unwrap();
    let cluster = access.connect(None).await.unwrap();
    assert!(
        Cluster::connect(access.config(), Some(cluster.uid()))
            .await
            .is_ok()
    );
}

/// kube itself would take a proxy from the environment; the test runs itself again with one that does not exist.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the environment of a process is set from outside"
)]
fn a_proxy_of_the_environment_is_not_used() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "cluster::kubeconfig::access::reaches_a_real_cluster",
        ])
        .env(
            "FAIRWAY_TEST_KUBECONFIG",
            ControlPlane::minimal().kubeconfig(),
        )
        .envs(
            [
                "HTTPS_PROXY",
                "https_proxy",
                "HTTP_PROXY",
                "http_proxy",
                "ALL_PROXY",
            ]
            .map(|variable| (variable, "http://127.0.0.1:1")),
        )
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}
