//! Rules between two revisions, where they allow something.

use fairway::desired::compare_with_base;
use rstest::rstest;

use super::{Tree, listing, release_meta};

fn tree() -> Tree {
    ["1.0.0", "1.1.0", "1.2.0"]
        .iter()
        .fold(Tree::default().config_map("shop", "a"), |tree, version| {
            tree.version("keda", version)
        })
        .channels("keda", &[("regular", "1.0.0")])
}

fn compare(base: &Tree, head: &Tree) -> String {
    let today = jiff::civil::date(2026, 11, 21);
    listing(&compare_with_base(
        &base.evaluate(),
        &head.evaluate(),
        today,
    ))
}

fn graph(text: &str) -> String {
    format!("apiVersion: fairway.dev/v1alpha1\nkind: ReleaseGraph\n{text}")
}

const GRAPH: &str = "modules/keda/release-graph.yaml";

#[rstest]
#[case::nothing(tree())]
#[case::one_hop(tree().channels("keda", &[("regular", "1.1.0")]))]
#[case::a_new_channel(tree().channels("keda", &[("regular", "1.0.0"), ("fast", "1.2.0")]))]
#[case::a_channel_less(tree().channels("keda", &[]))]
#[case::an_edge(tree().channels("keda", &[("regular", "1.2.0")]).file(GRAPH, &graph("edges: [{from: 1.0.0, to: 1.2.0}]\n")))]
#[case::out_of_a_yanked_version(tree().channels("keda", &[("regular", "1.2.0")]).file(GRAPH, &graph("yanked: [{version: 1.0.0}]\n")))]
#[case::over_a_yanked_version(tree().channels("keda", &[("regular", "1.2.0")]).file(GRAPH, &graph("yanked: [{version: 1.1.0}]\n")))]
#[case::direct(tree().channels("keda", &[("regular", "1.2.0")]).settings("upgrades: {policy: Direct}\n"))]
#[case::an_unused_version_is_deleted(tree().without("modules/keda/1.2.0/"))]
#[case::an_announced_removal(tree().without("components/shop/").settings("removals: [{component: shop}]\n"))]
#[case::an_unreadable_component(tree().without("components/shop/").file("components/shop/a.yaml", "a: 'open\n"))]
fn a_change_that_is_allowed(#[case] head: Tree) {
    assert_eq!(compare(&tree(), &head), "");
}

#[test]
fn a_landscape_that_gets_channels_of_its_own_is_compared_with_the_common_ones() {
    let path = "modules/keda/landscapes/prod/module-release-meta.yaml";
    let head = tree().file(path, &release_meta("keda", &[("regular", "1.2.0")]));
    insta::assert_snapshot!(compare(&tree(), &head));
}
