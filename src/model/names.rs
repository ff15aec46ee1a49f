//! The labels, annotations and field managers that are stored on clusters. They are a format: none may change.

/// API group of everything that is ours.
pub const GROUP: &str = "fairway.dev";
/// Version of our API types.
pub const VERSION: &str = "v1alpha1";

/// Label on every object that a source applies; its value is the source's name. It is the inventory.
pub const LABEL_SOURCE: &str = "fairway.dev/source";
/// Label on an object of a runtime's catalog: which runtime. It tells catalogs apart where runtimes share a cluster with each
/// other or with home.
pub const LABEL_RUNTIME: &str = "fairway.dev/runtime";
/// Annotation with the component that an object belongs to, written `modules/NAME` or `components/NAME`.
pub const ANNOTATION_COMPONENT: &str = "fairway.dev/component";
/// Annotation with the digest of the desired object, applied together with it.
pub const ANNOTATION_DIGEST: &str = "fairway.dev/digest";
/// Annotation on a ModuleTemplate: the digest of the whole folder of its version, which is immutable once published.
pub const ANNOTATION_VERSION_DIGEST: &str = "fairway.dev/version-digest";
/// Annotation on a ModuleReleaseMeta: `spec.versions` of the file as JSON, since deployed schemas lack the field.
pub const ANNOTATION_VERSIONS: &str = "fairway.dev/versions";
/// Annotation `disabled`, on the live object: leave it alone until the annotation goes.
pub const ANNOTATION_RECONCILE: &str = "fairway.dev/reconcile";
/// Annotation `disabled`, in git or on the live object: never delete this object.
pub const ANNOTATION_PRUNE: &str = "fairway.dev/prune";
/// Annotation `enabled`, in git: delete and create anew where a field is immutable.
pub const ANNOTATION_FORCE: &str = "fairway.dev/force";
/// Annotation on a ReleaseSource: any new value asks for a pass now.
pub const ANNOTATION_REQUESTED_AT: &str = "fairway.dev/requestedAt";
/// Finalizer on a ReleaseSource with `deletionPolicy: Delete`: it stays until what it has applied is gone. On nothing else.
pub const FINALIZER_PRUNE: &str = "fairway.dev/prune";
/// Annotation on a Target or ReleaseSource: a person's decision, as JSON.
pub const ANNOTATION_APPROVED: &str = "fairway.dev/approved";

/// Annotation on a Run: what a person wants of it, as JSON.
pub const ANNOTATION_COMMAND: &str = "fairway.dev/command";
/// Label on a Run, and on a Job that a step has started: the migration.
pub const LABEL_MIGRATION: &str = "fairway.dev/migration";
/// Label on a Run: the cluster that it runs on.
pub const LABEL_CLUSTER: &str = "fairway.dev/cluster";
/// Label on a Job that a step has started: the Run.
pub const LABEL_RUN: &str = "fairway.dev/run";
/// Label on a Job that a step has started: the step and, for `forEach`, the element.
pub const LABEL_STEP: &str = "fairway.dev/step";
/// Annotation on a Job that a step has started: how many Jobs that step has had, this one counted.
pub const ANNOTATION_LAUNCH: &str = "fairway.dev/launch";
/// Annotation on a Job that a step has started: we have suspended it, since its run was cancelled.
pub const ANNOTATION_STOPPED: &str = "fairway.dev/stopped";
/// Annotation on a Job that a step has started: its result is in the record of the Run.
pub const ANNOTATION_RECORDED: &str = "fairway.dev/recorded";

/// Field manager of desired state, and of nothing else.
pub const MANAGER: &str = "fairway";
/// Field manager of the status of our own resources.
pub const MANAGER_STATUS: &str = "fairway-status";
/// Field manager of what migrations write.
pub const MANAGER_MIGRATION: &str = "fairway-migration";
/// Field manager of leases.
pub const MANAGER_LEASE: &str = "fairway-lease";
/// The Lease of the agent that acts for home, in the agent's own namespace.
pub const LEASE_HOME: &str = "fairway-home";
/// Field manager of a source's `status.webhook`, which another task writes than the rest.
pub const MANAGER_WEBHOOK: &str = "fairway-webhook";

/// API group of Kyma's kinds.
pub const KYMA_GROUP: &str = "operator.kyma-project.io";
/// The version of Kyma's kinds that is served and stored.
pub const KYMA_VERSION: &str = "v1beta2";
/// Label with the value `kyma` that the Kyma command line and dashboard filter a catalog by.
pub const LABEL_KYMA_MANAGED_BY: &str = "operator.kyma-project.io/managed-by";
/// Label on a Secret with a kubeconfig: the name of the Kyma whose runtime it leads to.
pub const LABEL_KYMA_NAME: &str = "operator.kyma-project.io/kyma-name";
/// Label with the value `true`: on a ModuleTemplate, only for Kymas that carry it as well.
pub const LABEL_KYMA_BETA: &str = "operator.kyma-project.io/beta";
/// Label with the value `true`: on a ModuleTemplate, only for Kymas that carry it as well.
pub const LABEL_KYMA_INTERNAL: &str = "operator.kyma-project.io/internal";
/// Label with the value `true` on a Kyma: nobody reconciles its runtime.
pub const LABEL_KYMA_SKIP: &str = "operator.kyma-project.io/skip-reconciliation";
/// The key of a kubeconfig Secret.
pub const KUBECONFIG_KEY: &str = "config";
/// The namespace of the catalog on a runtime, where the Kyma command line and dashboard look for it.
pub const RUNTIME_NAMESPACE: &str = "kyma-system";
/// Annotation on a kubeconfig Secret: another namespace for the catalog on that runtime, so that runtimes can share a cluster.
pub const ANNOTATION_NAMESPACE: &str = "fairway.dev/namespace";
/// Annotation on a CustomResourceDefinition that we installed on a runtime: a number that rises with its schema.
pub const ANNOTATION_CRD_REVISION: &str = "fairway.dev/crd-revision";
