//! Steps in their order, with what they leave.

use serde_json::json;

use super::kit::*;
use crate::model::api::{Resolution, RunPhase, StepState};
use crate::runs::memory::Write;

#[tokio::test(start_paused = true)]
async fn a_run_does_its_steps_and_proves_that_they_are_done() {
    let bench = Bench::new(logging());
    bench.world.put(claim("10Gi"));
    bench.world.put(set("10Gi"));
    bench.world.put(class(true));
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(
        said(&run.evidence),
        ["needed: true", "requires[0]: true", "needed: false"]
    );
    let steps: Vec<_> = run
        .steps
        .iter()
        .map(|step| (step.id.as_str(), step.state))
        .collect();
    assert_eq!(
        steps,
        [
            ("grow-claim", StepState::Done),
            ("release-set", StepState::Done)
        ]
    );
    assert!(run.evidence.iter().all(|one| one.at.is_some()));
    assert!(
        run.steps
            .iter()
            .all(|step| !step.evidence.is_empty() && step.started_at.is_some())
    );
    assert_eq!(
        run.steps[0].effect["objects"][0]["kind"],
        "PersistentVolumeClaim"
    );
    assert_eq!(run.current_step, None);
    // A second deploy finds nothing to do.
    bench.world.forget_run(NAME);
    let writes = bench.world.writes();
    assert_eq!(bench.converge().await, None);
    assert_eq!(bench.world.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn two_writes_belong_to_a_step_and_two_to_a_run() {
    let bench = Bench::new(two_steps());
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench.converge().await.unwrap();
    let log = bench.world.log();
    let verbs: Vec<_> = log
        .iter()
        .map(|entry| match entry.write {
            Write::Effect => "effect",
            Write::Record => entry.verb,
        })
        .collect();
    assert_eq!(
        verbs,
        [
            "create", "write", "effect", "write", "write", "effect", "write", "write"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_when_is_false_is_left_out_with_its_inputs() {
    let bench = Bench::new(two_steps());
    bench.world.put(config_map("one", json!({"size": "30"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(run.steps[0].state, StepState::Skipped);
    assert_eq!(said(&run.steps[0].evidence), ["when: false"]);
    assert_eq!(bench.effects(), ["patch ConfigMap a/two"]);
}

fn for_each() -> Bench {
    let bench = Bench::new(json!({
        "lookups": {"all": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "list": true}},
        "guard": {"needed": "objects.all.exists(c, c.data.size != '30')"},
        "steps": [
            {"id": "grow", "forEach": {"as": "map", "in": "objects.all"}, "when": "map.data.size != '30'",
             "patch": {"ref": "map", "body": {"data": {"size": "30", "from": "${map.data.size}"}}}},
        ],
    }));
    for (name, size) in [("one", "10"), ("two", "30"), ("three", "20")] {
        bench.world.put(config_map(name, json!({"size": size})));
    }
    bench
}

#[tokio::test(start_paused = true)]
async fn a_step_is_done_for_each_element_once() {
    let bench = for_each();
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    let steps: Vec<_> = run
        .steps
        .iter()
        .map(|step| (step.item.as_deref().unwrap_or("-"), step.state))
        .collect();
    assert_eq!(
        steps,
        [
            ("-", StepState::Done),
            ("a/one", StepState::Done),
            ("a/three", StepState::Done),
            ("a/two", StepState::Skipped),
        ]
    );
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn too_many_elements_are_refused_before_the_first_effect() {
    let mut definition = serde_json::to_value(&for_each().spec.definition).unwrap();
    definition["lookups"]["all"]["limit"] = 500.into();
    let bench = Bench::new(definition);
    for number in 0..101 {
        bench
            .world
            .put(config_map(&format!("m{number}"), json!({"size": "10"})));
    }
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, "StepFailed")
    );
    assert!(
        run.message.contains("101 elements, more than 100"),
        "{}",
        run.message
    );
    assert!(bench.effects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn outputs_reach_later_steps() {
    let mut definition = two_steps();
    definition["steps"][0] = json!({
        "id": "ask", "http": {"method": "GET", "url": "https://registry.example.com/size"},
        "outputs": {"size": "result.body.size"},
    });
    definition["steps"][1]["patch"]["body"] =
        json!({"data": {"size": "${steps.ask.outputs.size}"}});
    definition["guard"]["needed"] = "objects.two.data.size != '30'".into();
    let bench = Bench::new(definition);
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench.world.answer(Ok(crate::runs::HttpAnswer {
        status: 200,
        retry_after: None,
        body: json!({"size": "30"}),
    }));
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{run:#?}");
    assert_eq!(run.steps[0].outputs["size"], "30");
}

#[tokio::test(start_paused = true)]
async fn j15_a_guard_that_stays_needed_is_a_failure() {
    let mut definition = two_steps();
    definition["guard"]["needed"] = "true".into();
    let bench = Bench::new(definition);
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, "NotDone")
    );
    assert!(
        run.message.contains("`needed` is still true"),
        "{}",
        run.message
    );
    assert!(run.message.contains("fairway run retry"), "{}", run.message);
    assert_eq!(run.open_proofs, 5);
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn j15_a_cluster_that_settles_is_waited_for() {
    let mut definition = two_steps();
    definition["guard"]["doneWhen"] = "objects.status != null".into();
    definition["lookups"]["status"] =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "a", "name": "status"});
    let bench = Bench::new(definition);
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "30"})));
    let world = bench.world.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(15)).await;
        world.put(config_map("status", json!({})));
    });
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(run.open_proofs, 2);
    assert_eq!(said(&run.evidence).last().unwrap(), "doneWhen: true");
}

#[tokio::test(start_paused = true)]
async fn j17_a_run_ends_from_its_own_copy_of_the_definition() {
    let mut bench = Bench::new(two_steps());
    bench.world.put(config_map("one", json!({"size": "10"})));
    bench.world.put(config_map("two", json!({"size": "10"})));
    bench.record().await;
    // Git has other steps, or none, by now.
    bench.spec.definition.steps.clear();
    let run = status(&bench.converge().await.unwrap());
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert_eq!(bench.effects().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_record_waits_for_a_person() {
    for (resolution, phase, effects) in [
        (Resolution::Done, RunPhase::Succeeded, 0),
        (Resolution::Again, RunPhase::Succeeded, 2),
        (Resolution::Fail, RunPhase::Failed, 0),
    ] {
        let mut definition = two_steps();
        definition["policy"]["run"] = "OncePerCluster".into();
        let bench = Bench::new(definition);
        bench.world.put(config_map("one", json!({"size": "10"})));
        bench.world.put(config_map("two", json!({"size": "10"})));
        let run = bench.record().await;
        let run = bench
            .agent()
            .distrust(run, "it was lost", &bench.stop, |_| {})
            .await;
        assert_eq!(status(&run).phase, RunPhase::Manual);
        assert_eq!(status(&bench.drive().await).reason, "RecordLost");
        assert!(bench.effects().is_empty());
        bench.resolve(resolution);
        assert_eq!(status(&bench.drive().await).phase, phase);
        assert_eq!(bench.effects().len(), effects);
    }
}
