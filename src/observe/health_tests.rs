use rstest::rstest;
use serde_json::json;

use super::*;

fn judge(kind: &str, object: Value) -> Health {
    health(
        &kind.parse().unwrap(),
        &serde_json::from_value(object).unwrap(),
    )
}

fn going(text: &str) -> Health {
    Health::InProgress(text.to_owned())
}

fn broken(text: &str) -> Health {
    Health::Failed(text.to_owned())
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

#[rstest]
#[case(json!({}), going("its controller has not seen it"))]
#[case(json!({"observedGeneration": 1}), going("generation 2 has not been seen by its controller"))]
#[case(json!({"observedGeneration": 2, "updatedReplicas": 1}), going("1 of 3 replicas updated"))]
#[case(json!({"observedGeneration": 2, "updatedReplicas": 3, "replicas": 4}), going("1 old replicas remain"))]
#[case(json!({"observedGeneration": 2, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 2}), going("2 of 3 replicas available"))]
#[case(
    json!({"observedGeneration": 2, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 3,
        "conditions": [condition("Available", "False", "MinimumReplicasUnavailable", "")]}),
    going("MinimumReplicasUnavailable")
)]
#[case(
    json!({"observedGeneration": 2, "updatedReplicas": 1,
        "conditions": [condition("Progressing", "False", "ProgressDeadlineExceeded", "too slow")]}),
    broken("ProgressDeadlineExceeded: too slow")
)]
#[case(
    json!({"observedGeneration": 2, "updatedReplicas": 3, "replicas": 3, "availableReplicas": 3,
        "conditions": [condition("Available", "True", "", "")]}),
    Health::Current
)]
fn deployments(#[case] status: Value, #[case] expected: Health) {
    let object = json!({"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status});
    assert_eq!(judge("Deployment.apps", object), expected);
}

#[test]
fn a_deployment_without_a_count_wants_one_and_one_of_none_is_current() {
    let one = json!({"status": {"observedGeneration": 1}});
    assert_eq!(
        judge("Deployment.apps", one),
        going("0 of 1 replicas updated")
    );
    let none = json!({"spec": {"replicas": 0}, "status": {"observedGeneration": 1}});
    assert_eq!(judge("Deployment.apps", none), Health::Current);
}

#[rstest]
#[case(json!({}), json!({"readyReplicas": 1}), going("1 of 2 replicas ready"))]
#[case(json!({}), json!({"readyReplicas": 2, "currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1}), going("1 of 2 replicas updated"))]
#[case(json!({}), json!({"readyReplicas": 2, "currentRevision": "b", "updateRevision": "b"}), Health::Current)]
#[case(json!({"type": "OnDelete"}), json!({"readyReplicas": 0}), Health::Current)]
#[case(json!({"rollingUpdate": {"partition": 1}}), json!({"readyReplicas": 2, "updatedReplicas": 0}), going("0 of 1 replicas updated"))]
#[case(
    json!({"rollingUpdate": {"partition": 1}}),
    json!({"readyReplicas": 2, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"}),
    Health::Current
)]
fn stateful_sets(#[case] strategy: Value, #[case] mut status: Value, #[case] expected: Health) {
    status["observedGeneration"] = json!(1);
    let spec = json!({"replicas": 2, "updateStrategy": strategy});
    let object = json!({"metadata": {"generation": 1}, "spec": spec, "status": status});
    assert_eq!(judge("StatefulSet.apps", object), expected);
}

#[rstest]
#[case("DaemonSet.apps", json!({}), json!({"desiredNumberScheduled": 2, "updatedNumberScheduled": 1}), going("1 of 2 replicas updated"))]
#[case("DaemonSet.apps", json!({}), json!({"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}), going("1 of 2 replicas available"))]
#[case("DaemonSet.apps", json!({"updateStrategy": {"type": "OnDelete"}}), json!({"desiredNumberScheduled": 1, "numberAvailable": 1}), Health::Current)]
#[case("DaemonSet.apps", json!({}), json!({"desiredNumberScheduled": 0}), Health::Current)]
#[case("ReplicaSet.apps", json!({"replicas": 2}), json!({"availableReplicas": 1}), going("1 of 2 replicas available"))]
#[case("ReplicaSet.apps", json!({"replicas": 1}), json!({"availableReplicas": 1}), Health::Current)]
#[case("ReplicaSet.apps", json!({}), json!({"conditions": [condition("ReplicaFailure", "True", "FailedCreate", "quota")]}), going("FailedCreate: quota"))]
fn sets(
    #[case] kind: &str,
    #[case] spec: Value,
    #[case] mut status: Value,
    #[case] expected: Health,
) {
    status["observedGeneration"] = json!(1);
    assert_eq!(
        judge(
            kind,
            json!({"metadata": {"generation": 1}, "spec": spec, "status": status})
        ),
        expected
    );
}

#[rstest]
#[case("Job.batch", json!({}), json!({}), going("it has not completed"))]
#[case("Job.batch", json!({}), json!({"active": 1}), going("it has not completed"))]
#[case("Job.batch", json!({"suspend": true}), json!({}), Health::Current)]
#[case("Job.batch", json!({}), json!({"conditions": [condition("Complete", "True", "", "")]}), Health::Current)]
#[case("Job.batch", json!({}), json!({"conditions": [condition("Failed", "True", "BackoffLimitExceeded", "")]}), broken("BackoffLimitExceeded"))]
#[case("Job.batch", json!({}), json!({"conditions": [condition("Complete", "False", "", "")]}), going("it has not completed"))]
#[case("CronJob.batch", json!({}), json!({}), Health::Current)]
#[case("PersistentVolumeClaim", json!({}), json!({"phase": "Pending"}), going("it is not bound to a volume"))]
#[case("PersistentVolumeClaim", json!({}), json!({"phase": "Bound"}), Health::Current)]
#[case("PersistentVolumeClaim", json!({}), json!({"phase": "Lost"}), broken("its volume is lost"))]
#[case("Service", json!({"type": "ClusterIP"}), json!({}), Health::Current)]
#[case("Service", json!({"type": "LoadBalancer"}), json!({"loadBalancer": {}}), going("its load balancer has no address"))]
#[case("Service", json!({"type": "LoadBalancer"}), json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}), Health::Current)]
#[case("CustomResourceDefinition.apiextensions.k8s.io", json!({}), json!({}), going("its condition Established is not set"))]
#[case("CustomResourceDefinition.apiextensions.k8s.io", json!({}), json!({"conditions": [condition("NamesAccepted", "False", "Conflict", "taken")]}), broken("Conflict: taken"))]
#[case("CustomResourceDefinition.apiextensions.k8s.io", json!({}), json!({"conditions": [condition("Established", "True", "", "")]}), Health::Current)]
#[case("APIService.apiregistration.k8s.io", json!({}), json!({"conditions": [condition("Available", "False", "MissingEndpoints", "")]}), going("MissingEndpoints"))]
#[case("APIService.apiregistration.k8s.io", json!({}), json!({"conditions": [condition("Available", "True", "", "")]}), Health::Current)]
#[case("Widget.example.com", json!({}), json!({}), Health::Current)]
#[case("Widget.example.com", json!({}), json!({"conditions": [condition("Ready", "False", "", "soon")]}), going("soon"))]
#[case("Widget.example.com", json!({}), json!({"conditions": [condition("Ready", "Unknown", "New", "")]}), going("New"))]
#[case("Widget.example.com", json!({}), json!({"conditions": [condition("Reconciling", "True", "", "working"), condition("Ready", "True", "", "")]}), going("working"))]
#[case("Widget.example.com", json!({}), json!({"conditions": [condition("Stalled", "True", "", "stuck"), condition("Reconciling", "True", "", "")]}), broken("stuck"))]
#[case("Widget.example.com", json!({}), json!({"state": "Error"}), Health::Current)]
#[case("Telemetry.operator.kyma-project.io", json!({}), json!({"state": "Error"}), broken("its state is Error"))]
#[case("Telemetry.operator.kyma-project.io", json!({}), json!({"state": "Processing"}), going("its state is Processing"))]
#[case("Telemetry.operator.kyma-project.io", json!({}), json!({"state": "Warning"}), Health::Current)]
#[case("Widget.example.com", json!(1), json!("nonsense"), Health::Current)]
#[case("Job.batch", json!([]), json!([{"conditions": 1}]), going("it has not completed"))]
fn kinds(#[case] kind: &str, #[case] spec: Value, #[case] status: Value, #[case] expected: Health) {
    assert_eq!(
        judge(
            kind,
            json!({"metadata": {}, "spec": spec, "status": status})
        ),
        expected
    );
}

#[test]
fn a_status_of_an_older_generation_says_nothing() {
    let status =
        json!({"observedGeneration": 1, "conditions": [condition("Ready", "True", "", "")]});
    let object = json!({"metadata": {"generation": 2}, "status": status});
    assert_eq!(
        judge("Widget.example.com", object),
        going("generation 2 has not been seen by its controller")
    );
}

#[rstest]
#[case("ConfigMap")]
#[case("Deployment.apps")]
#[case("Widget.example.com")]
fn what_is_being_deleted_is_terminating(#[case] kind: &str) {
    let object = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(judge(kind, object), Health::Terminating);
}

#[rstest]
#[case("ConfigMap", false)]
#[case("Secret", false)]
#[case("Namespace", false)]
#[case("ClusterRole.rbac.authorization.k8s.io", false)]
#[case("NetworkPolicy.networking.k8s.io", false)]
#[case("ModuleTemplate.operator.kyma-project.io", false)]
#[case("ModuleReleaseMeta.operator.kyma-project.io", true)]
#[case("Deployment.apps", true)]
#[case("Service", true)]
#[case("CustomResourceDefinition.apiextensions.k8s.io", true)]
#[case("Widget.example.com", true)]
fn only_where_health_asks_for_it_the_whole_object_is_read(#[case] kind: &str, #[case] whole: bool) {
    assert_eq!(needs_whole_object(&kind.parse().unwrap()), whole);
}
