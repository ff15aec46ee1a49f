//! `fairway check`: whether a cluster can run Fairway, and how the one that runs there is.

mod accounts;

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use futures::{StreamExt as _, stream};
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use serde::Serialize;

use super::arguments::OutputFormat;
use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::get::{age, length};
use super::install::{condition, is_available, none_if_unserved};
use super::manifests::{Manifests, NAME, covers};
use super::resources::{Home, is_ready, readiness};
use crate::agent::lease::{Skew, ahead};
use crate::cluster::{Access, ClusterError};
use crate::model::{Account, GroupKind, limits};

/// The oldest minor version of Kubernetes 1 that this program is built for: the version of the API types that it is
/// compiled with. Older servers may lack a field that we rely on, and nobody tests them.
const KUBERNETES_MINOR_MIN: u32 = 33;
/// What the agent does with the objects of a repository.
const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "delete"];

/// Arguments of `fairway check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Only what must be so before `fairway install`, for the account that would run it
    #[arg(long)]
    pre: bool,
}

/// What one look has found.
#[derive(Debug, Serialize)]
struct Finding {
    state: State,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// Nothing that is broken, but worth knowing.
    Note,
    Failed,
}

pub(super) fn run(arguments: &CheckArguments, context: &mut Context) -> Result<Exit, Failure> {
    let pre = arguments.pre;
    let findings = runtime()?.block_on(async {
        let home = Home::connect(context).await.map_err(|failure| {
            failure.help(
                "is the cluster up, and do --kubeconfig and --context name the right one? Without a cluster, `fairway validate` \
                 checks a repository",
            )
        })?;
        let mut findings = vec![version(&home).await?];
        if pre {
            findings.push(rights_to_install(&home).await?);
        } else {
            findings.extend(definitions(&home).await?);
            findings.extend(agent(&home).await?);
            findings.extend(rights(&home).await?);
            findings.extend(sources(&home).await?);
        }
        Ok::<_, Failure>(findings)
    })?;
    print(&findings, context)?;
    let failed = findings.iter().any(|one| one.state == State::Failed);
    Ok(if failed { Exit::Found } else { Exit::Ok })
}

fn print(findings: &[Finding], context: &mut Context) -> Result<(), Failure> {
    if context.output != OutputFormat::Text {
        return context.write_value(&findings);
    }
    for one in findings {
        let word = match one.state {
            State::Ok => "ok",
            State::Note => "note",
            State::Failed => "FAILED",
        };
        writeln!(context.out, "{word:<6}  {}", one.what)?;
        if let Some(help) = &one.help {
            writeln!(context.out, "        {help}")?;
        }
    }
    Ok(())
}

// === the cluster ===

async fn version(home: &Home) -> Result<Finding, Failure> {
    let version = home.cluster.server_version().await.map_err(Failure::of)?;
    let minor = version
        .strip_prefix("v1.")
        .and_then(|rest| rest.split('.').next())
        .and_then(|minor| minor.trim_end_matches('+').parse::<u32>().ok());
    let what = format!("Kubernetes {version}, at least 1.{KUBERNETES_MINOR_MIN} is needed");
    Ok(match minor {
        Some(minor) if minor >= KUBERNETES_MINOR_MIN => Finding::ok(what),
        Some(_) => Finding::failed(what, "upgrade the cluster"),
        None => Finding::note(what, "this version cannot be read"),
    })
}

async fn definitions(home: &Home) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for wanted in Manifests::of(&home.namespace)?.definitions {
        let name = &wanted.key.name;
        let live = home
            .cluster
            .read_whole(&wanted.key, None)
            .await
            .map_err(Failure::of)?;
        findings.push(match live {
            None => Finding::failed(format!("{name} is not installed"), "fairway install --image IMAGE"),
            Some(live) if !condition(&live, "Established") => {
                Finding::failed(format!("{name} is not served"), "kubectl describe crd says why")
            }
            Some(live) if !covers(&live["spec"], &wanted.body["spec"]) => Finding::failed(
                format!("{name} differs from what this version of fairway brings"),
                "fairway install applies it; if a newer agent runs there, use the newer fairway instead",
            ),
            Some(_) => Finding::ok(format!("{name} is served, as this version brings it")),
        });
    }
    Ok(findings)
}

// === the agent ===

async fn agent(home: &Home) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let key = Manifests::of(&home.namespace)?.deployment.key;
    let live = home
        .cluster
        .read_whole(&key, None)
        .await
        .map_err(Failure::of)?;
    let described = format!("deployment {NAME} in {}", home.namespace);
    findings.push(match live {
        None => Finding::note(
            format!("there is no {described}"),
            "an agent may run elsewhere; otherwise: fairway install --image IMAGE",
        ),
        Some(live) => {
            let image = live["spec"]["template"]["spec"]["containers"][0]["image"].clone();
            let image = image.as_str().unwrap_or("an unknown image");
            match is_available(&live) {
                None => Finding::ok(format!("{described} is available with {image}")),
                Some(missing) => Finding::failed(
                    format!("{described} with {image}: {missing}"),
                    &format!("kubectl -n {} describe pods", home.namespace),
                ),
            }
        }
    });
    let leases = home.cluster.list::<Lease>(&home.namespace, "").await;
    for lease in leases.unwrap_or_default() {
        let ahead = ahead(&lease);
        let name = lease.metadata.name.unwrap_or_default();
        let spec = lease.spec.unwrap_or_default();
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        if let (true, Some(holder)) = (name.starts_with(NAME), holder) {
            let renewed = spec
                .renew_time
                .map(|at| format!(", renewed {} ago", age(at.0)))
                .unwrap_or_default();
            findings.push(Finding::ok(format!(
                "lease {name} is held by {holder}{renewed}"
            )));
            findings.extend(ahead.and_then(|ahead| wrong_clock(&name, ahead)));
        }
    }
    Ok(findings)
}

/// The dates in a lease are of two clocks; ours has no part in it.
fn wrong_clock(lease: &str, ahead: SignedDuration) -> Option<Finding> {
    let skew = Skew::of(ahead, None)?;
    let word = match skew {
        Skew::Ahead => "ahead of",
        Skew::Behind => "behind",
    };
    let by = SignedDuration::try_from(ahead.unsigned_abs()).ok()?;
    let help = "mend the clock of its node: nothing is decided by it, but dates in statuses, audit lines and Runs are wrong";
    Some(Finding::note(
        format!(
            "the clock of who holds lease {lease} is {} {word} the cluster's",
            length(by)
        ),
        help,
    ))
}

async fn sources(home: &Home) -> Result<Vec<Finding>, Failure> {
    let sources = none_if_unserved(
        home.cluster
            .list::<crate::model::api::ReleaseSource>(&home.namespace, "")
            .await
            .map(Some),
    )?
    .unwrap_or_default();
    if sources.is_empty() {
        let what = format!("no ReleaseSource in {}", home.namespace);
        return Ok(vec![Finding::note(
            what,
            "docs/install.md says how to declare one",
        )]);
    }
    Ok(sources
        .iter()
        .map(|source| {
            let name = source.metadata.name.clone().unwrap_or_default();
            let what = format!("source {}", readiness(source));
            if is_ready(source) && !source.spec.suspend {
                Finding::ok(what)
            } else if source.spec.suspend {
                Finding::note(what, "nothing is applied for it")
            } else {
                Finding::failed(what, &format!("fairway describe source {name}"))
            }
        })
        .collect())
}

// === rights ===

/// Whoever creates a role must have every right that it grants, beside the right to create what is installed.
async fn rights_to_install(home: &Home) -> Result<Finding, Failure> {
    let mut wanted = Manifests::own_rights(&home.namespace)?;
    wanted.extend(Manifests::shipped_rights(&home.namespace)?);
    let rbac = "rbac.authorization.k8s.io";
    for (group, resource, namespace) in [
        ("", "namespaces", None),
        ("apiextensions.k8s.io", "customresourcedefinitions", None),
        (rbac, "clusterroles", None),
        (rbac, "clusterrolebindings", None),
        (rbac, "roles", Some(&home.namespace)),
        (rbac, "rolebindings", Some(&home.namespace)),
        ("", "serviceaccounts", Some(&home.namespace)),
        ("apps", "deployments", Some(&home.namespace)),
    ] {
        wanted.extend(["get", "create", "patch"].map(|verb| Access {
            namespace: namespace.cloned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: None,
            verb: verb.to_owned(),
        }));
    }
    let missing = missing(home, wanted, None).await.map_err(Failure::of)?;
    Ok(if missing.is_empty() {
        Finding::ok("you may install Fairway and grant its roles".to_owned())
    } else {
        Finding::failed(
            format!("you may not {}", named(&missing)),
            "installing needs these rights, and granting a role needs every right in it: ask an administrator of the cluster",
        )
    })
}

/// Asks for the agent's account, and for each that a source names.
async fn rights(home: &Home) -> Result<Vec<Finding>, Failure> {
    let named = accounts::named(home).await?;
    let mut applied = rights_on_applied_kinds(home, &named).await?;
    let mut of_agent = applied.remove(&None).unwrap_or_default();
    of_agent.extend(accounts::to_act_as(&named));
    let mut findings = vec![rights_of_agent(home, of_agent).await?];
    findings.extend(accounts::findings(home, &named, &applied).await?);
    Ok(findings)
}

/// Asks for the agent's account; who may not ask that is told about their own.
async fn rights_of_agent(home: &Home, beside: Vec<Access>) -> Result<Finding, Failure> {
    let mut wanted = Manifests::own_rights(&home.namespace)?;
    wanted.extend(beside);
    let account = Some((home.namespace.as_str(), NAME));
    let (missing, who) = match missing(home, wanted.clone(), account).await {
        Ok(missing) => (missing, format!("the account {NAME} in {}", home.namespace)),
        Err(ClusterError::Forbidden { .. }) => {
            let own = missing(home, wanted, None).await.map_err(Failure::of)?;
            (
                own,
                "your account (you may not ask about the agent's)".to_owned(),
            )
        }
        Err(error) => return Err(Failure::of(error)),
    };
    Ok(if missing.is_empty() {
        Finding::ok(format!("{who} may do all that the agent needs"))
    } else {
        Finding::failed(
            format!("{who} may not {}", named(&missing)),
            "fairway install applies the shipped roles; the kinds of your repository stand in the role fairway-apply",
        )
    })
}

/// Returns the rights on every kind that a source has ever applied here, by the account that does it; none is the agent's.
async fn rights_on_applied_kinds(
    home: &Home,
    named: &accounts::Named,
) -> Result<BTreeMap<Option<Account>, Vec<Access>>, Failure> {
    let targets = none_if_unserved(
        home.cluster
            .list::<crate::model::api::Target>(&home.namespace, "")
            .await
            .map(Some),
    )?;
    let mut wanted: BTreeMap<_, Vec<Access>> = BTreeMap::new();
    for target in targets.unwrap_or_default() {
        let status = target.status.unwrap_or_default();
        let account = status.source.as_ref().and_then(|source| named.get(source));
        let wanted = wanted.entry(account.cloned()).or_default();
        for kind in status.kinds {
            let Ok(kind) = kind.parse::<GroupKind>() else {
                continue;
            };
            // A kind that is not served any more needs no rights.
            let Ok(served) = home.cluster.resolve(&kind, None).await else {
                continue;
            };
            wanted.extend(VERBS.map(|verb| Access {
                namespace: None,
                group: kind.group.clone(),
                resource: served.plural.clone(),
                name: None,
                verb: verb.to_owned(),
            }));
        }
    }
    for wanted in wanted.values_mut() {
        wanted.sort();
        wanted.dedup();
    }
    Ok(wanted)
}

async fn missing(
    home: &Home,
    wanted: Vec<Access>,
    account: Option<(&str, &str)>,
) -> Result<Vec<Access>, ClusterError> {
    let asked = wanted.into_iter().map(|access| async move {
        let may = home.cluster.may(&access, account).await?;
        Ok::<_, ClusterError>((!may).then_some(access))
    });
    let answers: Vec<_> = stream::iter(asked)
        .buffered(limits::CLUSTER_CONCURRENCY)
        .collect()
        .await;
    let answers: Result<Vec<Option<Access>>, ClusterError> = answers.into_iter().collect();
    Ok(answers?.into_iter().flatten().collect())
}

fn named(missing: &[Access]) -> String {
    let shown: Vec<String> = missing
        .iter()
        .take(limits::NAMED_IN_MESSAGE_MAX)
        .map(|access| {
            let group = if access.group.is_empty() {
                String::new()
            } else {
                format!(".{}", access.group)
            };
            let place = match (&access.name, &access.namespace) {
                (Some(name), _) => format!(" {name}"),
                (None, Some(namespace)) => format!(" in {namespace}"),
                (None, None) => " anywhere".to_owned(),
            };
            format!("{} {}{group}{place}", access.verb, access.resource)
        })
        .collect();
    let more = match missing.len() - shown.len() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

// === impl Finding ===

impl Finding {
    fn ok(what: String) -> Self {
        Self {
            state: State::Ok,
            what,
            help: None,
        }
    }

    fn note(what: String, help: &str) -> Self {
        Self {
            state: State::Note,
            what,
            help: Some(help.to_owned()),
        }
    }

    fn failed(what: String, help: &str) -> Self {
        Self {
            state: State::Failed,
            what,
            help: Some(help.to_owned()),
        }
    }
}
