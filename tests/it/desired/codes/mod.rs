//! Every diagnostic code of this stage, each with the exact place.

mod migrations;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fairway::desired::compare_with_base;
use fairway::model::{Code, EntryKind, limits};

use super::{Tree, findings, listing, release_meta};

/// A repository that a code is found in; with a base, the code is about the change.
struct Case {
    code: Code,
    what: &'static str,
    base: Option<Tree>,
    head: Tree,
}

fn alone(code: Code, what: &'static str, head: Tree) -> Case {
    Case {
        code,
        what,
        base: None,
        head,
    }
}

fn change(code: Code, what: &'static str, base: Tree, head: Tree) -> Case {
    Case {
        code,
        what,
        base: Some(base),
        head,
    }
}

/// A repository without findings.
fn good() -> Tree {
    Tree::default()
        .config_map("ingress", "settings")
        .version("keda", "1.0.0")
        .version("keda", "1.1.0")
        .version("keda", "1.2.0")
        .channels("keda", &[("regular", "1.0.0"), ("fast", "1.1.0")])
}

/// The good repository with one more file in component `ingress`.
fn with(content: &str) -> Tree {
    good().file("components/ingress/more.yaml", content)
}

fn graph(text: &str) -> String {
    format!("apiVersion: fairway.dev/v1alpha1\nkind: ReleaseGraph\n{text}")
}

fn component(text: &str) -> String {
    format!("apiVersion: fairway.dev/v1alpha1\nkind: Component\n{text}")
}

const META: &str = "modules/keda/module-release-meta.yaml";
const TEMPLATE: &str = "modules/keda/1.2.0/module-template.yaml";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: token, namespace: a}\n";

fn files() -> Vec<Case> {
    let huge = "#".repeat(usize::try_from(limits::FILE_SIZE_MAX).expect("4 MiB") + 1);
    let deep = format!("a: {}{}\n", "[".repeat(200), "]".repeat(200));
    vec![
        alone(Code::YamlSyntax, "an open quote", with("a: 'open\n")),
        alone(
            Code::YamlSyntax,
            "in a version",
            good().file("modules/keda/1.2.0/default-config.yaml", "- a\n"),
        ),
        alone(
            Code::YamlDuplicateKey,
            "data twice",
            with("data: {}\nkind: ConfigMap\ndata: {}\n"),
        ),
        alone(Code::YamlLimit, "depth", with(&deep)),
        alone(Code::FileTooLarge, "more than 4 MiB", with(&huge)),
        alone(
            Code::PathUnsafe,
            "a link",
            good().entry("components/ingress/base", EntryKind::Symlink),
        ),
        alone(
            Code::PathUnsafe,
            "a link in place of all components",
            good().entry("components", EntryKind::Symlink),
        ),
        alone(
            Code::PathUnsafe,
            "a submodule",
            good().entry("modules/nats", EntryKind::Submodule),
        ),
        alone(
            Code::PathUnsafe,
            "a control character",
            good().file("components/ingress/a\u{7}.yaml", "a: 1\n"),
        ),
        alone(
            Code::KindUnknown,
            "no kind",
            with("apiVersion: v1\nmetadata: {name: a}\n"),
        ),
        alone(
            Code::KindUnknown,
            "a file beside the components",
            good().file("components/a.yaml", ""),
        ),
        alone(
            Code::KindUnknown,
            "a folder that is not read",
            good()
                .file("component/a/b.yaml", "")
                .file("component/c.yaml", ""),
        ),
        alone(
            Code::KindUnknown,
            "operations are not read yet",
            good().file("operations/a.yaml", ""),
        ),
        alone(
            Code::KindUnknown,
            "a ModuleReleaseMeta in a component",
            with(&release_meta("keda", &[])),
        ),
        alone(
            Code::KindUnknown,
            "a definition in a component",
            with(&graph("metadata: {name: a}\n")),
        ),
        alone(
            Code::KindUnknown,
            "another kind in fairway.yaml",
            good().file("fairway.yaml", "apiVersion: v1\nkind: ConfigMap\n"),
        ),
        alone(
            Code::KindUnknown,
            "nothing to read",
            Tree::default().file("README.md", "hello"),
        ),
    ]
}

fn objects() -> Vec<Case> {
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: a\n  namespace: b\n  annotations:\n    helm.sh/hook: pre-upgrade\n";
    let clash = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: ingress}\n";
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
               spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}}\n---\n\
               apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n";
    let schema = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
        spec:\n  group: example.com\n  scope: Cluster\n  names: {kind: Widget, plural: widgets}\n  versions:\n    - name: v1\n      served: true\n      \
        schema:\n        openAPIV3Schema:\n          type: object\n          properties:\n            spec:\n              type: object\n              \
        required: [size, shape, color]\n              properties:\n                size: {type: integer, minimum: 1}\n                \
        shape: {type: string, enum: [round, flat]}\n                color: {type: string, default: red}\n                \
        labels: {type: object, additionalProperties: {type: string}}\n                \
        port: {x-kubernetes-int-or-string: true}\n                free: {type: object, x-kubernetes-preserve-unknown-fields: true}\n";
    let widget = |version: &str, spec: &str| {
        let widget = format!(
            "{schema}---\napiVersion: example.com/{version}\nkind: Widget\nmetadata: {{name: a}}\nspec:\n{spec}"
        );
        with(&widget)
    };
    let list = "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Pod\n    metadata: {name: a, namespace: b}\n";
    vec![
        alone(
            Code::SchemaViolation,
            "generateName",
            with("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: a-\n"),
        ),
        alone(
            Code::SchemaViolation,
            "no name",
            with("apiVersion: v1\nkind: Namespace\nmetadata:\n  labels: {}\n"),
        ),
        alone(
            Code::SchemaViolation,
            "a bad name",
            with("apiVersion: v1\nkind: Namespace\nmetadata: {name: Shop}\n"),
        ),
        alone(
            Code::SchemaViolation,
            "a label without quotes",
            with(
                "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  labels:\n    enabled: true\n    b: c d\n",
            ),
        ),
        alone(Code::SchemaViolation, "a bare Pod in a list", with(list)),
        alone(
            Code::SchemaViolation,
            "a schema of the repository",
            widget(
                "v1",
                "  size: 0\n  labels: {a: 1}\n  port: http\n  free: {any: thing}\n",
            ),
        ),
        alone(
            Code::UnknownField,
            "a schema of the repository",
            widget("v1", "  size: 1\n  shape: round\n  colour: red\n"),
        ),
        alone(
            Code::SchemaViolation,
            "a version that is not served",
            widget("v2", "  size: 1\n"),
        ),
        alone(Code::DuplicateObject, "the same ConfigMap", with(clash)),
        alone(
            Code::NamespaceMissing,
            "a Deployment",
            with("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n"),
        ),
        alone(
            Code::NamespaceMissing,
            "a kind of the repository",
            with(crd),
        ),
        alone(
            Code::SecretInClear,
            "stringData",
            with(&format!("{SECRET}stringData: {{key: hunter2}}\n")),
        ),
        alone(
            Code::SchemaViolation,
            "a Secret's data",
            with(&format!("{SECRET}data:\n  key: hunter2!\n")),
        ),
        alone(Code::ForeignHook, "Helm", with(hook)),
        alone(
            Code::ForeignHook,
            "in a version",
            good().file("modules/keda/1.2.0/manifest.yaml", hook),
        ),
    ]
}

fn components() -> Vec<Case> {
    let file = "components/ingress/component.yaml";
    let settings = |text: &str| good().file(file, &component(text));
    vec![
        alone(
            Code::UnknownField,
            "component.yaml",
            settings("dependOn: []\n"),
        ),
        alone(
            Code::SchemaViolation,
            "a health timeout",
            settings("healthTimeout: 10\nversion: one\n"),
        ),
        alone(
            Code::SchemaViolation,
            "a folder's name",
            good().config_map("Ingress", "a").config_map("Ingress", "b"),
        ),
        alone(
            Code::ComponentCycle,
            "itself",
            settings("dependsOn: [ingress]\n"),
        ),
        alone(
            Code::ComponentCycle,
            "one that is not there",
            settings("dependsOn:\n  - modules/kede\n"),
        ),
        alone(
            Code::ComponentCycle,
            "a circle",
            settings("dependsOn: [shop]\n")
                .config_map("shop", "a")
                .file(
                    "components/shop/component.yaml",
                    &component("dependsOn: [ingress]\n"),
                )
                .file(
                    "components/after/component.yaml",
                    &component("dependsOn: [shop]\n"),
                ),
        ),
        alone(
            Code::DuplicateObject,
            "two Components",
            settings("version: 1.0.0\n")
                .file("components/ingress/z.yaml", &component("version: 1.0.0\n")),
        ),
    ]
}

fn modules() -> Vec<Case> {
    let meta = |text: &str| {
        good().file(
            META,
            &release_meta("keda", &[("regular", "1.0.0")]).replace("  channels:\n", text),
        )
    };
    let template = |from: &str, to: &str| {
        let tree = good();
        let text = "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\nmetadata:\n  name: keda-1.2.0\n\
             spec:\n  moduleName: keda\n  version: 1.2.0\n  descriptor: {}\n";
        assert!(text.contains(from));
        tree.file(TEMPLATE, &text.replace(from, to))
    };
    let channels = |channels: &[(&str, &str)]| good().channels("keda", channels);
    let declared = "channels:\n  regular: {}\n  fast: {suffixes: [rc]}\n";
    let stage = "modules/keda/landscapes/stage/module-release-meta.yaml";
    let mandatory =
        release_meta("keda", &[]).replace("channels:\n", "mandatory: {version: 1.0.0}\n");
    vec![
        alone(Code::UnknownField, "in a ModuleReleaseMeta", meta("  chanels:\n  channels:\n")),
        alone(Code::SchemaViolation, "a version that Kyma refuses", channels(&[("regular", "1.0.0-rc.1"), ("Fast", "1.0.0")])),
        alone(Code::SchemaViolation, "a version that is a number", channels(&[("regular", "1.0")])),
        alone(Code::SchemaViolation, "the reserved channel", channels(&[("none", "1.0.0")])),
        alone(Code::SchemaViolation, "an old API version", template("v1beta2", "v1beta1")),
        alone(Code::SchemaViolation, "no descriptor", template("  descriptor: {}\n", "")),
        alone(Code::SchemaViolation, "a module's folder", good().version("k8s", "1.0.0")),
        alone(Code::SchemaViolation, "a landscape that is not declared", good().settings("landscapes: [stage, prod]\n").file("modules/keda/landscapes/prd/module-release-meta.yaml", &release_meta("keda", &[("regular", "1.0.0")]))),
        alone(Code::SchemaViolation, "a default module that is not there", good().settings("defaultModules: [kedo]\n")),
        alone(Code::SchemaViolation, "two kinds of removal", good().settings("removals:\n  - component: a\n    object: {apiVersion: v1, kind: A, name: b}\n  - {}\n")),
        alone(Code::IdentityMismatch, "metadata.name", template("keda-1.2.0", "keda-1.2.1")),
        alone(Code::IdentityMismatch, "spec.version", template("  version: 1.2.0", "  version: 1.2.1")),
        alone(Code::IdentityMismatch, "spec.moduleName is missing", template("  moduleName: keda\n", "")),
        alone(Code::IdentityMismatch, "a folder that is no version", good().file("modules/keda/v1/module-template.yaml", "")),
        alone(Code::ChannelVersionMissing, "a version without folder", channels(&[("regular", "1.0.1")])),
        alone(Code::ChannelUndeclared, "a slip of the pen", channels(&[("regulr", "1.0.0")]).settings(declared)),
        alone(Code::ChannelDuplicate, "regular twice", channels(&[("regular", "1.0.0"), ("regular", "1.1.0")])),
        alone(Code::VersionPolicy, "a pre-release", good().version("keda", "1.3.0-rc1").channels("keda", &[("regular", "1.3.0-rc1"), ("fast", "1.3.0-rc1")]).settings(declared)),
        alone(Code::MandatoryConflict, "both", meta("  mandatory: {version: 1.0.0}\n  channels:\n")),
        alone(Code::MandatoryConflict, "neither", good().file(META, &release_meta("keda", &[]).replace("  channels:\n", ""))),
        alone(Code::MandatoryConflict, "here and not there", good().file(stage, &mandatory)),
        alone(Code::MandatoryConflict, "the ModuleTemplate", template("spec:\n", "spec:\n  mandatory: true\n").channels("keda", &[("fast", "1.2.0")])),
        alone(Code::VersionDeprecated, "a warning", meta("  versions:\n    - version: 1.0.0\n      deprecationDate: 2027-03-31\n      deprecationMessage: use 1.1\n  channels:\n")),
        alone(Code::GraphYanked, "a warning", good().file("modules/keda/release-graph.yaml", &graph("yanked:\n  - version: 1.1.0\n    reason: it loses messages\n"))),
        alone(Code::DuplicateObject, "two ModuleTemplates", good().file("modules/keda/1.2.0/second.yaml", "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\nmetadata:\n  name: keda-1.2.0\nspec:\n  moduleName: keda\n  version: 1.2.0\n  descriptor: {}\n")),
        alone(Code::DuplicateObject, "channels in both forms", good().file("modules/keda/module-releases.yaml", "ocmComponentName: kyma-project.io/module/keda\nchannels: []\n")),
    ]
}

fn changes() -> Vec<Case> {
    let moved = |channels: &[(&str, &str)]| good().channels("keda", channels);
    let yanked = graph("yanked: [{version: 1.1.0}]\n");
    let deprecated = "  versions: [{version: 1.1.0, deprecationDate: 2026-01-31}]\n  channels:\n";
    let mandatory =
        release_meta("keda", &[]).replace("channels:\n", "mandatory: {version: 1.0.0}\n");
    vec![
        change(
            Code::ChannelDowngrade,
            "fast goes back",
            good(),
            moved(&[("regular", "1.0.0"), ("fast", "1.0.0")]),
        ),
        change(
            Code::ChannelSkipsVersions,
            "regular skips 1.1",
            good(),
            moved(&[("regular", "1.2.0"), ("fast", "1.1.0")]),
        ),
        change(
            Code::GraphYanked,
            "to a yanked version",
            good(),
            moved(&[("regular", "1.1.0")]).file("modules/keda/release-graph.yaml", &yanked),
        ),
        change(
            Code::VersionInUse,
            "a version that regular has",
            good(),
            good()
                .without("modules/keda/1.0.0/")
                .channels("keda", &[("regular", "1.1.0")]),
        ),
        change(
            Code::VersionChanged,
            "a manifest",
            good(),
            good().file(
                "modules/keda/1.2.0/manifest.yaml",
                "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
            ),
        ),
        change(
            Code::VersionChanged,
            "a file more",
            good(),
            good().file("modules/keda/1.2.0/README.md", "hello"),
        ),
        change(
            Code::VersionChanged,
            "a file less",
            good(),
            good().without("modules/keda/1.2.0/manifest.yaml"),
        ),
        change(
            Code::VersionDeprecated,
            "a new assignment after the date",
            good(),
            good().file(
                META,
                &release_meta("keda", &[("regular", "1.1.0")]).replace("  channels:\n", deprecated),
            ),
        ),
        change(
            Code::RemovalUnannounced,
            "a component and a module",
            good(),
            Tree::default().config_map("shop", "a"),
        ),
        change(
            Code::MandatoryConflict,
            "channels become mandatory",
            good(),
            good().file(META, &mandatory),
        ),
    ]
}

fn cases() -> Vec<Case> {
    [
        files(),
        objects(),
        components(),
        modules(),
        migrations::cases(),
        changes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn today() -> jiff::civil::Date {
    jiff::civil::date(2026, 11, 21)
}

#[test]
fn the_good_repository_has_no_findings() {
    assert_eq!(findings(&good().evaluate()), "");
}

#[test]
fn every_code_is_found_at_its_place() {
    let mut page = String::new();
    for case in cases() {
        let head = case.head.evaluate();
        let (found, text) = match &case.base {
            None => (head.diagnostics.clone(), findings(&head)),
            Some(base) => {
                let found = compare_with_base(&base.evaluate(), &head, today());
                let text = listing(&found);
                (found, text)
            }
        };
        let name = format!("{}: {}", case.code, case.what);
        assert!(
            found.iter().any(|it| it.code == case.code),
            "{name} is not found:\n{text}"
        );
        let _ = writeln!(page, "=== {name}\n{text}");
    }
    insta::assert_snapshot!(page);
}

#[test]
fn every_code_has_a_case() {
    let found: BTreeSet<Code> = cases().into_iter().map(|case| case.code).collect();
    let missing: Vec<_> = Code::ALL
        .iter()
        .filter(|code| !found.contains(code))
        .collect();
    assert!(missing.is_empty(), "codes without a case: {missing:?}");
}
