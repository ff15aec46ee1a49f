//! `fairway migration rbac`: the rights that the migrations of a repository need.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use serde_json::{Value, json};

use super::arguments::OutputFormat;
use super::connection::NAMESPACE;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::manifests::NAME as AGENT;
use super::repository::{RepositoryArguments, warn_about};
use crate::desired::Desired;
use crate::model::{Account, GroupKind, NameError, Place};
use crate::runs::rights::{Plural, Right, Subject, manifests, rights};

/// The arguments of `fairway migration rbac`.
#[derive(Debug, Args)]
pub(super) struct RbacArguments {
    #[command(flatten)]
    repository: RepositoryArguments,

    /// The account that gets the rights, as NAMESPACE/NAME
    #[arg(long, value_name = "ACCOUNT", default_value = "fairway-system/fairway")]
    account: String,

    /// The account that a ReleaseSource names in `spec.serviceAccountName`: it gets the rights, and the agent that to act as it
    #[arg(long, value_name = "NAME", conflicts_with = "account")]
    service_account: Option<String>,
}

/// The name of what is printed.
const NAME: &str = "fairway-migrations";

/// Writes a ClusterRole, a Role for each namespace, and their bindings, behind the namespaces that the repository creates.
pub(super) fn run(arguments: &RbacArguments, context: &mut Context) -> Result<Exit, Failure> {
    crate::source::initialize()?;
    let account = account(arguments, context)?;
    let desired = arguments
        .repository
        .evaluate(&arguments.repository.working_tree()?);
    warn_about(&desired, context)?;
    let (rights, notes) = rights(&desired.migrations, &plurals(&desired));
    let mut objects = manifests(NAME, &rights, &subject(&account));
    if arguments.service_account.is_some() {
        objects.extend(may_act_as(&account)?);
    }
    objects.splice(0..0, namespaces(&desired, &objects));
    if context.output == OutputFormat::Json {
        let items: Vec<&Value> = objects.iter().map(|(object, _)| object).collect();
        context.write_value(&json!({"apiVersion": "v1", "kind": "List", "items": items}))?;
    } else {
        for note in notes {
            writeln!(context.out, "# {note}")?;
        }
        for (object, comments) in objects {
            writeln!(context.out, "---")?;
            for comment in comments {
                writeln!(context.out, "# {comment}")?;
            }
            let text = serde_yaml::to_string(&object).map_err(Failure::of)?;
            write!(context.out, "{text}")?;
        }
    }
    Ok(Exit::Ok)
}

/// Returns the namespaces of Roles that the repository itself creates: on a new cluster they are not there yet, and a Role needs
/// its namespace.
fn namespaces(desired: &Desired, roles: &[(Value, Vec<String>)]) -> Vec<(Value, Vec<String>)> {
    let named = |name: &str| {
        roles
            .iter()
            .any(|(role, _)| role["metadata"]["namespace"] == name)
    };
    let is_namespace = |kind: &GroupKind| kind.group.is_empty() && kind.kind == "Namespace";
    let names: BTreeMap<&str, &Place> = desired
        .objects()
        .filter(|object| is_namespace(&object.key.kind) && named(&object.key.name))
        .map(|object| (object.key.name.as_str(), &object.place))
        .collect();
    names
        .into_iter()
        .map(|(name, place)| {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
            });
            let comment = format!("the Roles below need it first; {place} says the rest of it");
            (namespace, vec![comment])
        })
        .collect()
}

fn account(arguments: &RbacArguments, context: &Context) -> Result<Account, Failure> {
    let misuse = |error: NameError| Failure::Misuse(error.to_string());
    if let Some(name) = &arguments.service_account {
        let namespace = context.cluster.namespace.as_deref().unwrap_or(NAMESPACE);
        return Account::new(namespace, name).map_err(misuse);
    }
    let Some((namespace, name)) = arguments.account.split_once('/') else {
        return Err(Failure::Misuse(format!(
            "`{}` is no account; write NAMESPACE/NAME",
            arguments.account
        )));
    };
    Account::new(namespace, name).map_err(misuse)
}

fn subject(account: &Account) -> Subject {
    Subject::Account(account.namespace().to_owned(), account.name().to_owned())
}

/// Returns the role by which the agent acts as an account of its namespace.
fn may_act_as(account: &Account) -> Result<Vec<(Value, Vec<String>)>, Failure> {
    let agent = Account::new(account.namespace(), AGENT).map_err(Failure::of)?;
    let right = Right {
        namespace: Some(account.namespace().to_owned()),
        group: String::new(),
        kind: "ServiceAccount".to_owned(),
        resource: "serviceaccounts".to_owned(),
        plural: Plural::Known,
        names: vec![account.name().to_owned()],
        verbs: vec!["get".to_owned(), "impersonate".to_owned()],
    };
    let name = format!("fairway-impersonate-{}", account.name());
    Ok(manifests(&name, &[right], &subject(&agent)))
}

/// Returns the plural names that CustomResourceDefinitions of the repository give, by group and kind.
fn plurals(desired: &Desired) -> BTreeMap<(String, String), String> {
    let mut plurals = BTreeMap::new();
    for object in desired.objects() {
        if object.key.kind.kind != "CustomResourceDefinition" {
            continue;
        }
        let text = |pointer: &str| object.body.pointer(pointer).and_then(Value::as_str);
        if let (Some(group), Some(kind), Some(plural)) = (
            text("/spec/group"),
            text("/spec/names/kind"),
            text("/spec/names/plural"),
        ) {
            plurals.insert((group.to_owned(), kind.to_owned()), plural.to_owned());
        }
    }
    plurals
}
