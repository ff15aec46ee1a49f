//! `fairway generate`: the files of this repository that are made from the code. Hidden, for `make generate`.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::pages;
use crate::desired::json_schemas;
use crate::model::api::{conditions, crds};

/// The arguments of `fairway generate`.
#[derive(Debug, Args)]
pub struct GenerateArguments {
    /// What to write
    #[arg(value_enum)]
    what: What,

    /// The root of the working tree
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Everything.
    All,
    /// The reference of diagnostics.
    Diagnostics,
    /// The reference of the command line.
    Cli,
    /// The reference of conditions and events.
    Conditions,
    /// The reference of the language of guards.
    Expressions,
    /// The reference of what stands in git.
    Definitions,
    /// The definitions of our kinds.
    Crds,
    /// The JSON Schemas of what stands in git only, for editors.
    Schemas,
}

impl What {
    const PARTS: [Self; 7] = [
        Self::Diagnostics,
        Self::Cli,
        Self::Conditions,
        Self::Expressions,
        Self::Definitions,
        Self::Crds,
        Self::Schemas,
    ];

    /// Makes the files: the path of each below the root, and its text.
    fn files(self) -> Result<Vec<(String, String)>, Failure> {
        let page = |name: &str, text| Ok(vec![(format!("docs/reference/{name}.md"), text)]);
        match self {
            Self::All => {
                Self::PARTS
                    .into_iter()
                    .map(Self::files)
                    .try_fold(Vec::new(), |mut all, files| {
                        all.extend(files?);
                        Ok(all)
                    })
            }
            Self::Diagnostics => page("diagnostics", pages::diagnostics()),
            Self::Cli => page("cli", pages::command_line()),
            Self::Conditions => page("conditions", conditions::reference_page()),
            Self::Expressions => page("expressions", pages::expressions()),
            Self::Definitions => page("definitions", pages::definitions()),
            Self::Crds => crds().iter().map(crd_file).collect(),
            Self::Schemas => json_schemas().iter().map(schema_file).collect(),
        }
    }
}

fn crd_file(crd: &CustomResourceDefinition) -> Result<(String, String), Failure> {
    let path = format!(
        "deploy/crds/{}_{}.yaml",
        crd.spec.group, crd.spec.names.plural
    );
    let text = serde_yaml::to_string(crd).map_err(Failure::of)?;
    Ok((
        path,
        format!("# Made by `make generate`; do not edit.\n{text}"),
    ))
}

fn schema_file((name, schema): &(&str, Value)) -> Result<(String, String), Failure> {
    let text = serde_json::to_string_pretty(schema).map_err(Failure::of)?;
    Ok((format!("docs/reference/schemas/{name}.json"), text + "\n"))
}

#[derive(Debug, thiserror::Error)]
#[error("failed to write {}", path.display())]
struct WriteError {
    path: PathBuf,
    source: io::Error,
}

pub(super) fn run(arguments: &GenerateArguments, context: &mut Context) -> Result<Exit, Failure> {
    for (path, text) in arguments.what.files()? {
        let path = arguments.root.join(path);
        let folder = path.parent().unwrap_or(&arguments.root);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|source| {
                Failure::of(WriteError {
                    path: path.clone(),
                    source,
                })
            })?;
        writeln!(context.err, "wrote {}", path.display())?;
    }
    Ok(Exit::Ok)
}
