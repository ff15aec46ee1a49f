//! Reads one file by itself: parses it, recognises its documents by kind, and checks each.

use std::sync::Arc;

use serde_json::Value;

use super::custom::CustomKind;
use super::evaluate::EvaluateOptions;
use super::facts::{Definition, FileFacts, FileObject, Unscoped};
use super::finding::{DocumentAt, Finding, Pointer, SourceText, pointer};
use super::layout::Role;
use super::migrations::read_migration;
use super::object::{
    Finish, check, check_hooks, check_secret, group_and_version, identify, kind_of, normalise,
};
use super::output::Unread;
use super::own_schemas::COMPONENT_SETTINGS;
use super::yaml::{Document, Part, parse};
use super::{module, settings};
use crate::model::limits::{DIAGNOSTICS_LOCATED_MAX, DIAGNOSTICS_MAX};
use crate::model::names::{GROUP, KYMA_GROUP};
use crate::model::{BlobError, Code, ComponentName, Diagnostic, ModuleName, Place, Severity};

/// Kinds of ours that are definitions: they live in git only.
const DEFINITION_KINDS: &[&str] = &[
    "Component",
    "Migration",
    "Operation",
    "ReleaseGraph",
    "Repository",
    "Rollout",
];

/// Reads a file's content in the light of its role.
pub(super) fn read_file(
    path: &str,
    role: Role<'_>,
    content: Result<Vec<u8>, BlobError>,
    options: &EvaluateOptions,
) -> FileFacts {
    let bytes = match content {
        Ok(bytes) => bytes,
        Err(error) => return unreadable(path, role, &error),
    };
    let mut reader = Reader {
        text: SourceText {
            path,
            bytes: &bytes,
        },
        options,
        facts: FileFacts::default(),
    };
    let parsed = parse(&bytes);
    for problem in parsed.problems {
        let place = Place::new(path, problem.line, problem.column);
        if problem.hides_objects {
            reader.unread(place.clone(), problem.message.clone());
        }
        reader.push(Diagnostic {
            help: problem.help,
            ..Diagnostic::error(problem.code, place, problem.message)
        });
    }
    for document in parsed.documents {
        reader.document(role, document);
    }
    reader.facts
}

/// The facts about a file whose content could not be had.
fn unreadable(path: &str, role: Role<'_>, error: &BlobError) -> FileFacts {
    let code = match error {
        BlobError::TooLarge { .. } => Code::FileTooLarge,
        BlobError::Unreadable { .. } => Code::YamlSyntax,
    };
    let place = Place::whole_file(path);
    let reason = error.to_string();
    let diagnostic = Diagnostic::error(code, place.clone(), reason.clone());
    FileFacts {
        error: Some((place.clone(), reason.clone())),
        unread: matches!(role, Role::Component { .. }).then_some(Unread { place, reason }),
        diagnostics: vec![match code {
            Code::FileTooLarge => diagnostic.help("split the file"),
            _ => diagnostic,
        }],
        ..FileFacts::default()
    }
}

/// A file that is being read.
pub(super) struct Reader<'a> {
    pub(super) text: SourceText<'a>,
    pub(super) options: &'a EvaluateOptions,
    pub(super) facts: FileFacts,
}

impl Reader<'_> {
    /// Adds a diagnostic, within the limit.
    fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error && self.facts.error.is_none() {
            self.facts.error = Some((diagnostic.place.clone(), diagnostic.message.clone()));
        }
        if self.facts.diagnostics.len() < DIAGNOSTICS_MAX {
            self.facts.diagnostics.push(diagnostic);
        } else {
            self.facts.diagnostics_omitted += 1;
        }
    }

    /// Adds a finding, and returns its diagnostic's place and message.
    pub(super) fn report(&mut self, at: DocumentAt, finding: Finding) -> (Place, String) {
        let diagnostic = if self.facts.diagnostics.len() < DIAGNOSTICS_LOCATED_MAX {
            self.text.diagnose(at, finding)
        } else {
            finding.at(self.text.start(at))
        };
        let what = (diagnostic.place.clone(), diagnostic.message.clone());
        self.push(diagnostic);
        what
    }

    /// Adds findings, and returns the first error among them.
    pub(super) fn report_all(
        &mut self,
        at: DocumentAt,
        findings: Vec<Finding>,
    ) -> Option<(Place, String)> {
        let mut first = None;
        for finding in findings {
            let is_error = finding.is_error();
            let what = self.report(at, finding);
            if is_error && first.is_none() {
                first = Some(what);
            }
        }
        first
    }

    /// Notes that objects of the file are not known. Only the first reason is kept; one is enough.
    fn unread(&mut self, place: Place, reason: String) {
        self.facts.unread.get_or_insert(Unread { place, reason });
    }

    /// Reads a document in the light of the file's role.
    fn document(&mut self, role: Role<'_>, document: Document) {
        let at = DocumentAt {
            index: document.index,
            line: document.line,
        };
        match role {
            Role::Settings => settings::read_settings(self, at, &document.value),
            Role::Component { component } => {
                let name = ComponentName::folder(component)
                    .expect("files of folders with bad names are not read");
                self.component_document(&name, at, document.value);
            }
            Role::Module { module, landscape } => {
                module::read_module_document(self, &known(module), landscape, at, document.value);
            }
            Role::Version { module, version } => {
                module::read_version_document(self, &known(module), version, at, document.value);
            }
            Role::Migrations(_) => read_migration(self, at, document.value),
            _ => unreachable!("only files with these roles are read"),
        }
    }

    fn component_document(&mut self, component: &ComponentName, at: DocumentAt, value: Value) {
        match kind_of(&value) {
            Ok((api_version, "Component")) if group_and_version(api_version).0 == GROUP => {
                settings::read_component(self, at, &value, &COMPONENT_SETTINGS);
            }
            _ => self.object(component, at, value, &pointer![]),
        }
    }

    /// Reads an object of a component, or each object of a list.
    fn object(&mut self, component: &ComponentName, at: DocumentAt, value: Value, base: &Pointer) {
        let value = match list_items(value) {
            Ok(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    let mut base = base.clone();
                    base.extend(pointer!["items", index]);
                    self.object(component, at, item, &base);
                }
                return;
            }
            Err(value) => value,
        };
        let identity = match check_belongs_here(&value).and_then(|()| identify(&value)) {
            Ok(identity) => identity,
            Err(finding) => {
                let (place, message) = self.report(at, finding.below(base));
                self.unread(place, message);
                return;
            }
        };
        let findings = check(&value, &identity);
        let findings = findings.into_iter().map(|it| it.below(base)).collect();
        if let Some((place, message)) = self.report_all(at, findings) {
            let key = identity.key();
            self.facts.objects.push(FileObject::Held {
                key,
                place,
                message,
            });
            return;
        }
        let unscoped = identity.scope().is_none().then(|| {
            let mut pointer = base.clone();
            pointer.push("metadata".into());
            let metadata = match identity.namespace {
                None => self.text.place(at, &pointer, Part::Key),
                Some(_) => self.text.start(at),
            };
            Unscoped {
                metadata,
                at,
                base: base.clone(),
            }
        });
        let Value::Object(mut body) = value else {
            unreachable!("what has a kind is a mapping");
        };
        normalise(&mut body, &identity.kind);
        let finish = Finish {
            source: &self.options.source,
            component,
            place: self.text.start(at),
            annotations: Vec::new(),
        };
        let key = identity.key();
        let object = Arc::new(finish.object(body, identity.version, key));
        self.facts.custom_kinds.extend(CustomKind::of(&object));
        self.facts
            .objects
            .push(FileObject::Ready { object, unscoped });
    }

    /// Checks a document that is not applied by this target, but by whoever installs the module.
    pub(super) fn foreign_manifest(&mut self, at: DocumentAt, value: Value, base: &Pointer) {
        let value = match list_items(value) {
            Ok(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    let mut base = base.clone();
                    base.extend(pointer!["items", index]);
                    self.foreign_manifest(at, item, &base);
                }
                return;
            }
            Err(value) => value,
        };
        let mut findings = Vec::new();
        match kind_of(&value) {
            Err(finding) => findings.push(finding),
            Ok((api_version, kind)) => {
                if value
                    .pointer("/metadata/name")
                    .is_none_or(|name| !name.is_string())
                {
                    findings.push(
                        Finding::error(
                            Code::SchemaViolation,
                            pointer!["metadata"],
                            format!("this {kind} has no `metadata.name`"),
                        )
                        .at_key(),
                    );
                }
                check_hooks(&value, &mut findings);
                if (api_version, kind) == ("v1", "Secret") {
                    check_secret(&value, &mut findings);
                }
            }
        }
        let findings = findings.into_iter().map(|it| it.below(base)).collect();
        self.report_all(at, findings);
    }

    /// Adds a definition.
    pub(super) fn define(&mut self, definition: Definition) {
        self.facts.definitions.push(definition);
    }
}

/// Returns the items of a list as kubectl expands it, or the value itself.
fn list_items(mut value: Value) -> Result<Vec<Value>, Value> {
    let is_list = matches!(value.get("kind"), Some(Value::String(kind)) if kind.ends_with("List"));
    match value.get_mut("items") {
        Some(Value::Array(items)) if is_list => Ok(std::mem::take(items)),
        _ => Err(value),
    }
}

fn known(module: &str) -> ModuleName {
    ModuleName::new(module).expect("files of folders with bad names are not read")
}

/// Refuses kinds that other places of the repository are for.
fn check_belongs_here(value: &Value) -> Result<(), Finding> {
    let (api_version, kind) = kind_of(value)?;
    let (message, help) = match (group_and_version(api_version).0, kind) {
        (KYMA_GROUP, "ModuleReleaseMeta" | "ModuleTemplate") => (
            format!("a {kind} is not part of a component"),
            "put it below `modules/NAME/`, where the rules on channels hold",
        ),
        (GROUP, kind) if DEFINITION_KINDS.contains(&kind) => (
            format!("a {kind} is a definition, which no cluster knows"),
            match kind {
                "Repository" => "put it into `fairway.yaml` at the top of the repository",
                "ReleaseGraph" => "put it into `modules/NAME/release-graph.yaml`",
                "Migration" => {
                    "put it into components/NAME/migrations/, modules/NAME/migrations/ or migrations/"
                }
                _ => "this release of Fairway does not read this kind yet",
            },
        ),
        _ => return Ok(()),
    };
    Err(Finding::error(Code::KindUnknown, pointer!["kind"], message).help(help))
}
