//! What `component.yaml` says of a module, which stands in a folder of its own.

use fairway::desired::{Desired, OnRemove};
use fairway::model::Code;
use rstest::rstest;

use super::{Tree, findings};

fn keda() -> Tree {
    Tree::default()
        .version("keda", "1.0.0")
        .channels("keda", &[("regular", "1.0.0")])
}

fn component(text: &str) -> String {
    format!("apiVersion: fairway.dev/v1alpha1\nkind: Component\n{text}")
}

fn on_remove(desired: &Desired) -> OnRemove {
    let name = "modules/keda".parse().unwrap();
    desired.components[&name].on_remove
}

#[test]
fn a_module_says_what_becomes_of_its_migrations_when_it_is_removed() {
    let silent = keda().evaluate();
    assert_eq!(on_remove(&silent), OnRemove::Keep);
    let objects = |desired: &Desired| -> usize {
        desired.components.values().map(|it| it.objects.len()).sum()
    };
    let tree = keda().file(
        "modules/keda/component.yaml",
        &component("onRemove: Undo\n"),
    );
    let says = tree.evaluate();
    assert!(says.is_valid(), "{}", findings(&says));
    assert_eq!(on_remove(&says), OnRemove::Undo);
    assert_eq!(objects(&says), objects(&silent));
}

#[rstest]
#[case::what_its_channels_say("component.yaml", "version: 1.0.0\n", Code::UnknownField)]
#[case::an_order("component.yaml", "dependsOn: [modules/keda]\n", Code::UnknownField)]
#[case::another_word("component.yaml", "onRemove: Perhaps\n", Code::SchemaViolation)]
#[case::no_yaml("component.yaml", "onRemove: [\n", Code::YamlSyntax)]
#[case::twice(
    "component.yaml",
    "onRemove: Undo\n---\napiVersion: fairway.dev/v1alpha1\nkind: Component\n",
    Code::DuplicateObject
)]
fn what_is_wrong_says_nothing_about_the_removal(
    #[case] file: &str,
    #[case] text: &str,
    #[case] code: Code,
) {
    let tree = keda().file(&format!("modules/keda/{file}"), &component(text));
    let desired = tree.evaluate();
    let codes: Vec<Code> = desired.diagnostics.iter().map(|it| it.code).collect();
    assert!(codes.contains(&code), "{}", findings(&desired));
    assert_eq!(on_remove(&desired), OnRemove::Unread);
    // Nobody knows what of it is meant.
    assert!(!desired.held.is_empty());
}

#[test]
fn a_landscape_has_no_say_in_it() {
    let file = "modules/keda/landscapes/stage/component.yaml";
    let desired = keda().file(file, &component("onRemove: Undo\n")).evaluate();
    let codes: Vec<Code> = desired.diagnostics.iter().map(|it| it.code).collect();
    assert!(codes.contains(&Code::KindUnknown), "{}", findings(&desired));
    assert_eq!(on_remove(&desired), OnRemove::Keep);
}
