//! From one document to the object that is sent: identity, checks, normalisation, our labels and the digest.
//!
//! An object whose identity is known but that breaks a rule is held: neither applied nor pruned. One whose identity is not
//! known cannot be protected by name, so its file counts as unread.

use serde_json::{Map, Value, json};

use super::finding::{Finding, pointer};
use super::kinds::{Scope, broken_name_rule, is_label_value, is_qualified_name, scope_of};
use crate::model::names::{
    ANNOTATION_COMPONENT, ANNOTATION_DIGEST, ANNOTATION_VERSION_DIGEST, ANNOTATION_VERSIONS,
    LABEL_SOURCE,
};
use crate::model::{Code, ComponentName, DesiredObject, GroupKind, ObjectKey, Place, SourceName};

/// Annotations that make an object a hook of another tool.
const FOREIGN_HOOKS: &[&str] = &["helm.sh/hook", "argocd.argoproj.io/hook"];
/// Annotations that are computed, ours and kubectl's: an object that was exported from a cluster may carry them.
const COMPUTED_ANNOTATIONS: &[&str] = &[
    ANNOTATION_COMPONENT,
    ANNOTATION_DIGEST,
    ANNOTATION_VERSION_DIGEST,
    ANNOTATION_VERSIONS,
    "kubectl.kubernetes.io/last-applied-configuration",
];
/// Fields of `metadata` that belong to the API server.
const SERVER_FIELDS: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Who an object is, as far as its document says.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    /// Group and kind.
    pub(super) kind: GroupKind,
    /// The version part of `apiVersion`.
    pub(super) version: String,
    /// The namespace, as it stands.
    pub(super) namespace: Option<String>,
    /// The name.
    pub(super) name: String,
}

impl Identity {
    /// Returns the scope of the kind, where it is known offline.
    pub(super) fn scope(&self) -> Option<Scope> {
        scope_of(&self.kind.group, &self.kind.kind)
    }

    /// Returns the key on the cluster; a cluster-scoped object has no namespace, whatever its document says.
    pub(super) fn key(&self) -> ObjectKey {
        let namespace = match self.scope() {
            Some(Scope::Cluster) => None,
            _ => self.namespace.as_deref(),
        };
        ObjectKey::new(self.kind.clone(), namespace, self.name.clone())
    }
}

/// Splits an `apiVersion` into group and version.
pub(super) fn group_and_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Returns `apiVersion` and `kind`, or what is wrong with them.
pub(super) fn kind_of(value: &Value) -> Result<(&str, &str), Finding> {
    let text = |field: &'static str| match value.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.as_str()),
        Some(_) => Err(Finding::error(
            Code::KindUnknown,
            pointer![field],
            format!("`{field}` is not a text"),
        )),
        None => Err(Finding::error(
            Code::KindUnknown,
            pointer![],
            format!("the document has no `{field}`"),
        )
        .help("every document needs `apiVersion` and `kind`")),
    };
    Ok((text("apiVersion")?, text("kind")?))
}

/// Finds out who an object is.
pub(super) fn identify(value: &Value) -> Result<Identity, Finding> {
    let (api_version, kind) = kind_of(value)?;
    let (group, version) = group_and_version(api_version);
    let Some(Value::Object(metadata)) = value.get("metadata") else {
        return Err(Finding::error(
            Code::SchemaViolation,
            pointer!["metadata"],
            "the object has no `metadata` with a name",
        ));
    };
    if metadata.contains_key("generateName") {
        return Err(Finding::error(
            Code::SchemaViolation,
            pointer!["metadata", "generateName"],
            "`generateName` makes a new object at each apply",
        )
        .at_key()
        .help("give the object a `name`"));
    }
    let name = match metadata.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        Some(_) => {
            return Err(Finding::error(
                Code::SchemaViolation,
                pointer!["metadata", "name"],
                "`metadata.name` is not a text",
            )
            .help("write it in quotes"));
        }
        None => {
            return Err(Finding::error(
                Code::SchemaViolation,
                pointer!["metadata"],
                "the object has no `metadata.name`",
            )
            .at_key());
        }
    };
    let namespace = match metadata.get("namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(namespace)) if namespace.is_empty() => None,
        Some(Value::String(namespace)) => Some(namespace.clone()),
        Some(_) => {
            return Err(Finding::error(
                Code::SchemaViolation,
                pointer!["metadata", "namespace"],
                "`metadata.namespace` is not a text",
            )
            .help("write it in quotes"));
        }
    };
    let identity = Identity {
        kind: GroupKind::new(group, kind),
        version: version.to_owned(),
        namespace,
        name,
    };
    if identity.scope() == Some(Scope::Namespaced) && identity.namespace.is_none() {
        return Err(namespace_missing(&identity.kind));
    }
    Ok(identity)
}

/// The finding about a namespaced object without a namespace. Which object it is cannot be known then.
pub(super) fn namespace_missing(kind: &GroupKind) -> Finding {
    Finding::error(
        Code::NamespaceMissing,
        pointer!["metadata"],
        format!("a {kind} lives in a namespace, and this one names none"),
    )
    .at_key()
    .help("add `namespace` to `metadata`")
}

/// Checks what holds for objects of every kind.
pub(super) fn check(value: &Value, identity: &Identity) -> Vec<Finding> {
    let mut findings = Vec::new();
    let GroupKind { group, kind } = &identity.kind;
    if group.is_empty() && kind == "Pod" {
        findings.push(
            Finding::error(
                Code::SchemaViolation,
                pointer!["kind"],
                "a bare Pod is lost with its node and cannot be changed",
            )
            .help("use a Deployment, a StatefulSet or a Job"),
        );
    }
    if let Some(rule) = broken_name_rule(group, kind, &identity.name) {
        findings.push(Finding::error(
            Code::SchemaViolation,
            pointer!["metadata", "name"],
            format!("`{}` is no name for a {kind}: {rule}", identity.name),
        ));
    }
    if let Some(namespace) = &identity.namespace
        && !super::kinds::is_label(namespace)
    {
        findings.push(Finding::error(
            Code::SchemaViolation,
            pointer!["metadata", "namespace"],
            format!("`{namespace}` is no name for a namespace"),
        ));
    }
    check_texts(value, "labels", &mut findings);
    check_texts(value, "annotations", &mut findings);
    check_hooks(value, &mut findings);
    if group.is_empty() && kind == "Secret" {
        check_secret(value, &mut findings);
    }
    findings
}

/// Checks labels or annotations: what the API server would refuse.
fn check_texts(value: &Value, field: &'static str, findings: &mut Vec<Finding>) {
    let Some(texts) = value.pointer("/metadata").and_then(|it| it.get(field)) else {
        return;
    };
    let entries = match texts {
        Value::Null => return,
        Value::Object(entries) => entries,
        _ => {
            findings.push(Finding::error(
                Code::SchemaViolation,
                pointer!["metadata", field],
                format!("`{field}` is not a mapping"),
            ));
            return;
        }
    };
    for (key, text) in entries {
        let at = || pointer!["metadata", field, key.as_str()];
        if !is_qualified_name(key) {
            let message = format!("`{key}` cannot be a key of {field}");
            findings.push(Finding::error(Code::SchemaViolation, at(), message).at_key());
        }
        match text {
            Value::String(text) if field == "labels" && !is_label_value(text) => {
                findings.push(
                    Finding::error(
                        Code::SchemaViolation,
                        at(),
                        format!("the value of label `{key}` is not one"),
                    )
                    .help("letters, digits, `-`, `_` and `.`, at most 63, starting and ending with a letter or digit"),
                );
            }
            Value::String(_) => {}
            _ => findings.push(
                Finding::error(
                    Code::SchemaViolation,
                    at(),
                    format!("the value of `{key}` is not a text"),
                )
                .help(format!("write it in quotes: {key}: \"{text}\"")),
            ),
        }
    }
}

/// Refuses the hooks of other tools.
pub(super) fn check_hooks(value: &Value, findings: &mut Vec<Finding>) {
    let annotations = value.pointer("/metadata/annotations");
    for hook in FOREIGN_HOOKS {
        if annotations.and_then(|it| it.get(hook)).is_some() {
            findings.push(
                Finding::error(
                    Code::ForeignHook,
                    pointer!["metadata", "annotations", *hook],
                    format!(
                        "`{hook}` makes this a hook of another tool, which nobody would run here"
                    ),
                )
                .at_key()
                .help("remove the annotation, or write a Migration"),
            );
        }
    }
}

/// Checks a Secret's values, and warns that they are in clear text.
pub(super) fn check_secret(value: &Value, findings: &mut Vec<Finding>) {
    let mut has_values = false;
    for field in ["data", "stringData"] {
        let entries = match value.get(field) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(entries)) => entries,
            Some(_) => {
                let message = format!("`{field}` is not a mapping");
                findings.push(Finding::error(
                    Code::SchemaViolation,
                    pointer![field],
                    message,
                ));
                continue;
            }
        };
        for (key, text) in entries {
            match text {
                Value::String(text) if field == "data" && !is_base64(text) => findings.push(
                    Finding::error(
                        Code::SchemaViolation,
                        pointer![field, key.as_str()],
                        format!("the value of `{key}` is not base64"),
                    )
                    .help("write plain text under `stringData`"),
                ),
                Value::String(text) if text.is_empty() => {}
                Value::String(_) if has_values => {}
                Value::String(_) => {
                    has_values = true;
                    findings.push(
                        Finding::warning(
                            Code::SecretInClear,
                            pointer![field],
                            "the values of this Secret are in clear text",
                        )
                        .at_key()
                        .help("everybody who can read the repository has them; keep them in a secret store, and change them"),
                    );
                }
                Value::Null if field == "data" => {}
                _ => findings.push(
                    Finding::error(
                        Code::SchemaViolation,
                        pointer![field, key.as_str()],
                        format!("the value of `{key}` is not a text"),
                    )
                    .help("write it in quotes"),
                ),
            }
        }
    }
}

fn is_base64(text: &str) -> bool {
    serde_json::from_value::<k8s_openapi::ByteString>(json!(text)).is_ok()
}

/// Removes what git may not hold, and turns `stringData` into `data`.
pub(super) fn normalise(body: &mut Map<String, Value>, kind: &GroupKind) {
    body.remove("status");
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        for field in SERVER_FIELDS {
            metadata.remove(*field);
        }
        for field in ["labels", "annotations"] {
            if metadata.get(field).is_some_and(Value::is_null) {
                metadata.remove(field);
            }
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            for annotation in COMPUTED_ANNOTATIONS {
                annotations.remove(*annotation);
            }
        }
    }
    if kind.group.is_empty() && kind.kind == "Secret" {
        encode_string_data(body);
    }
}

/// Does what the API server does with `stringData`, so that the desired object is what will be stored.
fn encode_string_data(body: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = body.remove("stringData") else {
        return;
    };
    let data = body.entry("data").or_insert_with(|| json!({}));
    if !data.is_object() {
        *data = json!({});
    }
    for (key, text) in texts {
        let bytes = k8s_openapi::ByteString(text.as_str().unwrap_or_default().into());
        data[key] = json!(bytes);
    }
}

/// Everything that turns a normalised body into an object.
#[derive(Debug, Clone)]
pub(super) struct Finish<'a> {
    /// The value of the source label.
    pub(super) source: &'a SourceName,
    /// The component.
    pub(super) component: &'a ComponentName,
    /// Where the object stands.
    pub(super) place: Place,
    /// Annotations to add.
    pub(super) annotations: Vec<(&'static str, String)>,
}

impl Finish<'_> {
    /// Adds our labels and annotations, and the digest over all.
    pub(super) fn object(
        self,
        mut body: Map<String, Value>,
        version: String,
        key: ObjectKey,
    ) -> DesiredObject {
        let metadata = section(&mut body, "metadata");
        match &key.namespace {
            Some(namespace) => metadata.insert("namespace".into(), json!(namespace)),
            None => metadata.remove("namespace"),
        };
        section(metadata, "labels").insert(LABEL_SOURCE.into(), json!(self.source));
        let annotations = section(metadata, "annotations");
        annotations.insert(
            ANNOTATION_COMPONENT.into(),
            json!(self.component.to_string()),
        );
        for (name, text) in self.annotations {
            annotations.insert(name.into(), Value::String(text));
        }
        let component = self.component.clone();
        DesiredObject::sealed(Value::Object(body), version, key, component, self.place)
    }
}

/// Returns the mapping under a key, made if it is not there.
fn section<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let value = map.entry(key).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value
        .as_object_mut()
        .expect("the value was just made a mapping")
}
