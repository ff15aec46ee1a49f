//! Kubeconfigs that have to be refused.

use super::{base64, fixture, good, spoiled, with_user};

/// Stands for the path of a file that nobody may open.
pub(super) const FILE: &str = "/canary-file";
/// Stands for the path of a program that nobody may run.
pub(super) const PROGRAM: &str = "/canary-program";

/// Each with a name that says what is wrong with it.
pub(super) fn all() -> Vec<(String, Vec<u8>)> {
    let text = |(name, text): (&str, String)| (name.to_owned(), text.into_bytes());
    let groups = [programs(), files(), weak(), choice(), values()];
    let mut cases: Vec<_> = groups.into_iter().flatten().map(text).collect();
    cases.extend(servers());
    cases.extend(bytes());
    cases
}

fn programs() -> Vec<(&'static str, String)> {
    let exec = format!(
        "exec: {{apiVersion: client.authentication.k8s.io/v1, command: {PROGRAM}, interactiveMode: Never}}"
    );
    vec![
        ("exec", with_user(&exec)),
        (
            "exec beside a token",
            with_user(&format!("{exec}\n    token: x")),
        ),
        (
            "exec of a user that is not used",
            spoiled(
                "contexts:",
                &format!("- name: other\n  user: {{{exec}}}\ncontexts:"),
            ),
        ),
        ("exec that is empty", with_user("exec: {}")),
        (
            "auth-provider gcp",
            with_user(&format!(
                "auth-provider: {{name: gcp, config: {{cmd-path: {PROGRAM}, cmd-args: x}}}}"
            )),
        ),
        (
            "auth-provider oidc",
            with_user("auth-provider: {name: oidc, config: {id-token: x}}"),
        ),
        (
            "exec of a cluster",
            spoiled("    server:", &format!("    {exec}\n    server:")),
        ),
    ]
}

fn files() -> Vec<(&'static str, String)> {
    let include = format!("token: !include {FILE}");
    vec![
        ("tokenFile", with_user(&format!("tokenFile: {FILE}"))),
        (
            "token-file, an unknown field",
            with_user(&format!("token-file: {FILE}")),
        ),
        (
            "client-certificate and client-key",
            with_user(&format!(
                "client-certificate: {FILE}\n    client-key: {FILE}"
            )),
        ),
        (
            "client-key beside its data",
            with_user(&format!("client-key: {FILE}\n    token: x")),
        ),
        (
            "certificate-authority",
            spoiled(
                "    server:",
                &format!("    certificate-authority: {FILE}\n    server:"),
            ),
        ),
        (
            "certificate-authority of a cluster that is not used",
            spoiled(
                "users:",
                &format!(
                    "- name: other\n  cluster: {{server: 'https://a', certificate-authority: {FILE}}}\nusers:"
                ),
            ),
        ),
        ("an include", with_user(&include)),
    ]
}

fn weak() -> Vec<(&'static str, String)> {
    let cluster = |field: &str| spoiled("    server:", &format!("    {field}\n    server:"));
    let ca = good();
    let ca = ca
        .lines()
        .find(|line| line.contains("certificate-authority-data"))
        .unwrap();
    vec![
        (
            "insecure-skip-tls-verify",
            cluster("insecure-skip-tls-verify: true"),
        ),
        (
            "insecure-skip-tls-verify as text",
            cluster("insecure-skip-tls-verify: 'true'"),
        ),
        ("proxy-url", cluster("proxy-url: http://127.0.0.1:8080")),
        (
            "proxy-url socks5",
            cluster("proxy-url: socks5://proxy.example.com"),
        ),
        ("as", with_user("token: x\n    as: system:admin")),
        (
            "as-groups",
            with_user("token: x\n    as-groups: [system:masters]"),
        ),
        ("as-uid", with_user("token: x\n    as-uid: '0'")),
        (
            "as-user-extra",
            with_user("token: x\n    as-user-extra: {a: [b]}"),
        ),
        (
            "username and password",
            with_user("username: admin\n    password: canary-password"),
        ),
        ("no certificate authority", good().replacen(ca, "", 1)),
        ("tls-server-name", cluster("tls-server-name: '*'")),
        (
            "an unknown field that is false",
            cluster("verify-tls: false"),
        ),
        ("an unknown field of a cluster", cluster("api-version: v1")),
        (
            "an unknown field that is a token by mistake",
            with_user("eyJhbGciOiJSUzI1NiIsImtpZCI6ImNhbmFyeSJ9.canary: x"),
        ),
        ("an unknown field of the file", good() + "users-extra: []\n"),
        ("a merge key", with_user("<<: {token: canary-merged}")),
    ]
}

fn choice() -> Vec<(&'static str, String)> {
    let context = "- name: second\n  context: {cluster: shoot, user: robot}\n";
    let no_current = spoiled("current-context: runtime\n", "");
    vec![
        (
            "several contexts and none current",
            no_current.clone() + context,
        ),
        (
            "the current context is not there",
            spoiled(
                "current-context: runtime",
                "current-context: canary-context",
            ),
        ),
        (
            "no context",
            no_current.split("contexts:").next().unwrap().to_owned(),
        ),
        (
            "the cluster is not there",
            spoiled("cluster: shoot", "cluster: canary-cluster"),
        ),
        (
            "the user is not there",
            spoiled("user: robot", "user: canary-user"),
        ),
        ("a context without a user", spoiled("    user: robot\n", "")),
        (
            "two clusters of one name",
            spoiled(
                "users:",
                "- name: shoot\n  cluster: {server: 'https://a'}\nusers:",
            ),
        ),
        (
            "two users of one name",
            spoiled("contexts:", "- name: robot\n  user: {token: x}\ncontexts:"),
        ),
        (
            "two contexts of one name",
            good() + &context.replace("second", "runtime"),
        ),
        ("a name that is empty", spoiled("name: shoot", "name: ''")),
        (
            "a cluster without its inside",
            spoiled("users:", "- name: other\nusers:"),
        ),
        (
            "clusters as a mapping",
            "clusters: {shoot: {server: x}}".to_owned(),
        ),
        ("another kind", spoiled("kind: Config", "kind: Secret")),
        (
            "another version",
            spoiled("apiVersion: v1", "apiVersion: v2"),
        ),
    ]
}

fn values() -> Vec<(&'static str, String)> {
    let (certificate, key) = (
        base64(&fixture("client.crt")),
        base64(&fixture("client.key")),
    );
    let pair = |certificate: &str, key: &str| {
        with_user(&format!(
            "client-certificate-data: {certificate}\n    client-key-data: {key}"
        ))
    };
    let ca = base64(&fixture("ca.crt"));
    let broken = base64(b"-----BEGIN CERTIFICATE-----\nY2FuYXJ5\n-----END CERTIFICATE-----\n");
    vec![
        ("an empty token", with_user("token: ''")),
        (
            "a token with a line break",
            with_user("token: \"canary\\n\""),
        ),
        (
            "a token with a header",
            with_user("token: \"canary\\r\\nImpersonate-User: admin\""),
        ),
        ("a token that is a number", with_user("token: 12345678")),
        ("no credentials", with_user("token: null")),
        (
            "a token and a certificate",
            with_user(&format!(
                "token: x\n    client-certificate-data: {certificate}\n    client-key-data: {key}"
            )),
        ),
        (
            "a certificate without a key",
            with_user(&format!("client-certificate-data: {certificate}")),
        ),
        (
            "a key without a certificate",
            with_user(&format!("client-key-data: {key}")),
        ),
        (
            "the key of another",
            pair(&certificate, &base64(&fixture("other.key"))),
        ),
        (
            "an encrypted key",
            pair(&certificate, &base64(&fixture("encrypted.key"))),
        ),
        (
            "a certificate in the key's place",
            pair(&certificate, &certificate),
        ),
        ("a client certificate that is none", pair(&broken, &key)),
        (
            "a key that is garbage",
            pair(&certificate, &base64(b"canary")),
        ),
        ("a key that is not base64", pair(&certificate, "'canary*'")),
        ("an authority that is not base64", spoiled(&ca, "'canary*'")),
        (
            "an authority that is no PEM",
            spoiled(&ca, &base64(b"canary")),
        ),
        ("an authority that is no certificate", spoiled(&ca, &broken)),
        ("an authority that is a key", spoiled(&ca, &key)),
        (
            "an authority cut off",
            spoiled(&ca, &base64(&fixture("ca.crt")[..200])),
        ),
        (
            "no server",
            spoiled("    server: https://api.runtime.example.com:6443\n", ""),
        ),
        (
            "a server that is a list",
            spoiled("https://api.runtime.example.com:6443", "[https://a]"),
        ),
    ]
}

/// Addresses to which no credentials may be sent.
fn servers() -> Vec<(String, Vec<u8>)> {
    const SERVERS: &[&str] = &[
        "http://api.runtime.example.com",
        "ftp://api.runtime.example.com",
        "api.runtime.example.com:6443",
        "/var/run/kubernetes.sock",
        "https://",
        "https://canary:canary@api.example.com",
        "https://canary@api.example.com",
        "https://api.example.com/?token=canary",
        "https://api.example.com/#canary",
        "https://api.example.com:0",
        "https://api.example.com:99999",
        "https://api.example.com:",
        "https://api example.com",
        "https://a..example.com",
        "https://localhost:6443",
        "https://LOCALHOST.:6443",
        "https://kube.localhost",
        "https://127.0.0.1:6443",
        "https://127.255.0.1",
        "https://127.1:6443",
        "https://2130706433",
        "https://0x7f.1",
        "https://0177.0.0.01",
        "https://127.0.0.1.",
        "https://0.0.0.0:6443",
        "https://0:6443",
        "https://169.254.169.254",
        "https://100.100.100.200",
        "https://168.63.129.16",
        "https://224.0.0.1",
        "https://255.255.255.255",
        "https://[::1]:6443",
        "https://[::]:6443",
        "https://[::ffff:127.0.0.1]",
        "https://[::ffff:169.254.169.254]",
        "https://[64:ff9b::7f00:1]",
        "https://[2002:7f00:1::]",
        "https://[fe80::1]",
        "https://[fe80::1%25eth0]",
        "https://[fd00:ec2::254]",
        "https://[ff02::1]",
        "https://metadata.google.internal",
    ];
    let case = |server: &&str| {
        let text = spoiled(
            "https://api.runtime.example.com:6443",
            &format!("'{server}'"),
        );
        (format!("server {server}"), text.into_bytes())
    };
    SERVERS.iter().map(case).collect()
}

/// What is no kubeconfig at all, or costs too much to find out.
fn bytes() -> Vec<(String, Vec<u8>)> {
    let deep = format!("extensions: {}{}", "[".repeat(40), "]".repeat(40));
    let wide = format!("extensions: [{}]", "1,".repeat(10_000));
    let aliases = "extensions:\n- &a [1, 1]\n- &b [*a, *a]\n- [*b, *b]";
    let mut latin = good().into_bytes();
    latin.push(0xe9);
    let utf16 = good().encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("a scalar", b"canary-token".to_vec()),
        ("a list", b"[1]".to_vec()),
        (
            "two documents",
            format!("{}---\n{}", good(), good()).into_bytes(),
        ),
        ("a syntax error", with_user("token: \"canary").into_bytes()),
        (
            "a key twice",
            with_user("token: canary\n    token: canary-two").into_bytes(),
        ),
        ("a list twice", (good() + "users: []\n").into_bytes()),
        ("Latin-1", latin),
        ("UTF-16", utf16),
        (
            "too large",
            format!("{}# {}", good(), "x".repeat(300_000)).into_bytes(),
        ),
        ("nested deeply", (good() + &deep).into_bytes()),
        ("very many values", (good() + &wide).into_bytes()),
        ("aliases", (good() + aliases).into_bytes()),
        (
            "an alias as the token",
            spoiled("name: robot", "name: &t robot")
                .replace(super::CANARY, "*t")
                .into_bytes(),
        ),
        ("binary", vec![0; 1000]),
    ];
    let named = |(name, bytes): (&str, Vec<u8>)| (name.to_owned(), bytes);
    cases.into_iter().map(named).collect()
}
