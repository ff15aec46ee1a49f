//! `fairway migration rbac`: the rights that the migrations of a repository need.

use std::collections::BTreeMap;
use std::io::Write;

use clap::Args;
use serde_json::{Value, json};

use super::arguments::OutputFormat;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::repository::{RepositoryArguments, warn_about};
use crate::desired::Desired;
use crate::runs::rights::{Plural, Right, rights};

/// The arguments of `fairway migration rbac`.
#[derive(Debug, Args)]
pub(super) struct RbacArguments {
    #[command(flatten)]
    repository: RepositoryArguments,

    /// The account that gets the rights, as NAMESPACE/NAME
    #[arg(long, value_name = "ACCOUNT", default_value = "fairway-system/fairway")]
    account: String,
}

/// The name of what is printed.
const NAME: &str = "fairway-migrations";

/// Writes a ClusterRole, a Role for each namespace, and their bindings.
pub(super) fn run(arguments: &RbacArguments, context: &mut Context) -> Result<Exit, Failure> {
    crate::source::initialize()?;
    let Some((namespace, account)) = arguments.account.split_once('/') else {
        return Err(Failure::Misuse(format!(
            "`{}` is no account; write NAMESPACE/NAME",
            arguments.account
        )));
    };
    let desired = arguments
        .repository
        .evaluate(&arguments.repository.working_tree()?);
    warn_about(&desired, context)?;
    let plurals = plurals(&desired);
    let mut by_namespace: BTreeMap<Option<String>, Vec<Right>> = BTreeMap::new();
    let (needed, notes) = rights(&desired.migrations, &plurals);
    for right in needed {
        by_namespace
            .entry(right.namespace.clone())
            .or_default()
            .push(right);
    }
    let subject = json!({"kind": "ServiceAccount", "name": account, "namespace": namespace});
    let objects: Vec<(Value, Vec<String>)> = by_namespace
        .iter()
        .flat_map(|(namespace, rights)| pair(namespace.as_deref(), rights, &subject))
        .collect();
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

/// Makes a role and its binding, with what must be said about guesses.
fn pair(namespace: Option<&str>, rights: &[Right], subject: &Value) -> Vec<(Value, Vec<String>)> {
    let rules: Vec<Value> = rights
        .iter()
        .map(|right| {
            let mut rule = json!({
                "apiGroups": [right.group],
                "resources": [right.resource],
                "verbs": right.verbs,
            });
            if !right.names.is_empty() {
                rule["resourceNames"] = json!(right.names);
            }
            rule
        })
        .collect();
    let comments = rights
        .iter()
        .filter(|right| right.plural == Plural::Guessed)
        .map(|right| {
            format!(
                "`{}` is how a resource of kind {} is usually named; kubectl api-resources knows",
                right.resource, right.kind
            )
        })
        .collect();
    let kind = if namespace.is_some() {
        "Role"
    } else {
        "ClusterRole"
    };
    let mut metadata = json!({"name": NAME});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let api = "rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": api, "kind": kind, "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": api,
        "kind": format!("{kind}Binding"),
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME},
        "subjects": [subject],
    });
    vec![(role, comments), (binding, Vec::new())]
}
