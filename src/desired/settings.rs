//! Reads `fairway.yaml` and `component.yaml`.

use serde_json::Value;

use super::facts::{ComponentFacts, Definition, SettingsFacts};
use super::finding::{DocumentAt, Finding, pointer};
use super::object::group_and_version;
use super::output::{OnRemove, Removal, RepositorySettings, UpgradePolicy};
use super::own_schemas::REPOSITORY;
use super::read::Reader;
use super::schema::Schema;
use super::texts::{component_name, parse_duration};
use super::yaml::Part;
use crate::model::names::{GROUP, VERSION};
use crate::model::{ChannelName, Code, GroupKind, ModuleName, ObjectKey};

/// Reads the settings of the repository.
pub(super) fn read_settings(reader: &mut Reader<'_>, at: DocumentAt, value: &Value) {
    let mut findings = check_definition(value, "Repository", &REPOSITORY);
    for (index, removal) in list(value, "removals").iter().enumerate() {
        let given = ["component", "object"]
            .iter()
            .filter(|field| removal.get(field).is_some());
        if removal.is_object() && given.count() != 1 {
            findings.push(
                Finding::error(
                    Code::SchemaViolation,
                    pointer!["removals", index],
                    "a removal names either a component or an object",
                )
                .help("component: components/NAME"),
            );
        }
    }
    if reader.report_all(at, findings).is_some() {
        return;
    }
    let default_modules: Vec<ModuleName> = texts(value, "defaultModules")
        .filter_map(|name| ModuleName::new(name).ok())
        .collect();
    let default_module_places = (0..default_modules.len())
        .map(|index| {
            let pointer = pointer!["defaultModules", index];
            reader.text.place(at, &pointer, Part::Value)
        })
        .collect();
    let settings = RepositorySettings {
        release: text(value, "release"),
        channels: channels(value),
        upgrades: match value.pointer("/upgrades/policy").and_then(Value::as_str) {
            Some("Direct") => UpgradePolicy::Direct,
            _ => UpgradePolicy::Linear,
        },
        removals: list(value, "removals").iter().filter_map(removal).collect(),
        landscapes: texts(value, "landscapes").map(str::to_owned).collect(),
        default_modules,
        http_hosts: texts(value, "httpHosts").map(str::to_owned).collect(),
    };
    reader.define(Definition::Settings(SettingsFacts {
        settings,
        default_module_places,
    }));
}

/// Reads the settings of a component, which may say what the schema knows.
pub(super) fn read_component(
    reader: &mut Reader<'_>,
    at: DocumentAt,
    value: &Value,
    schema: &Schema,
) {
    let findings = check_definition(value, "Component", schema);
    if let Some((place, message)) = reader.report_all(at, findings) {
        reader.define(Definition::BrokenComponent { place, message });
        return;
    }
    let depends_on = texts(value, "dependsOn")
        .enumerate()
        .filter_map(|(index, name)| {
            let pointer = pointer!["dependsOn", index];
            let place = reader.text.place(at, &pointer, Part::Value);
            component_name(name).map(|name| (name, place))
        })
        .collect();
    let facts = ComponentFacts {
        version: text(value, "version"),
        depends_on,
        health_timeout: text(value, "healthTimeout").and_then(|text| parse_duration(&text)),
        on_remove: match text(value, "onRemove").as_deref() {
            Some("Undo") => OnRemove::Undo,
            _ => OnRemove::Keep,
        },
        place: reader.text.start(at),
    };
    reader.define(Definition::Component(facts));
}

/// Checks a document of one of our definition kinds.
pub(super) fn check_definition(value: &Value, kind: &str, schema: &Schema) -> Vec<Finding> {
    let findings = check_kind(value, &format!("{GROUP}/{VERSION}"), kind);
    if findings.is_empty() {
        schema.check(value)
    } else {
        findings
    }
}

/// Checks that a document is of one kind and version.
pub(super) fn check_kind(value: &Value, api_version: &str, kind: &str) -> Vec<Finding> {
    let found = super::object::kind_of(value);
    let finding = match found {
        Err(finding) => finding,
        Ok(found) if found == (api_version, kind) => return Vec::new(),
        Ok((other, same))
            if same == kind && group_and_version(other).0 == group_and_version(api_version).0 =>
        {
            let message = format!("`{other}` is no version of {kind} that is read here");
            Finding::error(Code::SchemaViolation, pointer!["apiVersion"], message)
        }
        Ok((other, kind)) => Finding::error(
            Code::KindUnknown,
            pointer!["kind"],
            format!("a {kind} of {other} has no place in this file"),
        ),
    };
    vec![finding.help(format!("apiVersion: {api_version}\nkind: {kind}"))]
}

/// Returns a text field.
pub(super) fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field)?.as_str().map(str::to_owned)
}

/// Returns a list field; empty where it is missing.
pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the texts of a list field.
pub(super) fn texts<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    list(value, field).iter().filter_map(Value::as_str)
}

fn channels(value: &Value) -> std::collections::BTreeMap<ChannelName, Vec<String>> {
    let Some(Value::Object(channels)) = value.get("channels") else {
        return std::collections::BTreeMap::new();
    };
    channels
        .iter()
        .filter_map(|(name, channel)| {
            let suffixes = texts(channel, "suffixes").map(str::to_owned).collect();
            Some((ChannelName::new(name.as_str()).ok()?, suffixes))
        })
        .collect()
}

fn removal(value: &Value) -> Option<Removal> {
    if let Some(component) = value.get("component") {
        return component_name(component.as_str()?).map(Removal::Component);
    }
    let object = value.get("object")?;
    let api_version = object.get("apiVersion")?.as_str()?;
    let kind = GroupKind::new(group_and_version(api_version).0, text(object, "kind")?);
    let namespace = text(object, "namespace");
    let name = text(object, "name")?;
    Some(Removal::Object(ObjectKey::new(
        kind,
        namespace.as_deref(),
        name,
    )))
}
