//! The accounts that sources name: whether they are there, may be acted as, and may do what their sources have applied.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ServiceAccount;

use super::super::failure::Failure;
use super::super::install::none_if_unserved;
use super::super::resources::Home;
use super::{Finding, missing, named as in_words};
use crate::cluster::{Access, ClusterError};
use crate::model::Account;
use crate::model::api::ReleaseSource;

/// The account of each source that names one.
pub(super) type Named = BTreeMap<String, Account>;

pub(super) async fn named(home: &Home) -> Result<Named, Failure> {
    let sources = home
        .cluster
        .list::<ReleaseSource>(&home.namespace, "")
        .await;
    let sources = none_if_unserved(sources.map(Some))?.unwrap_or_default();
    let mut named = Named::new();
    for source in sources {
        // What is no name is told by the source's own condition.
        if let Ok(Some(account)) = source.spec.account(&home.namespace) {
            named.insert(source.metadata.name.unwrap_or_default(), account);
        }
    }
    Ok(named)
}

/// Returns the rights by which the agent acts as the accounts.
pub(super) fn to_act_as(named: &Named) -> Vec<Access> {
    let mut wanted: Vec<Access> = named
        .values()
        .flat_map(|account| {
            ["get", "impersonate"].map(|verb| Access {
                namespace: Some(account.namespace().to_owned()),
                group: String::new(),
                resource: "serviceaccounts".to_owned(),
                name: Some(account.name().to_owned()),
                verb: verb.to_owned(),
            })
        })
        .collect();
    wanted.sort();
    wanted.dedup();
    wanted
}

/// Looks at each account once.
pub(super) async fn findings(
    home: &Home,
    named: &Named,
    applied: &BTreeMap<Option<Account>, Vec<Access>>,
) -> Result<Vec<Finding>, Failure> {
    let mut accounts: Vec<&Account> = named.values().collect();
    accounts.sort();
    accounts.dedup();
    let mut findings = Vec::new();
    for account in accounts {
        let (namespace, name) = (account.namespace(), account.name());
        let who = format!("the account {name} in {namespace}, which a source names,");
        let found = home.cluster.get::<ServiceAccount>(namespace, name).await;
        if found.map_err(Failure::of)?.is_none() {
            findings.push(Finding::failed(
                format!("{who} is not there"),
                &format!("kubectl -n {namespace} create serviceaccount {name}"),
            ));
            continue;
        }
        let wanted = applied.get(&Some(account.clone()));
        let wanted = wanted.cloned().unwrap_or_default();
        findings.push(match missing(home, wanted, Some((namespace, name))).await {
            Ok(missing) if missing.is_empty() => {
                Finding::ok(format!("{who} may do all that its sources have applied"))
            }
            // Writing may well be bound by namespace, which cannot be seen from here.
            Ok(missing) if missing.iter().all(is_writing) => Finding::note(
                format!("{who} may not {}", in_words(&missing)),
                "it may be meant so, where the account writes in some namespaces only",
            ),
            Ok(missing) => Finding::failed(
                format!("{who} may not {}", in_words(&missing)),
                "bind the account to a role with it; what is looked at needs list and watch for all namespaces",
            ),
            Err(error @ ClusterError::Forbidden { .. }) => Finding::note(
                format!("what {who} may do could not be asked"),
                &error.to_string(),
            ),
            Err(error) => return Err(Failure::of(error)),
        });
    }
    Ok(findings)
}

fn is_writing(access: &Access) -> bool {
    !matches!(access.verb.as_str(), "list" | "watch")
}
