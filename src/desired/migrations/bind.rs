//! What a migration belongs to.

use std::collections::BTreeMap;

use crate::desired::finding::{Finding, nearest, pointer};
use crate::desired::output::DesiredComponent;
use crate::model::migration::Scope;
use crate::model::{Code, ComponentName, ModuleName};

/// What a migration belongs to, as far as that is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bound {
    /// The components; none for a global migration, or where nobody knows.
    pub(super) components: Vec<ComponentName>,
}

impl Bound {
    /// Returns whether it belongs to the deploy as a whole, or nobody knows to what.
    pub(super) fn is_global(&self) -> bool {
        self.components.is_empty()
    }
}

/// Finds the components that a migration belongs to, with what is wrong about that.
pub(super) fn bind(
    scope: Option<Scope>,
    names: &[String],
    folder: Option<&ComponentName>,
    known: &BTreeMap<ComponentName, DesiredComponent>,
) -> (Bound, Vec<Finding>) {
    let mut bound = Bound {
        components: Vec::new(),
    };
    let mut found = Vec::new();
    if scope == Some(Scope::Global) {
        return (bound, found);
    }
    for (index, text) in names.iter().enumerate() {
        match resolve(text, known) {
            Ok(name) if bound.components.contains(&name) => {}
            Ok(name) => bound.components.push(name),
            Err((message, help)) => found.push(
                Finding::error(
                    Code::MigrationBinding,
                    pointer!["spec", "bind", "components", index],
                    message,
                )
                .help(help),
            ),
        }
    }
    if names.is_empty() {
        match folder {
            Some(folder) => {
                bound.components.push(folder.clone());
                if !known.contains_key(folder) {
                    let message =
                        format!("it stands in the folder of {folder}, which holds nothing else");
                    found.push(
                        Finding::error(Code::MigrationBinding, pointer!["spec", "bind"], message)
                            .at_key()
                            .help("components: [NAME], or scope: global, or move the file"),
                    );
                }
            }
            None if scope == Some(Scope::Component) => {
                let message = "nobody knows which component is meant";
                found.push(
                    Finding::error(Code::MigrationBinding, pointer!["spec", "bind"], message)
                        .at_key()
                        .help(
                            "components: [NAME], or move the file to components/NAME/migrations/",
                        ),
                );
            }
            None => {}
        }
    }
    (bound, found)
}

/// Finds the component that a text means; an error is a message and the way out.
fn resolve(
    text: &str,
    known: &BTreeMap<ComponentName, DesiredComponent>,
) -> Result<ComponentName, (String, String)> {
    let candidates: Vec<ComponentName> = if text.contains('/') {
        text.parse().into_iter().collect()
    } else {
        let folder = ComponentName::folder(text).ok();
        let module = ModuleName::new(text).ok().map(ComponentName::Module);
        folder.into_iter().chain(module).collect()
    };
    let there: Vec<&ComponentName> = candidates
        .iter()
        .filter(|name| known.contains_key(name))
        .collect();
    match there.as_slice() {
        [name] => Ok((*name).clone()),
        [one, two, ..] => Err((
            format!("`{text}` could be {one} or {two}"),
            format!("write one of them in full: {one}"),
        )),
        [] => {
            let full: Vec<String> = known.keys().map(ToString::to_string).collect();
            let short = full.iter().map(|name| {
                let (_, short) = name.split_once('/').unwrap_or(("", name));
                if text.contains('/') {
                    name.as_str()
                } else {
                    short
                }
            });
            let help = match nearest(text, short) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if text == "global" => "write scope: global, without components".to_owned(),
                None => format!("there are {}", full.join(", ")),
            };
            Err((format!("there is no component `{text}`"), help))
        }
    }
}
