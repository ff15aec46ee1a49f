//! Reads one Migration: what can be said about it without the rest of the repository. The result is cached with its file.

use std::sync::Arc;

use serde_json::Value;

use super::facts::MigrationFacts;
use super::schema::MIGRATION;
use super::{fixtures, rules, steps};
use crate::desired::facts::Definition;
use crate::desired::finding::{DocumentAt, Finding, pointer};
use crate::desired::read::Reader;
use crate::desired::settings::{check_definition, texts};
use crate::model::migration::{MigrationSpec, Scope};
use crate::model::{Code, Digest, limits};

/// Reads a document of a folder of migrations.
pub(in crate::desired) fn read_migration(
    reader: &mut Reader<'_>,
    at: DocumentAt,
    mut value: Value,
) {
    // YAML 1.1, which kubectl reads, takes the key `on` for a truth value.
    if let Some(Value::Object(bind)) = value.pointer_mut("/spec/bind")
        && let Some(on) = bind.remove("true")
    {
        bind.insert("on".to_owned(), on);
    }
    let mut findings = check_definition(&value, "Migration", &MIGRATION);
    // The rule of its own says more.
    if let Some(finding) = value.get("spec").and_then(rules::check_form) {
        let at = pointer!["spec", "lifecycle"];
        findings.retain(|it| !it.is_about(&at));
        findings.push(finding);
    }
    let is_readable = !findings.iter().any(Finding::is_error);
    let mut error = reader.report_all(at, findings);
    let name = value
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let bind = value.pointer("/spec/bind").cloned().unwrap_or_default();
    let mut facts = MigrationFacts {
        name,
        scope: match bind.get("scope").and_then(Value::as_str) {
            Some("global") => Some(Scope::Global),
            Some("component") => Some(Scope::Component),
            _ => None,
        },
        components: texts(&bind, "components").map(str::to_owned).collect(),
        spec: None,
        digest: Digest::of(&serde_json::json!({
            "name": value.pointer("/metadata/name"),
            "spec": value.get("spec"),
        })),
        at,
        place: reader.text.start(at),
        error: None,
    };
    if is_readable {
        MIGRATION.drop_nulls(&mut value);
        let (spec, findings) = read_spec(&value["spec"]);
        let broken = reader.report_all(at, findings);
        error = error.or(broken);
        facts.spec = spec.filter(|_| error.is_none()).map(Arc::new);
    }
    facts.error = error;
    reader.define(Definition::Migration(Box::new(facts)));
}

/// Reads `spec`, with everything that is wrong with it.
fn read_spec(raw: &Value) -> (Option<MigrationSpec>, Vec<Finding>) {
    let mut found = steps::check_kinds(raw);
    found.extend(rules::check_presence(raw));
    let size = raw.to_string().len();
    if size > limits::DEFINITION_SIZE_MAX {
        let message = format!(
            "the definition has {size} bytes, more than {}",
            limits::DEFINITION_SIZE_MAX
        );
        found.push(
            Finding::error(Code::MigrationStep, pointer!["spec"], message)
                .at_key()
                .help("every Run keeps a copy; split the migration, or look large values up"),
        );
    }
    if !found.is_empty() {
        return (None, found);
    }
    match serde_json::from_value::<MigrationSpec>(raw.clone()) {
        Ok(spec) => {
            found.extend(rules::check_definition(&spec));
            found.extend(steps::check_steps(&spec, raw));
            found.extend(fixtures::check_fixtures(&spec));
            (Some(spec), found)
        }
        // The schema says the same as the types; should they ever differ, the definition is held.
        Err(error) => {
            let message = format!("this cannot be read as a Migration: {error}");
            let finding = Finding::error(Code::SchemaViolation, pointer!["spec"], message);
            (None, vec![finding])
        }
    }
}
