//! What guards decide, and what is asked for them.

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use super::kit::*;
use crate::model::api::{RunPhase, RunVerb};
use crate::model::migration::Decision;
use crate::runs::{EffectError, LookupCache, Sight};

#[tokio::test(start_paused = true)]
async fn j01_a_fresh_install_is_not_needed_and_writes_nothing() {
    let bench = Bench::new(logging());
    let cache = LookupCache::new();
    let judgement = bench
        .agent()
        .judge(&bench.spec, &cache, &Sight::default())
        .await;
    assert_eq!(judgement.decision, Decision::NotNeeded, "{judgement:?}");
    assert_eq!(said(&judgement.evidence), ["needed: false"]);
    assert_eq!(bench.converge().await, None);
    assert_eq!(bench.world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn j02_a_hundred_migrations_ask_once_for_what_they_share() {
    let bench = Bench::new(logging());
    let (agent, cache) = (bench.agent(), LookupCache::new());
    let now = Sight::default();
    let all = (0..100).map(|_| agent.judge(&bench.spec, &cache, &now));
    let all = futures::future::join_all(all).await;
    assert!(all.iter().all(|one| one.decision == Decision::NotNeeded));
    // The guard names three lookups.
    assert_eq!(cache.requests(), 3);
    assert_eq!(bench.world.writes(), 0);
}

#[rstest]
#[case("30Mi", Decision::Run)]
#[case("50Gi", Decision::NotNeeded)]
#[case("30Gi", Decision::NotNeeded)]
#[tokio::test(start_paused = true)]
async fn j10_sizes_are_compared_with_their_units(#[case] size: &str, #[case] decision: Decision) {
    let bench = Bench::new(logging());
    bench.world.put(claim(size));
    bench.world.put(class(true));
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    assert_eq!(judgement.decision, decision, "{judgement:?}");
}

#[tokio::test(start_paused = true)]
async fn j11_a_precondition_that_is_false_blocks_with_its_message_and_no_effect() {
    let bench = Bench::new(logging());
    bench.world.put(claim("10Gi"));
    bench.world.put(class(false));
    let run = bench.drive().await;
    let blocked = status(&run);
    assert_eq!(blocked.phase, RunPhase::Blocked);
    assert_eq!(blocked.reason, "RequirementFalse");
    for part in [
        "must allow volume expansion",
        "https://example.com/loki",
        "fairway run override",
    ] {
        assert!(blocked.message.contains(part), "{}", blocked.message);
    }
    assert_eq!(
        said(&blocked.evidence),
        ["needed: true", "requires[0]: false"]
    );
    assert!(blocked.next_at.is_some());
    // The same answer again is not written again.
    let writes = bench.world.writes();
    let run = bench.drive().await;
    assert_eq!(status(&run).phase, RunPhase::Blocked);
    assert_eq!(
        bench.world.writes(),
        writes + 1,
        "only the attempt to create the record"
    );
    assert!(bench.effects().is_empty());

    bench.world.put(class(true));
    assert_eq!(status(&bench.drive().await).phase, RunPhase::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn j11_an_override_counts_until_its_time_is_over() {
    let bench = Bench::new(logging());
    bench.world.put(claim("10Gi"));
    bench.world.put(class(false));
    bench.drive().await;
    let mut command = bench.say(RunVerb::Override);
    command.until = Some(bench.clock.now() + SignedDuration::from_secs(60));
    bench.commands.send_replace(Some(command.clone()));
    // It was given, and before anybody acted on it its time was over.
    bench.clock.jump(3600);
    assert_eq!(status(&bench.drive().await).phase, RunPhase::Blocked);
    assert!(bench.effects().is_empty());

    command.at = bench.clock.now();
    command.until = Some(bench.clock.now() + SignedDuration::from_secs(60));
    bench.commands.send_replace(Some(command));
    let run = status(&bench.drive().await);
    assert_eq!(run.phase, RunPhase::Succeeded, "{}", run.message);
    assert!(
        run.timeline
            .iter()
            .any(|line| line.what.contains("override by anna: because"))
    );
    assert_eq!(run.commands.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn j11_onfalse_skip_leaves_the_migration_out() {
    let mut definition = logging();
    definition["guard"]["requires"][0]["onFalse"] = "Skip".into();
    let bench = Bench::new(definition);
    bench.world.put(claim("10Gi"));
    bench.world.put(class(false));
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    assert_eq!(judgement.decision, Decision::Skip);
    let run = status(&bench.drive().await);
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Superseded, "Skipped")
    );
    assert!(bench.effects().is_empty());
}

#[rstest]
#[case(EffectError::Forbidden("forbidden: get persistentvolumeclaims".to_owned()))]
#[case(EffectError::Transient { message: "no answer".to_owned(), retry_after: None })]
#[tokio::test(start_paused = true)]
async fn j12_a_guard_that_stays_unknown_fails_and_is_never_taken_for_false(
    #[case] error: EffectError,
) {
    let bench = Bench::new(logging());
    let claims = kind("v1", "PersistentVolumeClaim");
    bench.world.refuse_reads(&claims, Some(error));
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    assert_eq!(judgement.decision, Decision::Unknown);
    let run = status(&bench.drive().await);
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Failed, "GuardUnknown")
    );
    assert!(run.message.contains("lookup `claim`"), "{}", run.message);
    assert_eq!(run.unknown_guards, 5);
    assert!(bench.effects().is_empty());
    // Four delays of 10, 20, 40 and 80 s, of which a fifth is spread.
    assert!(
        (120_000..=150_000).contains(&run.active_milliseconds),
        "{}",
        run.active_milliseconds
    );
}

#[rstest]
#[case::missing_member("objects.claim.spec.nothing == 1")]
#[case::hidden_by_a_negation("!has(objects.other)")]
#[case::no_truth_value("1")]
#[tokio::test(start_paused = true)]
async fn i6_what_has_no_value_is_unknown(#[case] needed: &str) {
    let mut definition = logging();
    definition["guard"]["needed"] = needed.into();
    definition["lookups"]["other"] =
        json!({"apiVersion": "v1", "kind": "Secret", "namespace": "a", "name": "b"});
    let bench = Bench::new(definition);
    bench.world.put(claim("10Gi"));
    let refused = EffectError::Forbidden("no".to_owned());
    bench
        .world
        .refuse_reads(&kind("v1", "Secret"), Some(refused));
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    assert_eq!(judgement.decision, Decision::Unknown, "{judgement:?}");
}

fn of_release(introduced: &str, removed: &str, to: &str) -> Bench {
    let mut definition = logging();
    definition["lifecycle"] =
        json!({"introducedIn": introduced, "removeIn": removed, "never": null});
    let mut bench = Bench::new(definition);
    bench.spec.to = Some(to.to_owned());
    bench.world.put(claim("10Gi"));
    bench.world.put(class(true));
    bench
}

#[tokio::test(start_paused = true)]
async fn j13_an_expired_migration_is_not_executed() {
    let bench = of_release("1.23.0", "1.26.0", "1.26.0");
    bench.world.put(claim("50Gi"));
    assert_eq!(bench.converge().await, None);
    assert_eq!(bench.world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn j14_an_expired_migration_that_is_needed_blocks_and_names_the_skipped_release() {
    let bench = of_release("1.23.0", "1.26.0", "1.26.0");
    let run = status(&bench.drive().await);
    assert_eq!(
        (run.phase, run.reason.as_str()),
        (RunPhase::Blocked, "HopSkipped")
    );
    for part in ["1.23.0", "1.26.0", "components/logging", "skipped"] {
        assert!(run.message.contains(part), "{}", run.message);
    }
    // Nobody may wave it through: there is nothing that could be done.
    let mut command = bench.say(RunVerb::Override);
    command.until = Some(bench.clock.now() + SignedDuration::from_secs(3600));
    bench.commands.send_replace(Some(command));
    assert_eq!(status(&bench.drive().await).phase, RunPhase::Blocked);
    assert!(bench.effects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn j14_a_retired_migration_blocks_where_it_is_needed() {
    let mut definition = logging();
    definition["steps"] = json!([]);
    let bench = Bench::new(definition);
    bench.world.put(claim("10Gi"));
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    assert_eq!(judgement.decision, Decision::Block);
}

#[rstest]
#[case("1.22.9", Decision::NotNeeded)]
#[case("1.23.0", Decision::Run)]
#[case("1.25.7", Decision::Run)]
#[case("1.26.0", Decision::Block)]
#[tokio::test(start_paused = true)]
async fn a_migration_takes_part_from_introduced_until_removed(
    #[case] to: &str,
    #[case] decision: Decision,
) {
    let bench = of_release("1.23.0", "1.26.0", to);
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    assert_eq!(judgement.decision, decision, "{judgement:?}");
}

#[rstest]
#[case("WhenNeeded", "false", Decision::NotNeeded)]
#[case("OncePerCluster", "false", Decision::NotNeeded)]
#[case("OncePerHop", "true", Decision::Run)]
#[case("Always", "false", Decision::Run)]
#[tokio::test(start_paused = true)]
async fn a_policy_says_what_needed_means(
    #[case] policy: &str,
    #[case] needed: &str,
    #[case] decision: Decision,
) {
    let mut definition = two_steps();
    definition["policy"]["run"] = policy.into();
    definition["guard"]["needed"] = needed.into();
    let bench = Bench::new(definition);
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    assert_eq!(judgement.decision, decision, "{judgement:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_beyond_its_limit_is_unknown() {
    let mut definition = two_steps();
    definition["lookups"]["all"] =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "list": true, "limit": 2});
    definition["guard"]["needed"] = "objects.all.size() > 0".into();
    let bench = Bench::new(definition);
    for name in ["one", "two", "three"] {
        bench.world.put(config_map(name, json!({"size": "10"})));
    }
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    assert_eq!(judgement.decision, Decision::Unknown);
    assert!(judgement.message.contains('2'), "{}", judgement.message);
}

#[tokio::test(start_paused = true)]
async fn a_secret_shows_nothing_but_its_keys() {
    let mut definition = two_steps();
    definition["lookups"]["secret"] =
        json!({"apiVersion": "v1", "kind": "Secret", "namespace": "a", "name": "key"});
    definition["guard"]["needed"] =
        "has(objects.secret.data.password) && objects.secret.data.password != 'x'".into();
    let bench = Bench::new(definition);
    bench.world.put(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "key"},
        "data": {"password": "aHVudGVyMg=="},
    }));
    let judgement = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    let told = format!("{judgement:?}");
    assert!(!told.contains("aHVudGVyMg"), "{told}");
    let values: Vec<&Value> = judgement.evidence[0].values.values().collect();
    assert!(values.contains(&&Value::Bool(true)), "{values:?}");
}

/// A migration of one step, which patches an object in the namespace that a text names.
fn in_namespace(namespace: &str, each: Value) -> Bench {
    let mut step = json!({
        "id": "mark",
        "patch": {
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "mark"},
            "body": {"data": {"value": "done"}},
        },
    });
    if !each.is_null() {
        step["forEach"] = each;
    }
    Bench::new(json!({
        "params": {"where": "b"},
        "lookups": {"maps": {"apiVersion": "v1", "kind": "ConfigMap", "list": true}},
        "guard": {"needed": "true"},
        "steps": [step],
    }))
}

#[rstest]
#[case::a_parameter("${params.where}", Value::Null, Some("b"))]
#[case::a_lookup("${objects.maps[0].metadata.namespace}", Value::Null, Some("a"))]
#[case::an_element("${map.metadata.namespace}", json!({"as": "map", "in": "objects.maps"}), Some("a"))]
#[case::an_earlier_step(r#"${steps["other"].outputs.where}"#, Value::Null, None)]
#[tokio::test(start_paused = true)]
async fn a_right_is_asked_for_in_the_namespace_that_an_expression_names(
    #[case] namespace: &str,
    #[case] each: Value,
    #[case] asked: Option<&str>,
) {
    let bench = in_namespace(namespace, each);
    bench.world.put(config_map("mark", json!({})));
    bench.world.refuse_right("patch", "configmaps", true);
    let judged = bench
        .agent()
        .judge(&bench.spec, &LookupCache::new(), &Sight::default())
        .await;
    let Some(asked) = asked else {
        assert_eq!(judged.decision, Decision::Run, "{}", judged.message);
        return;
    };
    assert_eq!(judged.decision, Decision::Block, "{}", judged.message);
    let needs = format!("needs the right to patch configmaps mark in {asked};");
    assert!(judged.message.contains(&needs), "{}", judged.message);
    assert!(
        judged.message.contains(&format!("namespace: {asked}\n")),
        "{}",
        judged.message
    );
}
