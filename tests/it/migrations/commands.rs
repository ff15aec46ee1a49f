//! What people see of runs, and what they do about them, over the Kubernetes API alone.

use fairway::model::api::{Resolution, Run, RunPhase, RunVerb};
use serde_json::{Value, json};

use super::records::{hand, minutes_ago, record, runs};
use crate::support::world::World;

/// What differs from run to run.
fn filters(world: &World) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    let kubeconfig = format!(
        "--kubeconfig {} -n {} ",
        world.plane.kubeconfig().display(),
        world.name
    );
    for (pattern, name) in [
        (kubeconfig.as_str(), ""),
        (world.name.as_str(), "SOURCE"),
        (world.apps.as_str(), "APPS"),
        (r"https://127\.0\.0\.1:[0-9]+", "https://git.example.com"),
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+Z?", "TIME"),
    ] {
        settings.add_filter(pattern, name);
    }
    settings
}

async fn blocked(world: &World) -> Run {
    let since = minutes_ago(12);
    let definition = json!({
        "description": "Grow the volume of the logs before the manifests ask for the larger one.",
        "params": {"size": "30Gi"},
        "guard": {
            "needed": "objects.claim != null\n  && quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size)",
            "requires": [{
                "cel": "objects.class.allowVolumeExpansion", "message": "The storage class must allow its volumes to grow.",
                "runbook": "https://runbooks.example.com/grow-logs",
            }],
        },
        "steps": [
            {"id": "grow-claim", "patch": {"ref": "claim", "body": {}}},
            {"id": "release-set", "delete": {"ref": "set", "propagation": "Orphan", "waitGone": true}},
        ],
    });
    let status = json!({
        "phase": "Blocked", "reason": "RequirementFalse", "since": since,
        "message": "The storage class must allow its volumes to grow.\nIt goes on by itself once that is so.",
        "evidence": [
            {"about": "needed", "expression": "quantity(objects.claim.spec.resources.requests.storage) < quantity(params.size)",
             "result": "true", "values": {"objects.claim.spec.resources.requests.storage": "10Gi", "params.size": "30Gi"}, "at": since},
            {"about": "requires[0]", "expression": "objects.class.allowVolumeExpansion", "result": "false",
             "values": {"objects.class.allowVolumeExpansion": false}, "at": since},
        ],
        "timeline": [{"at": since, "what": "requires[0] is false"}],
    });
    record(
        world,
        ("grow-logs", "5f1c2d3e"),
        json!({}),
        definition,
        status,
    )
    .await
}

async fn manual(world: &World) -> Run {
    let (began, since) = (minutes_ago(50), minutes_ago(45));
    let spec = json!({"component": "modules/gateway", "phase": "post", "from": null, "to": "2.1.0",
        "place": "modules/gateway/migrations/bill.yaml:1:1"});
    let definition = json!({
        "owner": "team-billing", "bind": {"phase": "post"}, "policy": {"run": "OncePerCluster", "idempotencyKey": "bill"},
        "steps": [
            {"id": "announce", "when": "false", "apply": {"manifest": {}}},
            {"id": "call", "http": {"method": "POST", "url": "https://billing.example.com/plans"}},
            {"id": "note", "apply": {"manifest": {}}},
        ],
    });
    let status = json!({
        "phase": "Manual", "since": since, "startedAt": began, "activeMilliseconds": 62_345, "currentStep": "call", "rounds": 1,
        "message": "step call: the answer of billing.example.com did not come; it may or may not have acted",
        "steps": [
            {"id": "announce", "state": "Skipped", "attempts": 0, "startedAt": began, "endedAt": began},
            {"id": "call", "state": "Unknown", "attempts": 2, "activeMilliseconds": 61_002, "startedAt": began,
             "message": "the answer of billing.example.com did not come"},
        ],
        "timeline": [{"at": began, "what": "the guard decided Run"}, {"at": since, "what": "waits for a person"}],
        "commands": [{"verb": "pause", "by": "night-shift", "reason": "billing is being upgraded", "at": began},
                     {"verb": "resume", "by": "night-shift", "reason": "billing is back", "at": since}],
    });
    record(world, ("bill", "0a1b2c3d"), spec, definition, status).await
}

async fn running(world: &World) -> Run {
    let began = minutes_ago(3);
    let spec = json!({"component": null, "action": null, "from": null, "to": null, "place": "migrations/store.yaml:1:1"});
    let steps = json!([
        {"id": "note", "apply": {"manifest": {}}},
        {"id": "rewrite", "rewrite": {"apiVersion": "v1", "kind": "ConfigMap"}},
        {"id": "check", "wait": {"until": "true"}},
    ]);
    let definition = json!({"owner": "platform", "steps": steps});
    let status = json!({
        "phase": "Waiting", "since": began, "startedAt": began, "currentStep": "rewrite", "activeMilliseconds": 1_500,
        "steps": [
            {"id": "note", "state": "Done", "attempts": 1, "activeMilliseconds": 30, "startedAt": began, "endedAt": began,
             "effect": {"object": "ConfigMap apps/note", "after": {"data": {"migrated": "yes"}}}},
            {"id": "rewrite", "state": "Waiting", "attempts": 2, "activeMilliseconds": 1_400, "startedAt": began,
             "nextAt": minutes_ago(-1), "message": "429 Too Many Requests", "progress": {"page": 7}},
        ],
        "timeline": [{"at": began, "what": "the guard decided Run"}],
    });
    record(world, ("store", "77889900"), spec, definition, status).await
}

async fn succeeded(
    world: &World,
    (migration, hash): (&str, &str),
    minutes: i64,
    undo: Value,
    undone: Value,
) -> Run {
    let ended = minutes_ago(minutes);
    let steps = json!([{"id": "relabel", "patch": {"ref": "set", "body": {}}}]);
    let status = json!({
        "phase": "Succeeded", "since": ended, "startedAt": ended, "endedAt": ended, "activeMilliseconds": 420, "rounds": 1,
        "steps": [{"id": "relabel", "state": "Done", "attempts": 1, "activeMilliseconds": 400, "startedAt": ended, "endedAt": ended}],
        "undoing": undone != json!([]), "undone": undone,
    });
    let definition = json!({"steps": steps, "undo": undo});
    record(
        world,
        (migration, hash),
        json!({"from": "1.20.0", "to": "1.21.0"}),
        definition,
        status,
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_listed_and_described_with_what_can_be_done_first() {
    let world = World::new().await;
    world.declare(json!({})).await;
    let settings = filters(&world);
    let _bound = settings.bind_to_scope();
    let (code, out, err) = world.fairway(&["get", "runs"]);
    assert_eq!((code, out.as_str()), (0, ""));
    assert_eq!(err, "no runs: a migration that is not needed leaves none\n");
    let (code, _, err) = world.fairway(&["describe", "run", "grow-logs"]);
    assert_eq!(code, 2, "{err}");

    let failed = json!({"phase": "Failed", "since": minutes_ago(3_000), "endedAt": minutes_ago(3_000), "message": "the volume is full"});
    record(
        &world,
        ("grow-logs", "01010101"),
        json!({}),
        json!({}),
        failed,
    )
    .await;
    blocked(&world).await;
    manual(&world).await;
    running(&world).await;
    let undo = json!([{"id": "restore", "patch": {"ref": "set", "body": {}}}]);
    succeeded(&world, ("relabel", "11111111"), 30, undo.clone(), json!([])).await;
    succeeded(&world, ("older", "22222222"), 9_000, json!([]), json!([])).await;
    let undone = json!([{"id": "restore", "state": "Done", "attempts": 1}]);
    succeeded(&world, ("oldest", "33333333"), 90_000, undo, undone).await;

    let show = |arguments: &[&str]| {
        let (code, out, err) = world.fairway(arguments);
        assert_eq!(code, 0, "{err}");
        format!("{out}[stderr]\n{err}")
    };
    insta::assert_snapshot!("get_runs", show(&["get", "runs"]));
    // Columns are as wide as the names in them.
    let all = show(&["get", "runs", "--all"]);
    let words = all
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    insta::assert_snapshot!("get_runs_all", words.collect::<Vec<_>>().join("\n"));
    insta::assert_snapshot!("describe_blocked", show(&["describe", "run", "grow-logs"]));
    insta::assert_snapshot!("describe_manual", show(&["describe", "run", "bill"]));
    insta::assert_snapshot!("describe_running", show(&["describe", "run", "store"]));
    insta::assert_snapshot!("logs", show(&["run", "logs", "bill"]));
    insta::assert_snapshot!("approvals", show(&["get", "approvals"]));
    insta::assert_snapshot!(
        "describe_source",
        show(&["describe", "source", &world.name])
    );
    let component = [
        "plan",
        "--remove",
        "components/logging",
        "--source",
        &world.name,
    ];
    insta::assert_snapshot!("remove", show(&component));
    let (code, out, _) = world.fairway(&[&component[..], &["--output", "json"]].concat());
    let effects: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, effects.as_array().unwrap().len()),
        (0, 3),
        "{effects}"
    );
    let (_, out, _) = world.fairway(&["get", "runs", "--all", "--output", "json"]);
    let all: Vec<Run> = serde_json::from_str(&out).unwrap();
    assert_eq!(all.len(), 7);
    let (_, out, _) = world.fairway(&["describe", "run", "bill", "--output", "yaml"]);
    assert_eq!(
        serde_yaml::from_str::<Run>(&out).unwrap(),
        all.into_iter()
            .find(|run| run.spec.migration == "bill")
            .unwrap()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_refused_where_it_makes_no_sense_and_waits_for_an_agent() {
    let world = World::new().await;
    let settings = filters(&world);
    let _bound = settings.bind_to_scope();
    world.declare(json!({})).await;
    let (blocked, manual) = (blocked(&world).await, manual(&world).await);
    let refused = |arguments: &[&str]| {
        let (code, out, err) = world.fairway(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        err
    };
    insta::assert_snapshot!(
        "resume_refused",
        refused(&["run", "resume", "grow-logs", "--reason", "go"])
    );
    insta::assert_snapshot!(
        "step_refused",
        refused(&["run", "resolve", "bill", "note", "done", "--reason", "seen"])
    );
    insta::assert_snapshot!(
        "for_refused",
        refused(&[
            "run",
            "override",
            "grow-logs",
            "--for",
            "25h",
            "--reason",
            "it is checked"
        ])
    );
    refused(&["run", "pause", "grow-logs"]);

    // Nobody is there: the wish stands, and the next one takes its place.
    let pause = [
        "run",
        "pause",
        "grow-logs",
        "--reason",
        "the store is being moved",
        "--by",
        "night",
        "--timeout",
        "1s",
    ];
    let (code, _, err) = world.fairway(&pause);
    assert_eq!(code, 1, "{err}");
    insta::assert_snapshot!("not_taken", err);
    let _agent = {
        let (code, _, err) = world.fairway(&[&pause[..2], &["bill", "--reason", "x"]].concat());
        assert_eq!(
            code, 2,
            "a run that waits for a person cannot be paused: {err}"
        );
        hand(&world, RunPhase::Running)
    };
    let (_, out, _) = world.fairway(&["get", "runs", "--output", "json"]);
    assert!(out.contains("the store is being moved"), "{out}");
    let (code, _, err) = world.fairway(&[
        "run",
        "resolve",
        "bill",
        "call",
        "done",
        "--reason",
        "the plan is there",
        "--by",
        "jane",
    ]);
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!("resolved", err);
    let stored = runs(&world)
        .get(manual.metadata.name.as_deref().unwrap())
        .await
        .unwrap();
    let commands = stored.status.unwrap().commands;
    let last = commands.last().unwrap();
    assert_eq!(
        (last.verb, last.resolution, last.by.as_str()),
        (RunVerb::Resolve, Some(Resolution::Done), "jane")
    );
    assert!(
        commands.windows(2).all(|pair| pair[0].at < pair[1].at),
        "{commands:?}"
    );
    // The agent took up the wish that had stood there; two runs are open now.
    let (code, _, err) = world.fairway(&[
        "cancel",
        &world.name,
        "--reason",
        "the maintenance is called off",
        "--by",
        "jane",
    ]);
    assert_eq!(code, 0, "{err}");
    insta::assert_snapshot!("cancelled", err);
    let stored = runs(&world)
        .get(blocked.metadata.name.as_deref().unwrap())
        .await
        .unwrap();
    let verbs: Vec<RunVerb> = stored
        .status
        .unwrap()
        .commands
        .iter()
        .map(|one| one.verb)
        .collect();
    assert_eq!(verbs, [RunVerb::Pause, RunVerb::Cancel]);
}
