use std::sync::Arc;

use serde_json::json;

use crate::desired::CatalogModule;
use crate::desired::{CatalogVersion, Desired, Edge, UpgradePolicy};
use crate::model::{Digest, ModuleName, names};
use crate::model::{ModuleVersion, Place};
use crate::plan::testing::*;

const META: &str = "ModuleReleaseMeta.operator.kyma-project.io kcp-system/telemetry";

/// A repository with these versions, and the channel `regular` at one of them.
fn repository(versions: &[&str], regular: &str) -> Desired {
    let templates = versions.iter().map(|version| template(version));
    let mut wanted = desired(templates.chain([release(&[("regular", regular)])]));
    let mut module = CatalogModule::default();
    for version in versions {
        let known = CatalogVersion {
            version: ModuleVersion::parse(version).unwrap(),
            digest: Digest::from_text("v1:0"),
            files: Vec::new(),
            is_mandatory: false,
            place: Place::whole_file("x"),
        };
        module
            .versions
            .insert((*version).to_owned(), Arc::new(known));
    }
    let name = ModuleName::new("telemetry").unwrap();
    wanted.catalog.modules.insert(name, module);
    wanted
}

const VERSIONS: &[&str] = &["1.0.0", "1.1.0", "1.2.0"];

fn moved(from: &str, wanted: &Desired) -> (Vec<String>, Vec<String>) {
    let plan = Cluster::with(&repository(VERSIONS, from), wanted).plan(wanted);
    (changes(&plan), holds(&plan))
}

#[test]
fn a_channel_moves_one_hop() {
    let (changes, holds) = moved("1.0.0", &repository(VERSIONS, "1.1.0"));
    assert_eq!(changes, [format!("configured {META}")]);
    assert_eq!(holds, [""; 0]);
}

#[test]
fn a_channel_that_goes_back_freezes_its_release_with_the_ways_out() {
    let wanted = repository(VERSIONS, "1.0.0");
    let plan = Cluster::with(&repository(VERSIONS, "1.1.0"), &wanted).plan(&wanted);
    assert!(plan.is_empty());
    assert_eq!(holds(&plan), [format!("Channel {META}")]);
    insta::assert_snapshot!(plan.explain());
}

#[test]
fn a_channel_that_skips_versions_is_held_where_the_policy_is_linear() {
    let mut wanted = repository(VERSIONS, "1.2.0");
    assert_eq!(moved("1.0.0", &wanted).1, [format!("Channel {META}")]);
    wanted.settings.upgrades = UpgradePolicy::Direct;
    assert_eq!(moved("1.0.0", &wanted).0, [format!("configured {META}")]);
}

#[test]
fn an_edge_of_the_graph_allows_a_way_back() {
    let mut wanted = repository(VERSIONS, "1.0.0");
    let module = wanted.catalog.modules.values_mut().next().unwrap();
    module.graph.edges.push(Edge {
        from: "1.2.0".to_owned(),
        to: "1.0.0".to_owned(),
    });
    assert_eq!(moved("1.2.0", &wanted).0, [format!("configured {META}")]);
}

#[test]
fn a_published_version_with_another_content_is_held_and_its_channel_is_not() {
    let mut base = repository(VERSIONS, "1.0.0");
    let wanted = repository(VERSIONS, "1.1.0");
    let telemetry = base
        .components
        .get_mut(&component("modules/telemetry"))
        .unwrap();
    let key = "ModuleTemplate.operator.kyma-project.io kcp-system/telemetry-1.1.0";
    telemetry.objects[1] = object(
        "modules/telemetry",
        key,
        json!({"metadata": {"annotations": {names::ANNOTATION_VERSION_DIGEST: "v1:before"}}}),
    );
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(holds(&plan), [format!("VersionChanged {key}")]);
    // What is published under that version is there, as it always was.
    assert_eq!(changes(&plan), [format!("configured {META}")]);
}
