use serde_json::json;

use super::*;
use crate::fleet::{ChangedChannels, ModuleUse, RuntimeName};
use crate::model::names::LABEL_RUNTIME;
use crate::model::{Place, Revision};

fn object(kind: &str, name: &str, labels: &Value, spec: &Value) -> Arc<DesiredObject> {
    let key = ObjectKey::new(GroupKind::new(KYMA_GROUP, kind), Some("kcp-system"), name);
    let mut all = labels.clone();
    all["fairway.dev/source"] = json!("modules");
    let body = json!({
        "apiVersion": "operator.kyma-project.io/v1beta2", "kind": kind,
        "metadata": {"name": name, "namespace": "kcp-system", "labels": all, "annotations": {}},
        "spec": spec,
    });
    let place = Place::whole_file(format!("modules/telemetry/{name}.yaml"));
    let component = "modules/telemetry".parse().unwrap();
    Arc::new(DesiredObject::sealed(
        body,
        "v1beta2".to_owned(),
        key,
        component,
        place,
    ))
}

fn template(version: &str, labels: &Value) -> Arc<DesiredObject> {
    object(
        "ModuleTemplate",
        &format!("telemetry-{version}"),
        labels,
        &json!({"version": version}),
    )
}

fn release(channels: &[(&str, &str)]) -> Arc<DesiredObject> {
    let entries = channels
        .iter()
        .map(|(channel, version)| json!({"channel": channel, "version": version}));
    object(
        "ModuleReleaseMeta",
        "telemetry",
        &json!({}),
        &json!({"channels": entries.collect::<Vec<_>>()}),
    )
}

fn published(objects: Vec<Arc<DesiredObject>>) -> Published {
    let component = DesiredComponent {
        objects,
        ..DesiredComponent::default()
    };
    Published {
        desired: Arc::new(Desired {
            components: [("modules/telemetry".parse().unwrap(), component)].into(),
            ..Desired::nothing(Revision::commit("main", "1"))
        }),
        commit: CommitInfo::default(),
        not_on_home: BTreeSet::new(),
    }
}

fn everything() -> Published {
    published(vec![
        template("1.0.0", &json!({})),
        template("1.1.0", &json!({})),
        template("1.2.0-beta", &json!({LABEL_KYMA_BETA: "true"})),
        template("1.3.0-inside", &json!({LABEL_KYMA_INTERNAL: "true"})),
        release(&[
            ("regular", "1.1.0"),
            ("fast", "1.2.0-beta"),
            ("experimental", "1.3.0-inside"),
            ("rapid", "9.9.9"),
        ]),
    ])
}

fn kyma() -> Kyma {
    Kyma {
        name: RuntimeName::new("one").unwrap(),
        beta: false,
        internal: false,
        skip: false,
        modules: BTreeMap::new(),
    }
}

fn names(catalog: &RuntimeCatalog) -> Vec<String> {
    catalog
        .desired
        .objects()
        .map(|object| object.key.to_string())
        .collect()
}

fn channels(catalog: &RuntimeCatalog) -> Vec<String> {
    let release = catalog
        .desired
        .objects()
        .find(|object| object.key.kind.kind == "ModuleReleaseMeta");
    let Some(release) = release else {
        return Vec::new();
    };
    let entries = release.body["spec"]["channels"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["channel"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn lifecycle_managers_truth_table_decides_what_a_runtime_sees() {
    for (beta, internal, seen) in [
        (false, false, vec!["regular"]),
        (true, false, vec!["regular", "fast"]),
        (false, true, vec!["regular", "experimental"]),
        (true, true, vec!["regular", "fast", "experimental"]),
    ] {
        let kyma = Kyma {
            beta,
            internal,
            ..kyma()
        };
        let catalog = render(&everything(), &kyma, "kyma-system");
        assert_eq!(channels(&catalog), seen, "beta {beta}, internal {internal}");
        // One template for each channel, and nothing that no channel names.
        assert_eq!(names(&catalog).len(), seen.len() + 1);
        assert_eq!(catalog.left_out.len(), 4 - seen.len());
    }
}

#[test]
fn what_is_left_out_says_why() {
    let catalog = render(&everything(), &kyma(), "kyma-system");
    let words: Vec<String> = catalog
        .left_out
        .iter()
        .map(|one| format!("{}: {}", one.what, one.reason))
        .collect();
    insta::assert_snapshot!(words.join("\n"), @r"
    modules/telemetry in fast: 1.2.0-beta is beta, and the Kyma is not labelled operator.kyma-project.io/beta=true
    modules/telemetry in experimental: 1.3.0-inside is internal, and the Kyma is not labelled operator.kyma-project.io/internal=true
    modules/telemetry in rapid: home has no ModuleTemplate telemetry-9.9.9
    ");
}

#[test]
fn objects_are_homes_but_for_their_place_and_labels() {
    let catalog = render(&everything(), &kyma(), "elsewhere");
    for object in catalog.desired.objects() {
        assert_eq!(object.key.namespace.as_deref(), Some("elsewhere"));
        assert_eq!(object.label(LABEL_KYMA_MANAGED_BY), Some("kyma"));
        assert_eq!(object.label(LABEL_RUNTIME), Some("one"));
        assert_eq!(
            object.annotation(ANNOTATION_DIGEST),
            Some(object.digest.as_str())
        );
        assert_ne!(catalog.home_digests[&object.key], object.digest.to_string());
    }
    let again = render(&everything(), &kyma(), "elsewhere");
    assert!(
        catalog.desired.objects().eq(again.desired.objects()),
        "the same, byte for byte"
    );
}

#[test]
fn a_mandatory_module_and_one_without_channels_are_in_no_catalog() {
    let mandatory = object(
        "ModuleReleaseMeta",
        "telemetry",
        &json!({}),
        &json!({"mandatory": {"version": "1.0.0"}}),
    );
    let catalog = render(
        &published(vec![template("1.0.0", &json!({})), mandatory]),
        &kyma(),
        "kyma-system",
    );
    assert_eq!(names(&catalog), [""; 0]);
    assert_eq!(
        catalog.left_out[0].reason,
        "a mandatory module is in no catalog"
    );
    let hidden = published(vec![
        template("1.2.0-beta", &json!({LABEL_KYMA_BETA: "true"})),
        release(&[("fast", "1.2.0-beta")]),
    ]);
    assert_eq!(names(&render(&hidden, &kyma(), "kyma-system")), [""; 0]);
}

#[test]
fn a_version_that_is_installed_stays_while_the_runtime_may_see_it() {
    let with = |version: &str| {
        let used = ModuleUse {
            channel: "regular".to_owned(),
            version: Some(version.to_owned()),
        };
        let kyma = Kyma {
            modules: [("telemetry".to_owned(), used)].into(),
            ..kyma()
        };
        let catalog = render(&everything(), &kyma, "kyma-system");
        names(&catalog)
            .iter()
            .any(|name| name.ends_with(&format!("telemetry-{version}")))
    };
    assert!(with("1.0.0"));
    assert!(!with("1.2.0-beta"));
    assert!(!with("0.9.0"));
}

#[test]
fn what_home_does_not_have_is_frozen_on_the_runtime() {
    let template = everything().desired.objects().nth(1).unwrap().key.clone();
    let release = everything().desired.objects().last().unwrap().key.clone();
    for missing in [template, release] {
        let mut published = everything();
        published.not_on_home.insert(missing.clone());
        let catalog = render(&published, &kyma(), "kyma-system");
        assert_eq!(names(&catalog), [""; 0], "{missing}");
        let (key, hold) = catalog.desired.held.first_key_value().unwrap();
        assert_eq!(
            key.to_string(),
            "ModuleReleaseMeta.operator.kyma-project.io kyma-system/telemetry"
        );
        assert_eq!(hold.reason, HoldReason::Requires);
        assert!(
            !catalog.desired.unread.is_empty(),
            "nothing is pruned meanwhile"
        );
    }
}

#[test]
fn a_release_that_git_holds_is_frozen_on_the_runtime() {
    let mut published = published(vec![template("1.0.0", &json!({}))]);
    let key = release(&[]).key.clone();
    let hold = Hold {
        what: key.to_string(),
        reason: HoldReason::Invalid,
        message: "the file is broken".to_owned(),
        place: Some(Place::whole_file(
            "modules/telemetry/module-release-meta.yaml",
        )),
    };
    let mut desired = published.desired.as_ref().clone();
    desired.held.insert(key, hold);
    published.desired = Arc::new(desired);
    let catalog = render(&published, &kyma(), "kyma-system");
    assert_eq!(catalog.desired.held.len(), 1);
    assert!(!catalog.desired.unread.is_empty());
}

#[test]
fn only_users_of_what_has_changed_are_concerned() {
    let moved = published(vec![
        template("1.0.0", &json!({})),
        template("1.1.0", &json!({})),
        release(&[("regular", "1.0.0"), ("fast", "1.1.0")]),
    ]);
    let before = published(vec![
        template("1.0.0", &json!({})),
        template("1.1.0", &json!({})),
        release(&[("regular", "1.0.0"), ("fast", "1.0.0")]),
    ]);
    let user = |channel: &str| {
        let used = ModuleUse {
            channel: channel.to_owned(),
            version: None,
        };
        Kyma {
            modules: [("telemetry".to_owned(), used)].into(),
            ..kyma()
        }
    };
    let changed = ChangedChannels::between(&before, &moved);
    assert!(changed.concern(&user("fast")));
    assert!(!changed.concern(&user("regular")));
    assert!(!changed.concern(&kyma()));
    assert_eq!(
        ChangedChannels::between(&moved, &moved),
        ChangedChannels::default()
    );
    // A channel that goes concerns those who follow it.
    assert!(ChangedChannels::between(&moved, &published(vec![])).concern(&user("regular")));
}
