use rstest::rstest;
use serde_json::json;

use crate::desired::{Desired, Removal};
use crate::model::SourceName;
use crate::plan::testing::*;

// === containers ===

const SHOP: &str = "Namespace shop";

fn shop(contents: &[&str]) -> Desired {
    let namespace = object("components/a", SHOP, json!({}));
    let contents = contents
        .iter()
        .map(|it| object("components/a", it, json!({})));
    and(staying(), std::iter::once(namespace).chain(contents))
}

#[test]
fn a_namespace_waits_with_a_count_of_what_goes_with_it() {
    let wanted = staying();
    let base = shop(&["ConfigMap shop/one", "ConfigMap shop/two"]);
    let plan = Cluster::with(&base, &wanted).plan(&wanted);
    assert_eq!(pending(&plan), [SHOP]);
    insta::assert_snapshot!(plan.pending.as_ref().unwrap().reasons[0], @"Namespace shop takes everything in it along: 2 objects of ours, and whatever others have put there");
    assert_eq!(
        changes(&plan),
        ["deleted ConfigMap shop/one", "deleted ConfigMap shop/two"]
    );
}

#[rstest]
#[case::wanted_and_there(&["ConfigMap shop/one"], &["ConfigMap shop/one"])]
#[case::wanted_and_not_there_yet(&[], &["ConfigMap shop/one"])]
fn a_namespace_that_something_wanted_lives_in_stays(
    #[case] before: &[&str],
    #[case] after: &[&str],
) {
    let contents = after.iter().map(|it| object("components/a", it, json!({})));
    let mut wanted = and(staying(), contents);
    wanted.settings.removals.push(Removal::Object(key(SHOP)));
    let plan = Cluster::with(&shop(before), &wanted).plan(&wanted);
    assert_eq!(holds(&plan), ["InUse Namespace shop"]);
    assert!(!changes(&plan).contains(&format!("deleted {SHOP}")));
}

#[test]
fn a_namespace_with_an_object_of_another_source_stays() {
    let mut wanted = staying();
    wanted.settings.removals.push(Removal::Object(key(SHOP)));
    let mut cluster = Cluster::with(&shop(&["ConfigMap shop/theirs"]), &wanted);
    cluster.change("ConfigMap shop/theirs", |live| {
        live.source = Some(SourceName::new("other").unwrap());
    });
    assert_eq!(holds(&cluster.plan(&wanted)), ["InUse Namespace shop"]);
}

#[test]
fn a_namespace_stays_while_a_kind_could_not_be_listed() {
    let mut wanted = staying();
    wanted.settings.removals.push(Removal::Object(key(SHOP)));
    let mut cluster = Cluster::with(&shop(&[]), &wanted);
    cluster.unlist("Secret");
    assert_eq!(
        holds(&cluster.plan(&wanted)),
        ["PruneUnsafe Namespace shop", "Unobserved Secret"]
    );
}

#[test]
fn an_announced_namespace_waits_for_a_claim_in_it_that_waits() {
    let mut wanted = staying();
    wanted.settings.removals.push(Removal::Object(key(SHOP)));
    let claim = "PersistentVolumeClaim shop/data";
    let plan = Cluster::with(&shop(&[claim]), &wanted).plan(&wanted);
    assert_eq!(pending(&plan), [SHOP, claim]);
    assert!(plan.is_empty());
}

#[test]
fn custom_resources_go_before_their_definition_and_namespaces_last() {
    let definition = "CustomResourceDefinition.apiextensions.k8s.io carts.shop.dev";
    let mut wanted = staying();
    for announced in [SHOP, definition] {
        wanted
            .settings
            .removals
            .push(Removal::Object(key(announced)));
    }
    let base = shop(&[definition, "Cart.shop.dev shop/mine", "ConfigMap shop/one"]);
    let mut cluster = Cluster::with(&base, &wanted);
    serve_all(&mut cluster);
    assert_eq!(
        changes(&cluster.plan(&wanted)),
        [
            "deleted Cart.shop.dev shop/mine".to_owned(),
            "deleted ConfigMap shop/one".to_owned(),
            format!("deleted {definition}"),
            format!("deleted {SHOP}"),
        ]
    );
}

#[test]
fn a_definition_whose_kind_is_not_known_stays() {
    let definition = "CustomResourceDefinition.apiextensions.k8s.io carts.shop.dev";
    let mut wanted = staying();
    wanted
        .settings
        .removals
        .push(Removal::Object(key(definition)));
    let plan = Cluster::with(&shop_with(definition), &wanted).plan(&wanted);
    assert_eq!(holds(&plan), [format!("PruneUnsafe {definition}")]);
}

fn shop_with(object_key: &str) -> Desired {
    and(staying(), [object("components/a", object_key, json!({}))])
}

// === catalogs ===

const OLD: &str = "ModuleTemplate.operator.kyma-project.io kcp-system/telemetry-1.0.0";
const META: &str = "ModuleReleaseMeta.operator.kyma-project.io kcp-system/telemetry";

fn catalog(versions: &[&str], regular: &str) -> Desired {
    let templates = versions.iter().map(|version| template(version));
    and(
        staying(),
        templates.chain([release(&[("regular", regular)])]),
    )
}

#[test]
fn a_template_goes_when_no_channel_names_it() {
    let wanted = catalog(&["1.0.1"], "1.0.1");
    let plan = Cluster::with(&catalog(&["1.0.0", "1.0.1"], "1.0.1"), &wanted).plan(&wanted);
    assert_eq!(changes(&plan), [format!("deleted {OLD}")]);
}

#[test]
fn a_template_stays_until_the_live_channel_has_moved() {
    let wanted = catalog(&["1.0.1"], "1.0.1");
    let mut cluster = Cluster::with(&catalog(&["1.0.0", "1.0.1"], "1.0.0"), &wanted);
    let first = cluster.plan(&wanted);
    assert_eq!(changes(&first), [format!("configured {META}")]);
    assert_eq!(holds(&first), [format!("InUse {OLD}")]);
    cluster.carry_out(&first);
    assert_eq!(changes(&cluster.plan(&wanted)), [format!("deleted {OLD}")]);
}

#[test]
fn a_template_that_git_names_in_a_channel_stays() {
    let wanted = catalog(&["1.0.1"], "1.0.0");
    let mut cluster = Cluster::with(&catalog(&["1.0.0", "1.0.1"], "1.0.1"), &wanted);
    cluster.change(META, |live| {
        live.channels = Some(std::collections::BTreeMap::default());
    });
    assert!(holds(&cluster.plan(&wanted)).contains(&format!("InUse {OLD}")));
}

#[test]
fn templates_stay_while_it_is_not_known_what_a_live_release_names() {
    let wanted = catalog(&["1.0.1"], "1.0.1");
    let mut cluster = Cluster::with(&catalog(&["1.0.0", "1.0.1"], "1.0.0"), &wanted);
    cluster.change(META, |live| live.channels = None);
    assert_eq!(holds(&cluster.plan(&wanted)), [format!("InUse {OLD}")]);
}

#[test]
fn a_module_that_disappears_waits_and_goes_release_first() {
    let mut wanted = staying();
    let cluster = Cluster::with(&catalog(&["1.0.0"], "1.0.0"), &wanted);
    assert_eq!(pending(&cluster.plan(&wanted)), [META, OLD]);
    wanted
        .settings
        .removals
        .push(Removal::Component(component("modules/telemetry")));
    let plan = cluster.plan(&wanted);
    assert_eq!(
        changes(&plan),
        [format!("deleted {META}"), format!("deleted {OLD}")]
    );
    assert_eq!(plan.phases[1][0].requires, [key(META)]);
}

#[test]
fn an_announced_template_waits_where_the_release_that_names_it_waits() {
    let mut wanted = staying();
    wanted.settings.removals.push(Removal::Object(key(OLD)));
    let plan = Cluster::with(&catalog(&["1.0.0"], "1.0.0"), &wanted).plan(&wanted);
    assert_eq!(pending(&plan), [META, OLD]);
    assert!(plan.is_empty());
}

#[test]
fn a_release_of_another_source_keeps_a_template_in_use() {
    let wanted = staying();
    let mut cluster = Cluster::with(&catalog(&["1.0.0"], "1.0.0"), &wanted);
    cluster.change(META, |live| {
        live.source = Some(SourceName::new("other").unwrap());
    });
    assert_eq!(holds(&cluster.plan(&wanted)), [format!("InUse {OLD}")]);
}

// === who uses a template beside channels ===

#[rstest]
#[case::nobody(Ok(&[][..]), &["deleted"], &[])]
#[case::a_kyma(Ok(&["kcp-system/telemetry-1.0.0"][..]), &[], &["InUse"])]
#[case::another_version(Ok(&["kcp-system/telemetry-1.1.0"][..]), &["deleted"], &[])]
#[case::not_known(Err("forbidden"), &[], &["PruneUnsafe"])]
fn a_template_goes_only_when_no_kyma_and_no_manifest_uses_it(
    #[case] users: Result<&[&str], &str>,
    #[case] changed: &[&str],
    #[case] held: &[&str],
) {
    let wanted = and(
        staying(),
        [template("1.1.0"), release(&[("regular", "1.1.0")])],
    );
    let base = and(wanted.clone(), [template("1.0.0")]);
    let mut cluster = Cluster::with(&base, &wanted);
    assert!(cluster.plan(&wanted).deletes_templates());
    let words = |name: &&str| ((*name).to_owned(), "Kyma kcp/one uses it".to_owned());
    let users = users.map(|names| names.iter().map(words).collect());
    cluster.template_users = Some(users.map_err(str::to_owned));
    let plan = cluster.plan(&wanted);
    let words: Vec<String> = plan
        .actions()
        .map(|action| action.explain().change.to_string())
        .collect();
    assert_eq!(words, changed);
    let reasons: Vec<&str> = plan.holds.iter().map(|it| it.reason.as_str()).collect();
    assert_eq!(reasons, held);
}
