use serde_json::{Value, json};

use super::patches::{applied, patched};
use super::*;
use crate::model::migration::{Lookup, MissingKind, PatchType, Propagation};
use crate::runs::{Deletion, EffectError, Effects, ObjectPatch, Removed, RunStore};

fn kind(api_version: &str, kind: &str) -> ResourceKind {
    ResourceKind {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
    }
}

fn config_map(name: &str, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "a", "name": name},
    });
    json_patch::merge(&mut object, more);
    object
}

fn patch(name: &str, uid: &str, body: Value) -> ObjectPatch {
    ObjectPatch {
        kind: kind("v1", "ConfigMap"),
        namespace: Some("a".to_owned()),
        name: name.to_owned(),
        subresource: None,
        form: PatchType::Merge,
        body,
        uid: uid.to_owned(),
        resource_version: None,
    }
}

fn uid_of(world: &Memory, name: &str) -> String {
    let object = world
        .object(&kind("v1", "ConfigMap"), Some("a"), name)
        .unwrap();
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_patch_needs_the_object_that_was_seen() {
    let world = Memory::default();
    world.put(config_map("one", &json!({"data": {"x": "1"}})));
    let uid = uid_of(&world, "one");
    let changed = world
        .patch(&patch("one", &uid, json!({"data": {"x": "2"}})))
        .await
        .unwrap();
    assert_eq!(changed["data"]["x"], "2");

    let mut stale = patch("one", &uid, json!({"data": {"x": "3"}}));
    stale.resource_version = Some("1".to_owned());
    assert!(matches!(
        world.patch(&stale).await,
        Err(EffectError::Conflict(_))
    ));
    assert!(matches!(
        world.patch(&patch("one", "another", json!({}))).await,
        Err(EffectError::Conflict(_))
    ));
    assert!(matches!(
        world.patch(&patch("two", &uid, json!({}))).await,
        Err(EffectError::NotFound(_))
    ));
}

#[tokio::test]
async fn a_patch_that_changes_nothing_is_no_effect() {
    let world = Memory::default();
    world.put(config_map("one", &json!({"data": {"x": "1"}})));
    let uid = uid_of(&world, "one");
    let before = world.object(&kind("v1", "ConfigMap"), Some("a"), "one");
    world
        .patch(&patch("one", &uid, json!({"data": {"x": "1"}})))
        .await
        .unwrap();
    assert_eq!(
        world.object(&kind("v1", "ConfigMap"), Some("a"), "one"),
        before
    );
    assert!(!world.log()[0].changed);
}

#[tokio::test]
async fn a_finalizer_of_kubernetes_goes_by_itself_and_another_one_does_not() {
    let world = Memory::default();
    for (name, finalizer) in [
        ("ours", "kubernetes.io/pvc-protection"),
        ("theirs", "example.com/x"),
    ] {
        world.put(config_map(
            name,
            &json!({"metadata": {"finalizers": [finalizer]}}),
        ));
        let deletion = Deletion {
            kind: kind("v1", "ConfigMap"),
            namespace: Some("a".to_owned()),
            name: name.to_owned(),
            uid: uid_of(&world, name),
            resource_version: None,
            propagation: Propagation::Background,
        };
        assert_eq!(world.delete(&deletion).await, Ok(Removed::Accepted));
    }
    let see = async |name| {
        let seen = world.get(&kind("v1", "ConfigMap"), Some("a"), name).await;
        seen.unwrap()
    };
    assert!(
        see("ours").await.is_some(),
        "a deletion with a finalizer shows"
    );
    assert!(see("ours").await.is_none());
    assert!(see("theirs").await.is_some());
    let uid = uid_of(&world, "theirs");
    world
        .patch(&patch(
            "theirs",
            &uid,
            json!({"metadata": {"finalizers": null}}),
        ))
        .await
        .unwrap();
    assert!(see("theirs").await.is_none());
}

#[tokio::test]
async fn what_is_owned_goes_or_stays_as_the_propagation_says() {
    for (propagation, stays) in [
        (Propagation::Orphan, true),
        (Propagation::Background, false),
    ] {
        let world = Memory::default();
        world.put(config_map("owner", &json!({})));
        let uid = uid_of(&world, "owner");
        world.put(config_map(
            "owned",
            &json!({"metadata": {"ownerReferences": [{"uid": uid}]}}),
        ));
        let deletion = Deletion {
            kind: kind("v1", "ConfigMap"),
            namespace: Some("a".to_owned()),
            name: "owner".to_owned(),
            uid,
            resource_version: None,
            propagation,
        };
        world.delete(&deletion).await.unwrap();
        let owned = world.object(&kind("v1", "ConfigMap"), Some("a"), "owned");
        assert_eq!(owned.is_some(), stays);
        assert_eq!(world.delete(&deletion).await, Ok(Removed::AlreadyGone));
    }
}

#[tokio::test]
async fn a_list_comes_in_pages_and_by_labels() {
    let world = Memory::default();
    for number in 0..5 {
        let tier = if number % 2 == 0 { "even" } else { "odd" };
        world.put(config_map(
            &format!("m{number}"),
            &json!({"metadata": {"labels": {"tier": tier}}}),
        ));
    }
    let maps = kind("v1", "ConfigMap");
    let first = world
        .list(&maps, None, Some("tier=even"), (2, None))
        .await
        .unwrap();
    assert_eq!(first.objects.len(), 2);
    let rest = world
        .list(&maps, None, Some("tier=even"), (2, first.next.as_deref()))
        .await
        .unwrap();
    assert_eq!(rest.objects[0]["metadata"]["name"], "m4");
    assert_eq!((rest.objects.len(), rest.next), (1, None));

    let mut lookup = Lookup {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: Some("a".to_owned()),
        name: None,
        list: true,
        selector: Some("tier in (odd)".to_owned()),
        limit: Some(2),
        missing_kind: MissingKind::Unknown,
    };
    assert_eq!(
        world.look(&lookup).await.unwrap().as_array().unwrap().len(),
        2
    );
    lookup.limit = Some(1);
    assert!(world.look(&lookup).await.is_err());
    world.withdraw_kind(&maps);
    assert!(matches!(
        world.look(&lookup).await,
        Err(EffectError::KindUnknown(_))
    ));
    lookup.missing_kind = MissingKind::Null;
    assert_eq!(world.look(&lookup).await, Ok(json!([])));
}

#[tokio::test]
async fn a_job_ends_at_once_and_its_pod_says_how() {
    let world = Memory::default();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"namespace": "a", "name": "convert-1"},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "x"}]}}},
    });
    Effects::create(&world, &job).await.unwrap();
    assert!(matches!(
        Effects::create(&world, &job).await,
        Err(EffectError::Exists(_))
    ));
    let done = world
        .object(&kind("batch/v1", "Job"), Some("a"), "convert-1")
        .unwrap();
    assert_eq!(done["status"]["succeeded"], 1);
    let pods = world
        .list(
            &kind("v1", "Pod"),
            Some("a"),
            Some("job-name=convert-1"),
            (10, None),
        )
        .await
        .unwrap();
    assert_eq!(
        pods.objects[0].pointer("/status/containerStatuses/0/state/terminated/exitCode"),
        Some(&json!(0))
    );
    assert_eq!(
        world.settled(),
        Vec::<Value>::new(),
        "names of attempts do not compare"
    );
}

#[tokio::test]
async fn a_stop_before_leaves_nothing_and_a_stop_after_leaves_all() {
    for (fault, expected) in [(Fault::StopBefore, "1"), (Fault::StopAfter, "2")] {
        let world = Memory::default();
        world.put(config_map("one", &json!({"data": {"x": "1"}})));
        let uid = uid_of(&world, "one");
        world.fault(0, fault);
        let change = patch("one", &uid, json!({"data": {"x": "2"}}));
        tokio::select! {
            answer = world.patch(&change) => panic!("answered {answer:?}"),
            () = world.stopped() => {}
        }
        let object = world
            .object(&kind("v1", "ConfigMap"), Some("a"), "one")
            .unwrap();
        assert_eq!(object["data"]["x"], expected);
        world.restart();
        assert!(world.patch(&change).await.is_ok());
        assert_eq!(world.writes(), 2);
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_is_of_a_write_that_was_done() {
    let world = Memory::default();
    world.fault(0, Fault::Lose);
    let manifest = config_map("one", &json!({}));
    assert!(matches!(
        Effects::create(&world, &manifest).await,
        Err(EffectError::Lost(_))
    ));
    assert!(matches!(
        Effects::create(&world, &manifest).await,
        Err(EffectError::Exists(_))
    ));
}

fn a_run() -> Run {
    let definition = json!({
        "owner": "team", "bind": {"phase": "pre"}, "lifecycle": {"never": "a test"},
        "guard": {"needed": "true"},
    });
    serde_json::from_value(json!({
        "apiVersion": "fairway.dev/v1alpha1", "kind": "Run", "metadata": {"name": "r"},
        "spec": {
            "source": "s", "cluster": "home", "clusterUid": "u", "migration": "m", "phase": "pre",
            "revision": "main@sha1:1", "place": "m.yaml:1:1", "deploy": "d", "definitionDigest": "d",
            "definition": definition,
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn a_record_is_written_over_the_version_that_was_seen() {
    let world = Memory::default();
    let first = RunStore::create(&world, &a_run()).await.unwrap();
    assert_eq!(
        RunStore::create(&world, &a_run()).await.as_ref(),
        Ok(&first)
    );
    let second = world
        .write(&first, crate::model::api::RunStatus::default())
        .await
        .unwrap();
    assert!(
        world
            .write(&first, crate::model::api::RunStatus::default())
            .await
            .is_err()
    );
    world.edit_run("r", |run| run.metadata.labels = None);
    assert!(
        world
            .write(&second, crate::model::api::RunStatus::default())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_script_leaves_its_objects_once_after_the_first_effect() {
    let world = Memory::default();
    let run = RunStore::create(&world, &a_run()).await.unwrap();
    world.script(
        "convert",
        Script {
            leaves: vec![Leaves {
                kind: kind("v1", "ConfigMap"),
                namespace: Some("a".to_owned()),
                name: "left".to_owned(),
                object: json!({"data": {"x": "1"}}),
            }],
            ..Script::default()
        },
    );
    let status = crate::model::api::RunStatus {
        current_step: Some("convert".to_owned()),
        ..Default::default()
    };
    world.write(&run, status).await.unwrap();
    world.apply(&config_map("other", &json!({}))).await.unwrap();
    let left = || world.take(&kind("v1", "ConfigMap"), Some("a"), "left");
    assert_eq!(left().unwrap()["data"]["x"], "1");
    world
        .apply(&config_map("other", &json!({"data": {}})))
        .await
        .unwrap();
    assert_eq!(left(), None);
    assert_eq!(world.log()[2].step.as_deref(), Some("convert"));
}

#[test]
fn a_strategic_patch_merges_the_lists_that_have_keys() {
    let object = json!({"spec": {
        "containers": [{"name": "a", "image": "1", "volumeMounts": [{"mountPath": "/x", "name": "v"}]}, {"name": "b"}],
        "volumes": [{"name": "v"}, {"name": "w"}],
        "args": ["1", "2"],
    }});
    let patch = json!({"spec": {
        "containers": [{"name": "a", "volumeMounts": [{"$patch": "delete", "mountPath": "/x"}]}],
        "volumes": [{"$patch": "delete", "name": "v"}],
        "args": ["3"],
    }});
    let expected = json!({"spec": {
        "containers": [{"name": "a", "image": "1", "volumeMounts": []}, {"name": "b"}],
        "volumes": [{"name": "w"}],
        "args": ["3"],
    }});
    assert_eq!(patched(&object, PatchType::Strategic, &patch), Ok(expected));
}

#[test]
fn an_apply_sets_what_it_has_and_leaves_the_rest() {
    let object = json!({"data": {"mine": "1"}, "spec": {"ports": [{"port": 80, "name": "http"}]}});
    let manifest =
        json!({"data": {"yours": "2"}, "spec": {"ports": [{"port": 80, "targetPort": 8080}]}});
    assert_eq!(
        applied(&object, &manifest),
        json!({
            "data": {"mine": "1", "yours": "2"},
            "spec": {"ports": [{"port": 80, "name": "http", "targetPort": 8080}]},
        })
    );
}

#[test]
fn a_json_patch_that_does_not_fit_is_refused() {
    let object = json!({"data": {"x": "1"}});
    let test = json!([{"op": "test", "path": "/data/x", "value": "2"}]);
    assert!(patched(&object, PatchType::Json, &test).is_err());
    assert!(patched(&object, PatchType::Json, &json!({})).is_err());
    let replace = json!([{"op": "replace", "path": "/data/x", "value": "2"}]);
    assert_eq!(
        patched(&object, PatchType::Json, &replace),
        Ok(json!({"data": {"x": "2"}}))
    );
}
