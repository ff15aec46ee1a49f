//! What leaves the process beside statuses: Events, audit lines and metrics.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use rstest::rstest;

use super::*;
use crate::model::api::{Decision, DecisionKind, EventReason};

/// Reports one pass after another, and returns the notices of the last.
fn notices_of(passes: &[Pass]) -> Vec<(EventReason, String)> {
    let mut source = ReleaseSourceStatus::default();
    let mut target = TargetStatus::default();
    let mut last = Vec::new();
    for pass in passes {
        let report = pass.report();
        let source_after = source_status(&source, &report);
        let target_after = target_status(&target, &report);
        let change = Change {
            source: (&source, &source_after),
            target: (&target, &target_after),
        };
        last = notices(&change, &report);
        (source, target) = (source_after, target_after);
    }
    last.into_iter()
        .map(|notice| (notice.reason, notice.note))
        .collect()
}

#[rstest]
#[case(vec![Pass::quiet().with(|pass| pass.effects.push(effect("a", EffectKind::Apply, Why::Missing, EffectResult::Changed)))],
    EventReason::RevisionApplied, "applied main@0123456789 by Jane Doe with 1 change")]
#[case(vec![Pass::quiet(), Pass::quiet().with(|pass| pass.fetched = Err(refused(true)))],
    EventReason::FetchFailed, "failed to fetch: the server answered 403; check the Secret `git-credentials`")]
#[case(vec![Pass::quiet().with(|pass| pass.fetched = Err(refused(true))), Pass::quiet()],
    EventReason::FetchRecovered, "read main@0123456789")]
#[case(vec![Pass::quiet(), Pass::quiet().with(|pass| pass.plan.holds.push(hold("a", HoldReason::Conflict)))],
    EventReason::HoldAppeared, "Conflict: a (components/a.yaml:3:1): because")]
#[case(vec![Pass::quiet(), Pass::quiet().with(|pass| pass.plan.pending = Some(pending(&["a"])))],
    EventReason::DeletionHeld, "1 deletion held as v1:1: more than 20% of 42 objects.; ConfigMap apps/a")]
#[case(vec![Pass::quiet(), Pass::quiet().with(|pass| pass.effects.push(effect("a", EffectKind::Delete, Why::Removed, EffectResult::Changed)))],
    EventReason::PruneDone, "deleted 1 object: ConfigMap apps/a")]
#[case(vec![Pass::quiet(), Pass::quiet().with(|pass| pass.effects.push(effect("a", EffectKind::Apply,
    Why::Drifted(vec!["data.key".to_owned()]), EffectResult::Changed)))],
    EventReason::DriftCorrected, "brought ConfigMap apps/a back to what git says: data.key")]
fn a_change_is_one_event(
    #[case] passes: Vec<Pass>,
    #[case] reason: EventReason,
    #[case] note: &str,
) {
    assert_eq!(notices_of(&passes), [(reason, note.to_owned())]);
}

#[test]
fn many_drifted_objects_are_counted_not_listed() {
    let drifted = Pass::quiet().with(|pass| {
        for index in 0..25 {
            let why = Why::Drifted(vec!["data.key".to_owned()]);
            pass.effects.push(effect(
                &format!("a{index}"),
                EffectKind::Apply,
                why,
                EffectResult::Changed,
            ));
        }
    });
    let found = notices_of(&[Pass::quiet(), drifted]);
    assert_eq!(found.len(), 11);
    assert_eq!(found[10].1, "and 15 more in this pass");
}

/// A stream that a test can read while the log holds its other end.
#[derive(Clone, Default)]
struct Stream(Arc<Mutex<Vec<u8>>>);

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_effect_is_one_audit_line() {
    let stream = Stream::default();
    let pass = Pass::quiet().with(|pass| {
        let drifted = Why::Drifted(vec!["data.key".to_owned()]);
        pass.effects.push(effect(
            "a",
            EffectKind::Apply,
            drifted,
            EffectResult::Changed,
        ));
        pass.effects.push(effect(
            "b",
            EffectKind::Delete,
            Why::Removed,
            EffectResult::Failed("denied\nby a webhook".to_owned()),
        ));
    });
    let report = pass.report();
    let origin = Origin {
        source: report.source,
        cluster: report.cluster,
        revision: report.revision.unwrap(),
        commit: report.commit,
    };
    let audit = AuditLog::new(stream.clone());
    for effect in report.effects {
        audit.record(&origin, effect).unwrap();
    }
    let text = String::from_utf8(stream.0.lock().unwrap().clone()).unwrap();
    let digest = "v1:a";
    let expected = format!(
        concat!(
            r#"{{"schema":"fairway.dev/audit/v1","time":"1970-01-01T00:16:41Z","source":"modules","cluster":"home","#,
            r#""revision":"main@sha1:0123456789abcdef0123456789abcdef01234567","author":"Jane Doe","action":"apply","#,
            r#""object":{{"kind":{{"group":"","kind":"ConfigMap"}},"namespace":"apps","name":"a"}},"#,
            r#""digest":"{digest}","why":"drifted","details":["data.key"],"result":"changed"}}"#,
            "\n",
            r#"{{"schema":"fairway.dev/audit/v1","time":"1970-01-01T00:16:41Z","source":"modules","cluster":"home","#,
            r#""revision":"main@sha1:0123456789abcdef0123456789abcdef01234567","author":"Jane Doe","action":"delete","#,
            r#""object":{{"kind":{{"group":"","kind":"ConfigMap"}},"namespace":"apps","name":"b"}},"#,
            r#""why":"removed","result":"failed","error":"denied\nby a webhook"}}"#,
            "\n",
        ),
        digest = digest
    );
    assert_eq!(text, expected);
}

#[test]
fn a_decision_is_one_audit_line() {
    let stream = Stream::default();
    let audit = AuditLog::new(stream.clone());
    let source: SourceName = "modules".parse().unwrap();
    let decision = Decision {
        kind: DecisionKind::Prune,
        digest: "v1:set".to_owned(),
        by: "Jane Doe".to_owned(),
        reason: "retired".to_owned(),
        at: Timestamp::from_second(1_000).unwrap(),
    };
    let details = ["2 deletions".to_owned()];
    let approved = Decided {
        at: Timestamp::from_second(1_001).unwrap(),
        source: &source,
        namespace: "fairway-system",
        cluster: "home",
        action: DecisionAction::ApprovePrune,
        decision: Some(&decision),
        details: &details,
    };
    audit.decided(&approved).unwrap();
    let suspended = Decided {
        action: DecisionAction::Suspend,
        decision: None,
        details: &[],
        ..approved
    };
    audit.decided(&suspended).unwrap();
    let text = String::from_utf8(stream.0.lock().unwrap().clone()).unwrap();
    let object = r#""object":{"kind":{"group":"fairway.dev","kind":"ReleaseSource"},"namespace":"fairway-system","name":"modules"}"#;
    let head = r#"{"schema":"fairway.dev/audit/v1","time":"1970-01-01T00:16:41Z","source":"modules","cluster":"home""#;
    let expected = format!(
        "{head},\"action\":\"approve-prune\",{object},{}\n{head},\"action\":\"suspend\",{object},{}\n",
        concat!(
            r#""digest":"v1:set","why":"decided","details":["2 deletions"],"#,
            r#""decision":{"by":"Jane Doe","reason":"retired","at":"1970-01-01T00:16:40Z"},"result":"accepted"}"#
        ),
        r#""why":"decided","result":"accepted"}"#
    );
    assert_eq!(text, expected);
}

#[test]
fn metrics_count_a_pass_and_forget_a_source() {
    let metrics = Metrics::new();
    let before = ReleaseSourceStatus::default();
    let pass = Pass::quiet().with(|pass| {
        pass.effects.push(effect(
            "a",
            EffectKind::Apply,
            Why::Missing,
            EffectResult::Changed,
        ));
    });
    let after = source_status(&before, &pass.report());
    metrics.passed(&pass.report(), &before, &after);
    metrics.fetched(&pass.source, Err(&refused(false)));
    let held =
        Pass::quiet().with(|pass| pass.plan.holds = vec![hold("a", HoldReason::Conflict); 2]);
    let last = source_status(&after, &held.report());
    metrics.passed(&held.report(), &after, &last);
    let text = metrics.render();
    for line in [
        r#"fairway_passes_total{source="modules",result="Synced"} 1"#,
        r#"fairway_fetches_total{source="modules",result="refused"} 1"#,
        r#"fairway_actions_total{action="apply",result="changed"} 1"#,
        r#"fairway_holds{source="modules",reason="Conflict"} 2"#,
        r#"fairway_last_applied_timestamp_seconds{source="modules"} 1002.0"#,
        "fairway_commit_to_applied_seconds_sum 12.0",
        "fairway_pass_duration_seconds_count 2",
        "# EOF",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
    assert!(text.contains(r#"fairway_build_info{version=""#));
    metrics.forget(&pass.source, &last);
    assert!(!metrics.render().contains("fairway_holds{"));
}
