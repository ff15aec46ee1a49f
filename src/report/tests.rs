mod clock;
mod outside;

use jiff::Timestamp;
use rstest::rstest;

use super::*;
use crate::desired::{Desired, Unread};
use crate::model::api::{
    Claim, ConditionStatus, ConditionType as Type, ReleaseSourceStatus, TargetStatus, find,
    status_differs,
};
use crate::model::limits::CONDITION_MESSAGE_MAX;
use crate::model::snapshot::CommitInfo;
use crate::model::{
    Code, Diagnostic, Digest, GroupKind, Hold, HoldReason, ObjectKey, Place, Revision, SourceName,
};
use crate::plan::{Action, ActionKind, Deletion, PendingDeletion, Plan, Why};

/// A pass as a value that a test can change, with all that a [`PassReport`] borrows.
struct Pass {
    source: SourceName,
    fetched: Result<(), FetchFailure>,
    revision: Revision,
    commit: CommitInfo,
    desired: Desired,
    plan: Plan,
    effects: Vec<Effect>,
    claims: Vec<Claim>,
    failed: Option<String>,
    is_of_account: bool,
    stopped: bool,
    started: i64,
}

impl Pass {
    /// A pass over a valid repository that has nothing to do.
    fn quiet() -> Self {
        let source: SourceName = "modules".parse().unwrap();
        let revision = Revision::commit("main", "0123456789abcdef0123456789abcdef01234567");
        Self {
            fetched: Ok(()),
            commit: CommitInfo {
                author: "Jane Doe".to_owned(),
                subject: "Move telemetry".to_owned(),
                time: 990,
            },
            desired: Desired::nothing(revision.clone()),
            plan: Plan {
                kept: Vec::new(),
                identity: Digest::of_parts(["plan"]),
                source: source.clone(),
                revision: revision.clone(),
                phases: Vec::new(),
                holds: Vec::new(),
                jobs: crate::plan::Jobs::new(),
                conflicts: Vec::new(),
                pending: None,
                unchanged: 42,
                unhealthy: Vec::new(),
                hooks: Vec::new(),
                ahead: Vec::new(),
                committed: crate::plan::hooks::Committed::default(),
                migrations: Vec::new(),
                undo: Vec::new(),
            },
            effects: Vec::new(),
            claims: Vec::new(),
            failed: None,
            is_of_account: false,
            stopped: false,
            started: 1_000,
            source,
            revision,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn report(&self) -> PassReport<'_> {
        PassReport {
            clock: None,
            source: &self.source,
            cluster: "home",
            generation: 3,
            requested_at: None,
            fetched: self.fetched.as_ref().copied(),
            revision: Some(&self.revision),
            commit: &self.commit,
            desired: Some(&self.desired),
            plan: Some(&self.plan),
            effects: &self.effects,
            runtimes: None,
            claims: &self.claims,
            failed: self.failed.as_deref(),
            is_of_account: self.is_of_account,
            stopped: self.stopped,
            started: at(self.started),
            ended: at(self.started + 2),
        }
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn config_map(name: &str) -> ObjectKey {
    ObjectKey::new(GroupKind::new("", "ConfigMap"), Some("apps"), name)
}

fn effect(name: &str, kind: EffectKind, why: Why, result: EffectResult) -> Effect {
    Effect {
        at: at(1_001),
        key: config_map(name),
        kind,
        digest: (kind != EffectKind::Delete).then(|| format!("v1:{name}")),
        why,
        result,
    }
}

fn hold(what: &str, reason: HoldReason) -> Hold {
    Hold {
        what: what.to_owned(),
        reason,
        message: "because".to_owned(),
        place: Some(Place::new("components/a.yaml", 3, 1)),
    }
}

fn pending(names: &[&str]) -> PendingDeletion {
    let deletion = |name: &&str| Deletion {
        key: config_map(name),
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
    };
    PendingDeletion {
        digest: format!("v1:{}", names.len()),
        deletions: names.iter().map(deletion).collect(),
        reasons: vec!["more than 20% of 42 objects.".to_owned()],
    }
}

fn refused(retryable: bool) -> FetchFailure {
    FetchFailure {
        message: "the server answered 403".to_owned(),
        help: Some("check the Secret `git-credentials`".to_owned()),
        retryable,
        ..FetchFailure::default()
    }
}

fn bad_file(pass: &mut Pass) {
    let place = Place::new("modules/telemetry/module-release-meta.yaml", 7, 5);
    let message = "channel `regular` points at 1.42.0";
    pass.desired.diagnostics.push(
        Diagnostic::error(Code::ChannelVersionMissing, place, message).help("Add the folder."),
    );
    pass.plan
        .holds
        .push(hold("ModuleReleaseMeta telemetry", HoldReason::Invalid));
}

fn ready(status: &ReleaseSourceStatus) -> (&str, &str) {
    let ready = find(&status.conditions, Type::Ready).unwrap();
    (&ready.reason, &ready.message)
}

fn types(status: &ReleaseSourceStatus) -> Vec<&str> {
    let conditions = status.conditions.iter();
    conditions
        .map(|condition| condition.type_.as_str())
        .collect()
}

fn all_cases() -> Vec<Pass> {
    vec![
        Pass::quiet(),
        Pass::quiet().with(bad_file),
        Pass::quiet().with(|pass| pass.fetched = Err(refused(true))),
        Pass::quiet().with(|pass| pass.fetched = Err(refused(false))),
        Pass::quiet().with(|pass| pass.failed = Some("reach the cluster".to_owned())),
        Pass::quiet().with(|pass| pass.plan.pending = Some(pending(&["a", "b", "c"]))),
        Pass::quiet().with(|pass| pass.plan.holds.push(hold("a", HoldReason::BackOff))),
        Pass::quiet().with(|pass| pass.plan.holds.push(hold("a", HoldReason::PruneUnsafe))),
        Pass::quiet().with(|pass| pass.plan.holds.push(hold("a", HoldReason::InUse))),
        Pass::quiet().with(|pass| {
            let component = "components/ingress".parse().unwrap();
            pass.plan
                .unhealthy
                .push((component, "0 of 3 replicas".to_owned()));
        }),
        Pass::quiet().with(|pass| {
            pass.plan
                .holds
                .push(hold("deletion of a", HoldReason::BackOff));
        }),
    ]
}

#[test]
fn a_pass_that_changes_nothing_writes_nothing() {
    for mut pass in all_cases() {
        let source = source_status(&ReleaseSourceStatus::default(), &pass.report());
        let target = target_status(&TargetStatus::default(), &pass.report());
        pass.started += 3_600;
        let source_again = source_status(&source, &pass.report());
        let target_again = target_status(&target, &pass.report());
        assert!(
            !status_differs(&source, &source_again),
            "{source:#?}\n{source_again:#?}"
        );
        assert!(
            !status_differs(&target, &target_again),
            "{target:#?}\n{target_again:#?}"
        );
        let change = Change {
            source: (&source, &source_again),
            target: (&target, &target_again),
        };
        assert_eq!(notices(&change, &pass.report()), []);
    }
}

#[rstest]
#[case(0, "Synced", "applied main@0123456789: 42 objects in step", &["Ready", "Fetched", "Valid", "Applied", "Pruned"])]
#[case(
    1,
    "PartiallyApplied",
    "main@0123456789 by Jane Doe: 1 error: modules/telemetry/module-release-meta.yaml:7:5: channel `regular` points at \
     1.42.0 [channel-version-missing] (Add the folder.)",
    &["Ready", "Stalled", "Fetched", "Valid", "Applied", "Pruned"]
)]
#[case(
    2,
    "FetchFailed",
    "main@0123456789 by Jane Doe: failed to fetch: the server answered 403; check the Secret `git-credentials`",
    &["Ready", "Reconciling", "Fetched", "Valid", "Applied", "Pruned"]
)]
#[case(
    3,
    "FetchRefused",
    "main@0123456789 by Jane Doe: failed to fetch: the server answered 403; check the Secret `git-credentials`",
    &["Ready", "Stalled", "Fetched", "Valid", "Applied", "Pruned"]
)]
#[case(4, "Retrying", "main@0123456789 by Jane Doe: failed to reach the cluster", &["Ready", "Reconciling", "Fetched", "Valid"])]
#[case(
    5,
    "ApprovalNeeded",
    "main@0123456789 by Jane Doe: 3 deletions wait for approval: more than 20% of 42 objects.",
    &["Ready", "Stalled", "Fetched", "Valid", "Applied", "Pruned"]
)]
#[case(
    6,
    "ApplyFailed",
    "main@0123456789 by Jane Doe: 1 failed: a (components/a.yaml:3:1): because",
    &["Ready", "Reconciling", "Fetched", "Valid", "Applied", "Pruned"]
)]
#[case(
    9,
    "Progressing",
    "applied main@0123456789: waiting for components/ingress: 0 of 3 replicas",
    &["Ready", "Reconciling", "Fetched", "Valid", "Applied", "Pruned"]
)]
#[case(
    10,
    "ApplyFailed",
    "main@0123456789 by Jane Doe: 1 failed: deletion of a (components/a.yaml:3:1): because",
    &["Ready", "Reconciling", "Fetched", "Valid", "Applied", "Pruned"]
)]
fn ready_says_what_is_the_matter(
    #[case] case: usize,
    #[case] reason: &str,
    #[case] message: &str,
    #[case] conditions: &[&str],
) {
    let pass = &all_cases()[case];
    let status = source_status(&ReleaseSourceStatus::default(), &pass.report());
    assert_eq!(ready(&status), (reason, message));
    assert_eq!(types(&status), conditions);
}

#[test]
fn the_applied_revision_moves_only_when_nothing_is_held() {
    for (index, pass) in all_cases().iter().enumerate() {
        let source = source_status(&ReleaseSourceStatus::default(), &pass.report());
        let target = target_status(&TargetStatus::default(), &pass.report());
        // Quiet, the two that could not fetch but are in step with what they have, and the one that is applied but not healthy.
        let applied = [0, 2, 3, 9].contains(&index);
        assert_eq!(
            source.last_applied_revision.is_some(),
            applied,
            "case {index}"
        );
        assert_eq!(target.revision.is_some(), applied, "case {index}");
        assert_eq!(
            source.last_attempted_revision,
            Some(pass.revision.to_string())
        );
    }
}

#[test]
fn a_file_that_could_not_be_read_is_an_error_even_without_a_diagnostic() {
    let pass = Pass::quiet().with(|pass| {
        pass.desired.unread.push(Unread {
            place: Place::whole_file("components/a/big.yaml"),
            reason: "5 MiB".to_owned(),
        });
    });
    let status = source_status(&ReleaseSourceStatus::default(), &pass.report());
    let message = "main@0123456789 by Jane Doe: 1 error: components/a/big.yaml: 5 MiB";
    assert_eq!(ready(&status), ("PartiallyApplied", message));
}

#[test]
fn nothing_grows_beyond_its_bounds_and_nothing_repaints_a_terminal() {
    let pass = Pass::quiet().with(|pass| {
        pass.commit.author = "\u{1b}[2J\u{202e}Eve\n".repeat(10_000);
        for index in 0..100 {
            let mut held = hold(&format!("object {index}"), HoldReason::Conflict);
            held.message = "long ".repeat(1_000);
            pass.plan.holds.push(held);
        }
        let names: Vec<String> = (0..5_000).map(|index| format!("name-{index}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        pass.plan.pending = Some(pending(&names));
    });
    let status = source_status(&ReleaseSourceStatus::default(), &pass.report());
    let target = target_status(&TargetStatus::default(), &pass.report());
    let stored = serde_json::to_string(&(&status, &target)).unwrap();
    assert!(stored.len() < 40_000, "{} bytes", stored.len());
    assert_eq!((status.holds.len(), status.hold_count), (20, Some(101)));
    assert_eq!(target.pending_prune.unwrap().sample.len(), 20);
    for condition in &status.conditions {
        assert!(condition.message.len() <= CONDITION_MESSAGE_MAX);
        assert!(!condition.message.contains(['\u{1b}', '\u{202e}', '\n']));
    }
}

#[test]
fn history_keeps_one_entry_for_a_revision_until_it_is_in() {
    let waiting = &mut all_cases()[9];
    waiting.effects = vec![effect(
        "a",
        EffectKind::Apply,
        Why::Missing,
        EffectResult::Changed,
    )];
    let first = source_status(&ReleaseSourceStatus::default(), &waiting.report());
    assert_eq!(first.history[0].result, "Progressing");
    let done = Pass::quiet().with(|pass| pass.started = 1_090);
    let second = source_status(&first, &done.report());
    let entry = &second.history[0];
    assert_eq!(second.history.len(), 1);
    assert_eq!((entry.result.as_str(), entry.changed), ("Synced", 1));
    assert_eq!(
        (entry.started.0, entry.duration.as_str()),
        (at(1_000), "1m32s")
    );

    let mut status = second;
    for commit in 0..20 {
        let next = Pass::quiet()
            .with(|pass| pass.revision = Revision::commit("main", &format!("{commit:040x}")));
        status = source_status(&status, &next.report());
    }
    assert_eq!(status.history.len(), 10);
    assert!(
        status.history[0].revision.ends_with("13"),
        "the newest comes first"
    );
}

#[test]
fn a_pending_deletion_keeps_its_date_while_it_is_the_same() {
    let pass = &mut all_cases()[5];
    let first = target_status(&TargetStatus::default(), &pass.report());
    pass.started += 60;
    pass.plan.pending = Some(pending(&["a", "b"]));
    let shrunk = target_status(&first, &pass.report()).pending_prune.unwrap();
    assert_eq!((shrunk.count, shrunk.since.0), (2, at(1_062)));
    pass.plan.pending = None;
    assert_eq!(target_status(&first, &pass.report()).pending_prune, None);
}

#[test]
fn a_rewound_branch_is_held_by_its_commit() {
    let pass = Pass::quiet().with(|pass| {
        pass.fetched = Err(FetchFailure {
            rewound_to: Some("89ab".to_owned()),
            ..refused(false)
        });
    });
    let first = source_status(&ReleaseSourceStatus::default(), &pass.report());
    let again = source_status(&first, &pass.report());
    assert!(!status_differs(&first, &again));
    assert_eq!(ready(&first).0, "Rewound");
    assert_eq!((first.holds.len(), first.hold_count), (1, Some(1)));
    assert_eq!(
        (first.holds[0].what.as_str(), first.holds[0].reason.as_str()),
        ("revision sha1:89ab", "Rewound")
    );
    let before_a_plan = PassReport {
        plan: None,
        ..pass.report()
    };
    assert_eq!(source_status(&first, &before_a_plan).holds, first.holds);
    assert_eq!(source_status(&first, &Pass::quiet().report()).holds, []);
}

#[test]
fn a_pass_that_was_stopped_is_not_one_that_is_done() {
    let pass = Pass::quiet().with(|pass| {
        let deletion = pending(&["a"]).deletions.remove(0);
        pass.plan.phases = vec![vec![Action {
            key: deletion.key.clone(),
            component: "components/ingress".parse().unwrap(),
            kind: ActionKind::Delete(deletion),
            why: Why::Removed,
            requires: Vec::new(),
        }]];
    });
    let status = source_status(&ReleaseSourceStatus::default(), &pass.report());
    assert_eq!(
        ready(&status),
        ("Progressing", "applying main@0123456789: 1 action to go")
    );
    assert_eq!(status.last_applied_revision, None);
    let pruned = find(&status.conditions, Type::Pruned).unwrap();
    assert_eq!(
        (pruned.status, pruned.message.as_str()),
        (ConditionStatus::Unknown, "1 action to go")
    );
    let applied = find(&status.conditions, Type::Applied).unwrap();
    assert_eq!(applied.status, ConditionStatus::True);
}

#[rstest]
#[case::finished(|_: &mut Pass| {}, Some("now"))]
#[case::not_fetched(|pass: &mut Pass| pass.fetched = Err(refused(true)), Some("now"))]
#[case::failed(|pass: &mut Pass| pass.failed = Some("reach the cluster".to_owned()), None)]
#[case::stopped(|pass: &mut Pass| pass.stopped = true, None)]
fn a_request_is_handled_when_its_pass_has_ended(
    #[case] change: fn(&mut Pass),
    #[case] handled: Option<&str>,
) {
    let pass = Pass::quiet().with(change);
    let report = PassReport {
        requested_at: Some("now"),
        ..pass.report()
    };
    let status = source_status(&ReleaseSourceStatus::default(), &report);
    assert_eq!(status.last_handled_reconcile_at.as_deref(), handled);
}

#[test]
fn an_owner_says_that_another_source_wants_what_it_has_and_stays_applied() {
    let pass = Pass::quiet().with(|pass| {
        pass.claims.push(Claim {
            object: "ConfigMap apps/a".to_owned(),
            by: "other".to_owned(),
        });
    });
    let status = source_status(&ReleaseSourceStatus::default(), &pass.report());
    let (reason, message) = ready(&status);
    assert_eq!(reason, "Conflict");
    assert!(
        message.contains("ConfigMap apps/a (source `other`)"),
        "{message}"
    );
    assert_eq!(status.holds[0].reason, "Conflict");
    assert_eq!(
        status.last_applied_revision,
        Some(pass.revision.to_string())
    );
    assert!(find(&status.conditions, Type::Stalled).is_some());
}

#[test]
fn a_suspended_source_has_nothing_under_way() {
    let begun = source_status(&ReleaseSourceStatus::default(), &all_cases()[9].report());
    assert!(find(&begun.conditions, Type::Reconciling).is_some());
    let suspended = source_suspended(&begun, 4);
    assert!(find(&suspended.conditions, Type::Reconciling).is_none());
    assert_eq!(suspended.observed_generation, Some(4));
    assert_eq!(ready(&suspended), ready(&begun));
}
