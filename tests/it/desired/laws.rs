//! What holds for every repository.

use fairway::desired::{Cache, Desired, evaluate};
use proptest::prelude::*;

use super::{Tree, options};

/// Files that are good, bad and strange, at places that are good, bad and strange.
fn any_file() -> impl Strategy<Value = (String, String)> {
    let path = prop::sample::select(vec![
        "components/a/one.yaml",
        "components/a/two.yaml",
        "components/a/component.yaml",
        "components/b/one.yaml",
        "components/stray.yaml",
        "modules/keda/module-release-meta.yaml",
        "modules/keda/module-releases.yaml",
        "modules/keda/landscapes/stage/module-release-meta.yaml",
        "modules/keda/release-graph.yaml",
        "modules/keda/1.0.0/module-template.yaml",
        "modules/keda/1.0.0/manifest.yaml",
        "modules/keda/1.0.0/README.md",
        "modules/K8S/1.0.0/manifest.yaml",
        "fairway.yaml",
        "docs/a.yaml",
    ]);
    let content = prop::sample::select(vec![
        "",
        "a: 'open\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {a: b}\n---\nkind: ConfigMap\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\n",
        "apiVersion: fairway.dev/v1alpha1\nkind: Component\ndependsOn: [b]\n",
        "apiVersion: fairway.dev/v1alpha1\nkind: Repository\nchannels: {fast: {}}\n",
        "apiVersion: fairway.dev/v1alpha1\nkind: ReleaseGraph\nyanked: [{version: 1.0.0}]\n",
        "channels: [{channel: fast, version: 1.0.0}]\n",
        "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\nmetadata: {name: keda-1.0.0}\n\
         spec: {moduleName: keda, version: 1.0.0, descriptor: {}}\n",
        "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleReleaseMeta\nmetadata: {name: keda}\n\
         spec: {moduleName: keda, channels: [{channel: fast, version: 1.0.0}]}\n",
    ]);
    (path, content).prop_map(|(path, content)| (path.to_owned(), content.to_owned()))
}

fn any_tree() -> impl Strategy<Value = Tree> {
    prop::collection::vec(any_file(), 0..8).prop_map(|files| {
        files.iter().fold(Tree::default(), |tree, (path, content)| {
            tree.file(path, content)
        })
    })
}

/// Everything that a result says.
fn text_of(desired: &Desired) -> String {
    format!("{desired:#?}")
}

proptest! {
    #[test]
    fn what_was_read_before_changes_nothing(
        one in any_tree(),
        two in any_tree(),
        stage in any::<bool>(),
    ) {
        let options = options(stage.then_some("stage"));
        let mut cache = Cache::new();
        let cold = text_of(&evaluate(&one.snapshot(), &options, &mut cache));
        let other = text_of(&evaluate(&two.snapshot(), &options, &mut cache));
        prop_assert_eq!(&cold, &text_of(&evaluate(&one.snapshot(), &options, &mut cache)));
        prop_assert_eq!(other, text_of(&evaluate(&two.snapshot(), &options, &mut Cache::new())));
    }

    #[test]
    fn no_object_is_both_wanted_and_held(tree in any_tree()) {
        let desired = tree.evaluate();
        for object in desired.objects() {
            prop_assert!(!desired.held.contains_key(&object.key), "{}", object.key);
        }
    }

    #[test]
    fn what_is_wrong_has_a_diagnostic(tree in any_tree()) {
        let desired = tree.evaluate();
        if !desired.held.is_empty() || !desired.unread.is_empty() {
            prop_assert!(!desired.is_valid());
            prop_assert!(!desired.diagnostics.is_empty());
        }
        let mut sorted = desired.diagnostics.clone();
        sorted.sort_by(|one, two| one.place.cmp(&two.place));
        let places = |list: &[fairway::model::Diagnostic]| -> Vec<_> {
            list.iter().map(|it| it.place.clone()).collect()
        };
        prop_assert_eq!(places(&sorted), places(&desired.diagnostics));
    }
}
