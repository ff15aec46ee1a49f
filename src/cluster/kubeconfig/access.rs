//! One cluster that can be reached.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use http::Uri;
use kube::config::AuthInfo;
use rustls::pki_types::ServerName;
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::error::KubeconfigError;
use super::fields::{Fields, Refusal};
use super::{address, credentials, read};
use crate::cluster::{Cluster, ClusterError};
use crate::model::{ClusterUid, limits};

/// Where a kubeconfig may lead. Link-local addresses, metadata services and addresses that no server has are always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessPolicy {
    /// Whether the agent's own machine is refused. Tests and the demo allow it, since their clusters run there.
    pub forbid_local: bool,
}

impl Default for AccessPolicy {
    fn default() -> Self {
        Self { forbid_local: true }
    }
}

/// How one cluster is reached: its address, who vouches for it, and the credentials. `Debug` shows the address alone.
#[derive(Clone)]
pub struct RemoteAccess {
    config: kube::Config,
    policy: AccessPolicy,
}

const WITHOUT_FILES: &str = "the agent opens no file for it";

const REFUSED_OF_CLUSTER: &[Refusal] = &[
    (
        "certificate-authority",
        WITHOUT_FILES,
        "put the certificate into certificate-authority-data",
    ),
    (
        "proxy-url",
        "the agent does not talk through proxies that a Secret names",
        "name an address that is reached without one",
    ),
    (
        "insecure-skip-tls-verify",
        "anybody on the way could take the credentials",
        "put the cluster's certificate authority into certificate-authority-data",
    ),
];

const TOKEN_OR_CERTIFICATE: &str = "use a token, or client-certificate-data and client-key-data";

const REFUSED_OF_USER: &[Refusal] = &[
    (
        "exec",
        "it would run a program in the agent",
        TOKEN_OR_CERTIFICATE,
    ),
    (
        "auth-provider",
        "it would run a program in the agent, or talk to a server that the Secret names",
        TOKEN_OR_CERTIFICATE,
    ),
    ("tokenFile", WITHOUT_FILES, "put the token into token"),
    (
        "client-certificate",
        WITHOUT_FILES,
        "put the certificate into client-certificate-data",
    ),
    (
        "client-key",
        WITHOUT_FILES,
        "put the key into client-key-data",
    ),
    ("username", PASSWORDS, TOKEN_OR_CERTIFICATE),
    ("password", PASSWORDS, TOKEN_OR_CERTIFICATE),
    ("as", IMPERSONATION, ACT_AS_ITSELF),
    ("as-uid", IMPERSONATION, ACT_AS_ITSELF),
    ("as-groups", IMPERSONATION, ACT_AS_ITSELF),
    ("as-user-extra", IMPERSONATION, ACT_AS_ITSELF),
];

const PASSWORDS: &str = "API servers have not taken passwords since Kubernetes 1.19";
const IMPERSONATION: &str =
    "an account that may act for others may do far more than the agent needs";
const ACT_AS_ITSELF: &str = "use the credentials of the account itself";

/// What tools keep for themselves, at each level. It means nothing to a client, and is not looked into.
const EXTENSIONS: &str = "extensions";

// === impl RemoteAccess ===

impl RemoteAccess {
    /// Reads a kubeconfig as it stands in a Secret. Nothing is opened, run or connected to.
    ///
    /// The format is that of `kubectl config` (`v1`, kind `Config`). The context is the current one, or the only one. Other
    /// entries have to obey the same rules.
    ///
    /// # Errors
    ///
    /// [`KubeconfigError`] says which field stands in the way, and what to do; it repeats no value.
    pub fn parse(bytes: &[u8], policy: AccessPolicy) -> Result<Self, KubeconfigError> {
        let map = read::read(bytes)?;
        let file = Fields::file(&map);
        check_all(&file)?;
        let context = chosen_context(&file)?;
        let cluster = referred(&file, &context, "clusters", "cluster")?;
        let user = referred(&file, &context, "users", "user")?;
        let mut config = config_of(&cluster, policy)?;
        config.auth_info = credentials::user(&user)?;
        Ok(Self { config, policy })
    }

    /// Connects, as [`Cluster::connect`] does, unless the server's name leads where the policy forbids it.
    ///
    /// The name is looked up once before the connection looks it up itself. Who controls the name's DNS can answer the second
    /// time with another address; what they meet there is a TLS handshake, since the certificate has to be signed by the
    /// kubeconfig's own authority before any request goes out.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Address`] when it does; otherwise those of [`Cluster::connect`].
    pub async fn connect(&self, expected: Option<&ClusterUid>) -> Result<Cluster, ClusterError> {
        let host = self.server().host().unwrap_or_default();
        let port = self.server().port_u16().unwrap_or(443);
        let lookup = timeout(limits::CONNECT_DEADLINE, lookup_host((host, port)));
        // A name that is not known fails anew below, with the words of the connection.
        if let Ok(Ok(addresses)) = lookup.await
            && let Some(reason) = refusal_of_any(addresses.map(|address| address.ip()), self.policy)
        {
            let host = host.to_owned();
            return Err(ClusterError::Address { host, reason });
        }
        Cluster::connect(self.config(), expected).await
    }

    /// Returns the settings for [`Cluster::connect`]. They use no proxy, not even one that the environment names.
    pub fn config(&self) -> kube::Config {
        self.config.clone()
    }

    /// Returns the address of the API server.
    pub fn server(&self) -> &Uri {
        &self.config.cluster_url
    }
}

/// Says why a name is not connected to whose addresses are these: a single one that is refused is enough, since the connection
/// may take any of them.
fn refusal_of_any(
    addresses: impl IntoIterator<Item = IpAddr>,
    policy: AccessPolicy,
) -> Option<&'static str> {
    let mut addresses = addresses.into_iter();
    addresses.find_map(|address| address::refusal(address, policy))
}

impl fmt::Debug for RemoteAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAccess")
            .field("server", &self.config.cluster_url)
            .finish_non_exhaustive()
    }
}

/// Checks what the file and each of its entries may hold, used or not.
fn check_all(file: &Fields<'_>) -> Result<(), KubeconfigError> {
    const KNOWN: &[&str] = &[
        "apiVersion",
        "kind",
        "preferences",
        "clusters",
        "users",
        "contexts",
        "current-context",
        EXTENSIONS,
    ];
    file.check(KNOWN, &[])?;
    for (field, expected) in [("apiVersion", "v1"), ("kind", "Config")] {
        if file.text(field)?.is_some_and(|text| text != expected) {
            return Err(KubeconfigError::invalid(
                field,
                "is not that of a kubeconfig, which is `v1` and `Config`",
            ));
        }
    }
    let cluster = [
        "server",
        "certificate-authority-data",
        "tls-server-name",
        "disable-compression",
        EXTENSIONS,
    ];
    let user = [
        "token",
        "client-certificate-data",
        "client-key-data",
        EXTENSIONS,
    ];
    let context = ["cluster", "user", "namespace", EXTENSIONS];
    check_entries(file, ("clusters", "cluster"), &cluster, REFUSED_OF_CLUSTER)?;
    check_entries(file, ("users", "user"), &user, REFUSED_OF_USER)?;
    check_entries(file, ("contexts", "context"), &context, &[])
}

fn check_entries(
    file: &Fields<'_>,
    (list, inner): (&str, &str),
    known: &[&str],
    refusals: &[Refusal],
) -> Result<(), KubeconfigError> {
    let mut names = BTreeSet::new();
    for entry in file.entries(list)? {
        entry.check(&["name", inner], &[])?;
        if !names.insert(name_of(&entry)?) {
            return Err(KubeconfigError::invalid(
                entry.path_of("name"),
                "is the name of an earlier entry too; keep one of them",
            ));
        }
        entry.mapping(inner)?.check(known, refusals)?;
    }
    Ok(())
}

fn name_of<'a>(entry: &Fields<'a>) -> Result<&'a str, KubeconfigError> {
    entry.text_required("name", "each entry has a name")
}

/// Returns the inside of the entry with this name.
fn find<'a>(
    file: &Fields<'a>,
    (list, inner): (&str, &str),
    name: &str,
) -> Result<Option<Fields<'a>>, KubeconfigError> {
    for entry in file.entries(list)? {
        if name_of(&entry)? == name {
            return entry.mapping(inner).map(Some);
        }
    }
    Ok(None)
}

fn chosen_context<'a>(file: &Fields<'a>) -> Result<Fields<'a>, KubeconfigError> {
    const FIELD: &str = "current-context";
    if let Some(name) = file.text(FIELD)?.filter(|name| !name.is_empty()) {
        return find(file, ("contexts", "context"), name)?
            .ok_or_else(|| KubeconfigError::invalid(FIELD, "names no entry of `contexts`"));
    }
    match file.entries("contexts")?.as_slice() {
        [] => Err(KubeconfigError::missing(
            "contexts",
            "add the context that leads to the cluster",
        )),
        [only] => only.mapping("context"),
        _ => Err(KubeconfigError::missing(
            FIELD,
            "there are several contexts; name one, or keep only one",
        )),
    }
}

fn referred<'a>(
    file: &Fields<'a>,
    context: &Fields<'a>,
    list: &'static str,
    inner: &'static str,
) -> Result<Fields<'a>, KubeconfigError> {
    let name = context.text_required(inner, "a context names a cluster and a user")?;
    find(file, (list, inner), name)?.ok_or_else(|| {
        KubeconfigError::invalid(
            context.path_of(inner),
            "names an entry that is not there; correct the name or add the entry",
        )
    })
}

fn config_of(cluster: &Fields<'_>, policy: AccessPolicy) -> Result<kube::Config, KubeconfigError> {
    let text = cluster.text_required("server", "name the address of the API server")?;
    let server = address::server(&cluster.path_of("server"), text, policy)?;
    // Without one, everybody who has a certificate of any public authority would do, and the trust would come from the
    // agent's own machine.
    let authority = cluster.text_required(
        "certificate-authority-data",
        "put the cluster's certificate authority there, in PEM and base64",
    )?;
    let authorities =
        credentials::authorities(&cluster.path_of("certificate-authority-data"), authority)?;
    // This constructor looks neither at files nor at the environment; whatever is not set below stays off.
    let mut config = kube::Config::new(server);
    config.root_cert = Some(authorities);
    config.disable_compression = cluster.flag("disable-compression")?;
    config.tls_server_name = match cluster.text("tls-server-name")? {
        Some(name) if ServerName::try_from(name).is_err() => {
            return Err(KubeconfigError::invalid(
                cluster.path_of("tls-server-name"),
                "is neither a host name nor an IP address",
            ));
        }
        name => name.map(str::to_owned),
    };
    config.auth_info = AuthInfo::default();
    Ok(config)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["10.0.0.1", "2001:db8::1"], None, None)]
    #[case(&["10.0.0.1", "127.0.0.1"], Some("it leads to the agent's own machine"), None)]
    #[case(&["::ffff:127.0.0.1"], Some("it leads to the agent's own machine"), None)]
    #[case(&["10.0.0.1", "169.254.169.254"], Some("it is a link-local address, where machines find their own metadata"),
        Some("it is a link-local address, where machines find their own metadata"))]
    #[case(&[], None, None)]
    fn one_refused_address_of_a_name_is_enough(
        #[case] addresses: &[&str],
        #[case] by_default: Option<&str>,
        #[case] local_allowed: Option<&str>,
    ) {
        let refusal = |forbid_local| {
            let addresses = addresses.iter().map(|text| text.parse().unwrap());
            refusal_of_any(addresses, AccessPolicy { forbid_local })
        };
        assert_eq!(refusal(true), by_default);
        assert_eq!(refusal(false), local_allowed);
    }
}
