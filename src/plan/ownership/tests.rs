use rstest::rstest;
use serde_json::json;

use super::*;

/// The entry of a real ConfigMap, as an API server wrote it after a server-side apply.
fn config_map_entry() -> Value {
    json!({
        "f:metadata": {
            "f:annotations": {"f:fairway.dev/digest": {}},
            "f:labels": {"f:app.kubernetes.io/name": {}, "f:fairway.dev/source": {}}
        },
        "f:data": {"f:key": {}, "f:other.conf": {}}
    })
}

fn config_map() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "a", "namespace": "b",
            "annotations": {"fairway.dev/digest": "v1:0"},
            "labels": {"app.kubernetes.io/name": "a", "fairway.dev/source": "modules"}
        },
        "data": {"key": "value", "other.conf": ""}
    })
}

fn deployment_entry() -> Value {
    json!({
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        "k:{\"name\":\"api\"}": {
                            ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                            "f:env": {
                                "k:{\"name\":\"LEVEL\"}": {".": {}, "f:name": {}, "f:value": {}},
                                "k:{\"name\":\"TOKEN\"}": {
                                    ".": {}, "f:name": {}, "f:valueFrom": {"f:secretKeyRef": {}}
                                }
                            },
                            "f:ports": {
                                "k:{\"containerPort\":53,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
                                "k:{\"containerPort\":53,\"protocol\":\"UDP\"}": {
                                    ".": {}, "f:containerPort": {}, "f:protocol": {}
                                }
                            },
                            "f:resources": {"f:limits": {"f:cpu": {}}},
                            "f:securityContext": {}
                        }
                    },
                    "f:volumes": {"k:{\"name\":\"tmp\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}}
                }
            }
        }
    })
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "api", "namespace": "b", "labels": {"app": "api"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "api"}},
            "template": {
                "metadata": {"labels": {"app": "api"}, "creationTimestamp": null},
                "spec": {
                    "containers": [{
                        "name": "api", "image": "api:1", "args": ["--a", "--b"],
                        "env": [
                            {"name": "LEVEL", "value": "info"},
                            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "t", "key": "k"}}}
                        ],
                        "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
                        "resources": {"limits": {"cpu": "1000m"}},
                        "securityContext": {}
                    }],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                    "imagePullSecrets": []
                }
            }
        }
    })
}

fn judged(body: &Value, entry: &Value) -> Coverage {
    coverage(body, &FieldSet::from_fields_v1(entry))
}

fn uncovered(fields: &[&str]) -> Coverage {
    Coverage::Uncovered(fields.iter().map(ToString::to_string).collect())
}

/// Removes a field of an entry, as the server does when somebody else changes its value: what is empty then goes too.
fn lose(entry: &mut Value, path: &[&str]) {
    let map = entry.as_object_mut().unwrap();
    match path {
        [last] => assert!(map.remove(*last).is_some(), "{last} is not in the entry"),
        [first, rest @ ..] => {
            lose(&mut map[*first], rest);
            if map[*first] == json!({}) {
                map.remove(*first);
            }
        }
        [] => unreachable!("a path has parts"),
    }
}

const CONTAINER: [&str; 5] = [
    "f:spec",
    "f:template",
    "f:spec",
    "f:containers",
    "k:{\"name\":\"api\"}",
];

#[test]
fn an_untouched_config_map_is_covered() {
    assert_eq!(
        judged(&config_map(), &config_map_entry()),
        Coverage::Covered
    );
}

#[test]
fn an_untouched_deployment_with_defaulted_port_keys_is_covered() {
    assert_eq!(
        judged(&deployment(), &deployment_entry()),
        Coverage::Covered
    );
}

#[rstest]
#[case::value(&["f:data", "f:key"], &["data.key"])]
#[case::key_with_dot(&["f:data", "f:other.conf"], &["data[other.conf]"])]
#[case::whole_map(&["f:data"], &["data.key", "data[other.conf]"])]
#[case::label_with_slash(
    &["f:metadata", "f:labels", "f:app.kubernetes.io/name"],
    &["metadata.labels[app.kubernetes.io/name]"]
)]
#[case::annotation(
    &["f:metadata", "f:annotations"],
    &["metadata.annotations[fairway.dev/digest]"]
)]
#[case::all_metadata(&["f:metadata"], &[
    "metadata.annotations[fairway.dev/digest]",
    "metadata.labels[app.kubernetes.io/name]",
    "metadata.labels[fairway.dev/source]",
])]
fn what_a_config_map_has_lost_is_named(#[case] lost: &[&str], #[case] fields: &[&str]) {
    let mut entry = config_map_entry();
    lose(&mut entry, lost);
    assert_eq!(judged(&config_map(), &entry), uncovered(fields));
}

#[rstest]
#[case::image(&["f:image"], "spec.template.spec.containers[name=api].image")]
#[case::atomic_list(&["f:args"], "spec.template.spec.containers[name=api].args")]
#[case::env_value(
    &["f:env", "k:{\"name\":\"LEVEL\"}", "f:value"],
    "spec.template.spec.containers[name=api].env[name=LEVEL].value"
)]
#[case::env_item(
    &["f:env", "k:{\"name\":\"LEVEL\"}"],
    "spec.template.spec.containers[name=api].env[name=LEVEL]"
)]
#[case::atomic_map(
    &["f:env", "k:{\"name\":\"TOKEN\"}", "f:valueFrom", "f:secretKeyRef"],
    "spec.template.spec.containers[name=api].env[name=TOKEN].valueFrom.secretKeyRef.key"
)]
#[case::port_whose_protocol_was_defaulted(
    &["f:ports", "k:{\"containerPort\":53,\"protocol\":\"TCP\"}"],
    "spec.template.spec.containers[name=api].ports[containerPort=53]"
)]
#[case::port_named_in_full(
    &["f:ports", "k:{\"containerPort\":53,\"protocol\":\"UDP\"}"],
    "spec.template.spec.containers[name=api].ports[containerPort=53,protocol=UDP]"
)]
#[case::quantity(
    &["f:resources", "f:limits", "f:cpu"],
    "spec.template.spec.containers[name=api].resources.limits.cpu"
)]
fn what_a_container_has_lost_is_named(#[case] lost: &[&str], #[case] field: &str) {
    let mut entry = deployment_entry();
    lose(&mut entry, &[&CONTAINER, lost].concat());
    match judged(&deployment(), &entry) {
        Coverage::Uncovered(fields) => assert_eq!(fields[0], field),
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_a_few_fields_are_named() {
    let Coverage::Uncovered(fields) = judged(&deployment(), &json!({})) else {
        panic!("an empty entry covers nothing");
    };
    assert_eq!(fields.len(), limits::DRIFTED_FIELDS_NAMED_MAX);
}

#[rstest]
#[case::set(
    json!({"metadata": {"finalizers": ["a/b", "c"]}}),
    json!({"f:metadata": {"f:finalizers": {"v:\"a/b\"": {}, "v:\"c\"": {}}}}),
    Coverage::Covered
)]
#[case::set_item_lost(
    json!({"metadata": {"finalizers": ["a/b", "c"]}}),
    json!({"f:metadata": {"f:finalizers": {"v:\"a/b\"": {}}}}),
    uncovered(&["metadata.finalizers[1]"])
)]
#[case::channels(
    json!({"spec": {"channels": [{"channel": "fast", "version": "2.0.0"}]}}),
    json!({"f:spec": {"f:channels": {"k:{\"channel\":\"fast\"}": {".": {}, "f:channel": {}, "f:version": {}}}}}),
    Coverage::Covered
)]
#[case::channel_version_lost(
    json!({"spec": {"channels": [{"channel": "fast", "version": "2.0.0"}]}}),
    json!({"f:spec": {"f:channels": {"k:{\"channel\":\"fast\"}": {".": {}, "f:channel": {}}}}}),
    uncovered(&["spec.channels[channel=fast].version"])
)]
#[case::service_port_without_protocol(
    json!({"spec": {"ports": [{"port": 80, "targetPort": "http"}]}}),
    json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:targetPort": {}}}}}),
    Coverage::Covered
)]
#[case::indexed(
    json!({"spec": {"list": ["a", "b"]}}),
    json!({"f:spec": {"f:list": {"i:0": {}, "i:1": {}}}}),
    Coverage::Covered
)]
#[case::crd_with_atomic_versions(
    json!({"spec": {"group": "g", "names": {"kind": "K"}, "versions": [{"name": "v1", "schema": {}}]}}),
    json!({"f:spec": {"f:group": {}, "f:names": {"f:kind": {}}, "f:versions": {}}}),
    Coverage::Covered
)]
#[case::null_says_nothing(json!({"spec": {"a": null}}), json!({}), Coverage::Covered)]
#[case::empty_list_owns_nothing(json!({"spec": {"a": []}}), json!({}), Coverage::Covered)]
#[case::empty_map_owned(json!({"spec": {"a": {}}}), json!({"f:spec": {"f:a": {}}}), Coverage::Covered)]
#[case::empty_map_not_named(
    json!({"spec": {"a": {}}}),
    json!({"f:spec": {"f:b": {}}}),
    Coverage::Unclear("our entry does not show whether the empty map is ours at spec.a".to_owned())
)]
#[case::fields_without_schema(
    json!({"spec": {"data": {"deep": {"x": 1}}}}),
    json!({"f:spec": {".": {}, "f:data": {".": {}, "f:deep": {".": {}, "f:x": {}}}}}),
    Coverage::Covered
)]
#[case::fields_without_schema_all_lost(
    json!({"spec": {"data": {"deep": {"x": 1}}}}),
    json!({"f:spec": {".": {}, "f:data": {".": {}, "f:deep": {}}}}),
    Coverage::Unclear("our entry names the map but none of its fields at spec.data.deep".to_owned())
)]
#[case::map_itself_but_no_fields(
    json!({"data": {"a": "b"}}),
    json!({"f:data": {".": {}}}),
    uncovered(&["data.a"])
)]
#[case::another_shape(
    json!({"spec": "text"}),
    json!({"f:spec": {"f:a": {}}}),
    Coverage::Unclear("our entry has fields where git has a plain value at spec".to_owned())
)]
#[case::hostile_keys(
    json!({"spec": {"a": [{"name": "x"}]}}),
    json!({"f:spec": {"f:a": {"k:not json": {}, "k:[]": {}}}}),
    uncovered(&["spec.a[0]"])
)]
fn entries_are_read_as_the_server_writes_them(
    #[case] body: Value,
    #[case] entry: Value,
    #[case] expected: Coverage,
) {
    assert_eq!(judged(&body, &entry), expected);
}
