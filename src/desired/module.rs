//! Reads the files of a module: its ModuleReleaseMeta in either form, its ReleaseGraph, and its versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::catalog::{Assignment, CatalogRelease, Deprecation, Edge, ReleaseGraph};
use super::facts::{Definition, ReleaseFacts, TemplateFacts};
use super::finding::{DocumentAt, Finding, Pointer, pointer};
use super::kyma_schemas::{MODULE_RELEASE_META, MODULE_RELEASES, MODULE_TEMPLATE};
use super::object::{Finish, Identity, check, group_and_version, kind_of, normalise};
use super::own_schemas::{MODULE_SETTINGS, RELEASE_GRAPH};
use super::read::Reader;
use super::settings::{check_definition, check_kind, list, read_component, text};
use super::yaml::Part;
use crate::model::names::{ANNOTATION_VERSIONS, GROUP, KYMA_GROUP, KYMA_VERSION};
use crate::model::{
    ChannelName, Code, ComponentName, GroupKind, ModuleName, ModuleVersion, ObjectKey,
};

/// The name of the file that may hold the short form.
const SHORT_FORM: &[&str] = &["module-releases.yaml", "module-releases.yml"];
/// Label with the module's name, which the tools of Kyma set on a ModuleTemplate.
const LABEL_MODULE_NAME: &str = "operator.kyma-project.io/module-name";
/// A channel's name that Kyma takes for "no channel".
const RESERVED_CHANNEL: &str = "none";

/// Returns the identity of a catalog object of home.
pub(super) fn catalog_key(kind: &str, namespace: &str, name: impl Into<String>) -> ObjectKey {
    ObjectKey::new(GroupKind::new(KYMA_GROUP, kind), Some(namespace), name)
}

/// Reads a document of a module's own files.
pub(super) fn read_module_document(
    reader: &mut Reader<'_>,
    module: &ModuleName,
    landscape: Option<&str>,
    at: DocumentAt,
    value: Value,
) {
    let file = reader.text.path.rsplit('/').next().unwrap_or_default();
    let is_short = SHORT_FORM.contains(&file) && value.get("kind").is_none();
    match kind_of(&value) {
        _ if is_short => read_short_form(reader, module, at, value),
        Ok((api_version, "ReleaseGraph"))
            if landscape.is_none() && group_and_version(api_version).0 == GROUP =>
        {
            read_graph(reader, at, &value);
        }
        Ok((api_version, "Component"))
            if landscape.is_none() && group_and_version(api_version).0 == GROUP =>
        {
            read_component(reader, at, &value, &MODULE_SETTINGS);
        }
        _ => read_release_meta(reader, module, at, value),
    }
}

/// Reads a document in the folder of a version: the ModuleTemplate, or what the module's installer will apply.
pub(super) fn read_version_document(
    reader: &mut Reader<'_>,
    module: &ModuleName,
    version: &str,
    at: DocumentAt,
    value: Value,
) {
    match kind_of(&value) {
        Ok((api_version, "ModuleTemplate")) if group_and_version(api_version).0 == KYMA_GROUP => {
            read_template(reader, module, version, at, value);
        }
        _ => reader.foreign_manifest(at, value, &pointer![]),
    }
}

fn read_template(
    reader: &mut Reader<'_>,
    module: &ModuleName,
    version: &str,
    at: DocumentAt,
    value: Value,
) {
    let api_version = format!("{KYMA_GROUP}/{KYMA_VERSION}");
    let mut findings = check_kind(&value, &api_version, "ModuleTemplate");
    if findings.is_empty() {
        findings = MODULE_TEMPLATE.check(&value);
        findings.extend(check_metadata(&value, "ModuleTemplate"));
        let name = format!("{module}-{version}");
        findings.extend(check_identity(&value, &["metadata", "name"], &name));
        findings.extend(check_identity(
            &value,
            &["spec", "moduleName"],
            module.as_str(),
        ));
        findings.extend(check_identity(&value, &["spec", "version"], version));
        findings.extend(check_duplicates(
            list(&value["spec"], "resources"),
            &pointer!["spec", "resources"],
            ("name", "resource"),
            Code::SchemaViolation,
        ));
    }
    let has_error = reader.report_all(at, findings).is_some();
    let (false, Ok(version), Value::Object(mut body)) =
        (has_error, ModuleVersion::parse(version), value)
    else {
        return;
    };
    normalise(&mut body, &GroupKind::new(KYMA_GROUP, "ModuleTemplate"));
    let metadata = &mut body["metadata"];
    if metadata
        .pointer("/labels/operator.kyma-project.io~1module-name")
        .is_none()
    {
        if metadata.get("labels").is_none() {
            metadata["labels"] = json!({});
        }
        metadata["labels"][LABEL_MODULE_NAME] = json!(module);
    }
    let is_mandatory = body["spec"].get("mandatory") == Some(&Value::Bool(true));
    let place = reader.text.start(at);
    reader.define(Definition::Template(TemplateFacts {
        body,
        version,
        is_mandatory,
        place,
    }));
}

fn read_release_meta(reader: &mut Reader<'_>, module: &ModuleName, at: DocumentAt, value: Value) {
    let api_version = format!("{KYMA_GROUP}/{KYMA_VERSION}");
    let mut findings = check_kind(&value, &api_version, "ModuleReleaseMeta");
    if findings.is_empty() {
        findings = MODULE_RELEASE_META.check(&value);
        findings.extend(check_metadata(&value, "ModuleReleaseMeta"));
        findings.extend(check_identity(
            &value,
            &["metadata", "name"],
            module.as_str(),
        ));
        findings.extend(check_identity(
            &value,
            &["spec", "moduleName"],
            module.as_str(),
        ));
        findings.extend(check_release(&value["spec"], &pointer!["spec"]));
    }
    if reader.report_all(at, findings).is_some() {
        return;
    }
    let Value::Object(body) = value else {
        return;
    };
    define_release(reader, module, at, body, &pointer!["spec"]);
}

/// Reads the short form, and makes the ModuleReleaseMeta that it stands for.
fn read_short_form(reader: &mut Reader<'_>, module: &ModuleName, at: DocumentAt, value: Value) {
    let mut findings = MODULE_RELEASES.check(&value);
    findings.extend(check_release(&value, &pointer![]));
    if reader.report_all(at, findings).is_some() {
        return;
    }
    let Value::Object(mut spec) = value else {
        return;
    };
    let landscapes = spec.remove("targetLandscapes");
    spec.insert("moduleName".into(), json!(module));
    let mut body = Map::new();
    body.insert(
        "apiVersion".into(),
        json!(format!("{KYMA_GROUP}/{KYMA_VERSION}")),
    );
    body.insert("kind".into(), json!("ModuleReleaseMeta"));
    body.insert("metadata".into(), json!({"name": module}));
    body.insert("spec".into(), Value::Object(spec));
    if let Some(landscapes) = landscapes {
        body.insert("targetLandscapes".into(), landscapes);
    }
    define_release(reader, module, at, body, &pointer![]);
}

/// Adds a checked ModuleReleaseMeta; `base` is where the content of its spec stands in the file.
fn define_release(
    reader: &mut Reader<'_>,
    module: &ModuleName,
    at: DocumentAt,
    mut body: Map<String, Value>,
    base: &Pointer,
) {
    let target_landscapes = body.remove("targetLandscapes").map(|names| {
        let names = names.as_array().cloned().unwrap_or_default();
        let places = (0usize..).map(|index| {
            let pointer = pointer!["targetLandscapes", index];
            reader.text.place(at, &pointer, Part::Value)
        });
        names
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .zip(places)
            .collect()
    });
    let spec = &body["spec"];
    let release = CatalogRelease {
        channels: channels(reader, at, spec, base),
        mandatory: spec
            .get("mandatory")
            .filter(|it| !it.is_null())
            .and_then(|mandatory| {
                let place = reader.text.place(
                    at,
                    &below(base, "mandatory", &["version".into()]),
                    Part::Value,
                );
                Some(Assignment {
                    version: text(mandatory, "version")?,
                    channel_place: place.clone(),
                    place,
                })
            }),
        deprecations: deprecations(spec),
        target_landscapes,
        place: reader.text.start(at),
    };
    let mut annotations = Vec::new();
    if let Some(versions) = body["spec"]
        .as_object_mut()
        .and_then(|spec| spec.remove("versions"))
    {
        annotations.push((ANNOTATION_VERSIONS, versions.to_string()));
    }
    let kind = GroupKind::new(KYMA_GROUP, "ModuleReleaseMeta");
    normalise(&mut body, &kind);
    let finish = Finish {
        source: &reader.options.source,
        component: &ComponentName::Module(module.clone()),
        place: release.place.clone(),
        annotations,
    };
    let namespace = &reader.options.catalog_namespace;
    let key = catalog_key("ModuleReleaseMeta", namespace, module.as_str());
    let object = Arc::new(finish.object(body, KYMA_VERSION.to_owned(), key));
    reader.define(Definition::Release(ReleaseFacts {
        release: Arc::new(release),
        object,
    }));
}

fn channels(
    reader: &Reader<'_>,
    at: DocumentAt,
    spec: &Value,
    base: &Pointer,
) -> BTreeMap<ChannelName, Assignment> {
    list(spec, "channels")
        .iter()
        .enumerate()
        .filter_map(|(index, entry)| {
            let place = |field: &str| {
                let pointer = below(base, "channels", &[index.into(), field.into()]);
                reader.text.place(at, &pointer, Part::Value)
            };
            let assignment = Assignment {
                version: text(entry, "version")?,
                place: place("version"),
                channel_place: place("channel"),
            };
            Some((ChannelName::new(text(entry, "channel")?).ok()?, assignment))
        })
        .collect()
}

fn deprecations(spec: &Value) -> BTreeMap<String, Deprecation> {
    list(spec, "versions")
        .iter()
        .filter_map(|entry| {
            let deprecation = Deprecation {
                date: text(entry, "deprecationDate")?.parse().ok()?,
                message: text(entry, "deprecationMessage"),
            };
            Some((text(entry, "version")?, deprecation))
        })
        .collect()
}

fn read_graph(reader: &mut Reader<'_>, at: DocumentAt, value: &Value) {
    let mut findings = check_definition(value, "ReleaseGraph", &RELEASE_GRAPH);
    findings.extend(check_duplicates(
        list(value, "yanked"),
        &pointer!["yanked"],
        ("version", "version"),
        Code::SchemaViolation,
    ));
    if reader.report_all(at, findings).is_some() {
        return;
    }
    let graph = ReleaseGraph {
        edges: list(value, "edges")
            .iter()
            .filter_map(|edge| {
                Some(Edge {
                    from: text(edge, "from")?,
                    to: text(edge, "to")?,
                })
            })
            .collect(),
        yanked: list(value, "yanked")
            .iter()
            .filter_map(|entry| Some((text(entry, "version")?, text(entry, "reason"))))
            .collect(),
    };
    reader.define(Definition::Graph(graph));
}

// === Rules inside one document ===

/// Checks labels, annotations and hooks, as for every object.
fn check_metadata(value: &Value, kind: &str) -> Vec<Finding> {
    let identity = Identity {
        kind: GroupKind::new(KYMA_GROUP, kind),
        version: KYMA_VERSION.to_owned(),
        namespace: None,
        // Identity is judged by the module's and the version's names, not by this.
        name: value
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
            .unwrap_or("absent")
            .to_owned(),
    };
    check(value, &identity)
}

/// Checks that a field says what the folder says.
fn check_identity(value: &Value, path: &[&str], expected: &str) -> Option<Finding> {
    let pointer: Pointer = path.iter().map(|part| (*part).into()).collect();
    let field = path.join(".");
    let found = path.iter().try_fold(value, |value, part| value.get(part));
    let finding = match found {
        Some(Value::String(found)) if found == expected => return None,
        Some(Value::String(found)) => Finding::error(
            Code::IdentityMismatch,
            pointer,
            format!("`{field}` is `{found}`, where the folder says `{expected}`"),
        ),
        None | Some(Value::Null) => Finding::error(
            Code::IdentityMismatch,
            pointer,
            format!("`{field}` is missing, where the folder says `{expected}`"),
        )
        .at_key(),
        // A wrong type is the schema's finding; metadata has no schema of its own.
        Some(_) if path[0] == "metadata" => Finding::error(
            Code::SchemaViolation,
            pointer,
            format!("`{field}` is not a text"),
        ),
        Some(_) => return None,
    };
    Some(finding.help(format!("{}: {expected}", path[path.len() - 1])))
}

/// Checks what holds for the channels of a module in either form; `base` is where they stand.
fn check_release(spec: &Value, base: &Pointer) -> Vec<Finding> {
    let mut findings = Vec::new();
    let has = |field: &str| spec.get(field).is_some_and(|value| !value.is_null());
    if has("channels") == has("mandatory") {
        let finding = Finding::error(
            Code::MandatoryConflict,
            if has("mandatory") {
                below(base, "mandatory", &[])
            } else {
                base.clone()
            },
            "exactly one of `mandatory` or `channels` must be specified",
        );
        findings.push(finding.at_key());
    }
    if !has("ocmComponentName") {
        findings.push(
            Finding::warning(
                Code::SchemaViolation,
                base.clone(),
                "`ocmComponentName` is missing; lifecycle-manager fails without it",
            )
            .at_key()
            .help("ocmComponentName: kyma-project.io/module/NAME"),
        );
    }
    for (index, entry) in list(spec, "channels").iter().enumerate() {
        if entry.get("channel").and_then(Value::as_str) == Some(RESERVED_CHANNEL) {
            findings.push(Finding::error(
                Code::SchemaViolation,
                below(base, "channels", &[index.into(), "channel".into()]),
                format!("`{RESERVED_CHANNEL}` is reserved; Kyma takes it for no channel"),
            ));
        }
    }
    findings.extend(check_duplicates(
        list(spec, "channels"),
        &below(base, "channels", &[]),
        ("channel", "channel"),
        Code::ChannelDuplicate,
    ));
    findings.extend(check_duplicates(
        list(spec, "versions"),
        &below(base, "versions", &[]),
        ("version", "version"),
        Code::SchemaViolation,
    ));
    findings
}

/// Finds entries of a list that have the same value in their key field. `pointer` is where the list stands, `what` the
/// word for an entry.
fn check_duplicates(
    entries: &[Value],
    pointer: &Pointer,
    (key, what): (&str, &str),
    code: Code,
) -> Vec<Finding> {
    let mut seen = std::collections::HashSet::new();
    let mut findings = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let Some(name) = entry.get(key).and_then(Value::as_str) else {
            continue;
        };
        if !seen.insert(name) {
            let message = format!("{what} `{name}` stands twice");
            let mut pointer = pointer.clone();
            pointer.extend(pointer![index, key]);
            findings.push(
                Finding::error(code, pointer, message).help("remove the one that is not meant"),
            );
        }
    }
    findings
}

/// Returns a pointer that goes on from a base.
fn below(base: &Pointer, field: &str, rest: &[super::yaml::PointerPart]) -> Pointer {
    let mut pointer = base.clone();
    pointer.push(field.into());
    pointer.extend_from_slice(rest);
    pointer
}
