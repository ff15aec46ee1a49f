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
use crate::runs::rights::{Subject, manifests, rights};

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
    let (rights, notes) = rights(&desired.migrations, &plurals(&desired));
    let subject = Subject::Account(namespace.to_owned(), account.to_owned());
    let objects = manifests(NAME, &rights, &subject);
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
