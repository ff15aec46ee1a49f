//! Channel moves: from the delivery of a webhook to what users of a runtime see.

use std::time::Instant;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::catalog::{BETWEEN, Sight, follow, runtime, set, world};
use crate::forge::Hooked;
use crate::report::{Report, spread};
use crate::support::fleet::Runtime;
use crate::support::line::{Line, State};

const META: &str = "ModuleReleaseMeta";

/// Moves a channel, and returns the milliseconds from the moment before the delivery until each has it.
async fn one_move(hooked: &Hooked, patch: usize, sights: &[&Sight]) -> Vec<f64> {
    set(&hooked.world, 0, patch);
    hooked.world.repository.publish("Move the channels");
    tokio::time::sleep(BETWEEN).await;
    let begun = Instant::now();
    let answer = hooked.push(&format!("move-{patch}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = join_all(sights.iter().map(|sight| sight.offers(0, patch))).await;
    let after = |at: Instant| at.duration_since(begun).as_secs_f64() * 1_000.0;
    seen.into_iter().map(after).collect()
}

/// A webhook, home and two runtimes.
pub(crate) async fn two_runtimes(report: &mut Report, rounds: usize) {
    let world = world(1, rounds + 1).await;
    let runtimes = [runtime(&world, "one").await, runtime(&world, "two").await];
    let hooked = follow(
        world,
        json!({"runtimes": {"catalog": "Sync", "tolerate": "0"}}),
    )
    .await;
    let mut sights = vec![Sight::of(vec![hooked.world.kyma(META)]).await];
    for runtime in &runtimes {
        hooked.world.until_runtime(runtime, "Synced").await;
        sights.push(Sight::of(vec![hooked.world.catalog_api(runtime, META)]).await);
    }
    let sights: Vec<&Sight> = sights.iter().collect();
    let (mut home, mut all) = (Vec::new(), Vec::new());
    for patch in 1..=rounds {
        let times = one_move(&hooked, patch, &sights).await;
        home.push(times[0]);
        all.push(times.into_iter().fold(0.0, f64::max));
    }
    let ((home, _, _), (median, low, high)) = (spread(home), spread(all));
    report.row(
        format!("webhook received → applied on home and visible on both runtimes, median and worst of {rounds} channel moves"),
        "≤ 200 ms; ≤ 1 s",
        format!("{median:.0} ms; {high:.0} ms (best {low:.0}; home alone {home:.0})"),
        "",
    );
}

/// A new runtime and its whole catalog of twenty modules.
pub(crate) async fn new_runtime(report: &mut Report, rounds: usize) {
    let world = world(20, 1).await;
    let hooked = follow(
        world,
        json!({"runtimes": {"catalog": "Sync", "tolerate": "0"}}),
    )
    .await;
    let world = &hooked.world;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.apps);
    let mut times = Vec::new();
    for round in 0..rounds {
        let runtime = Runtime {
            name: format!("new-{round}"),
            namespace: world.plane.namespace().await,
            line: Line::to(world.api_server()).await,
        };
        let kinds = ["ModuleTemplate", META].map(|kind| world.catalog_api(&runtime, kind));
        let sight = Sight::of(kinds.to_vec()).await;
        world.kyma_of(&runtime.name, json!({}), json!([])).await;
        let secret = json!({
            "metadata": {
                "name": format!("kubeconfig-{}", runtime.name),
                "labels": {"operator.kyma-project.io/kyma-name": runtime.name},
                "annotations": {"fairway.dev/namespace": runtime.namespace},
            },
            "stringData": {"config": world.kubeconfig_of(&runtime)},
        });
        let secret = serde_json::from_value(secret).unwrap();
        // The Kyma is there and waits for its access: this is the last that the agent needs.
        let begun = Instant::now();
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
        times.push(sight.has(40).await.duration_since(begun).as_secs_f64());
        world.until_runtime(&runtime, "Synced").await;
    }
    let (median, low, high) = spread(times);
    report.row(
        "a new runtime → its whole catalog of 20 modules there",
        "≤ 0.5 s",
        format!("{median:.2} s ({low:.2}–{high:.2})"),
        "",
    );
}

/// One of five runtimes takes connections and never answers.
pub(crate) async fn one_of_five_silent(report: &mut Report, rounds: usize) {
    let world = world(1, 2 * rounds + 1).await;
    let mut runtimes = Vec::new();
    for number in 0..5 {
        runtimes.push(runtime(&world, &format!("runtime-{number}")).await);
    }
    let hooked = follow(
        world,
        json!({"runtimes": {"catalog": "Sync", "tolerate": "1"}}),
    )
    .await;
    let mut sights = Vec::new();
    for runtime in &runtimes {
        hooked.world.until_runtime(runtime, "Synced").await;
        sights.push(Sight::of(vec![hooked.world.catalog_api(runtime, META)]).await);
    }
    let others: Vec<&Sight> = sights[1..].iter().collect();
    let mut medians = Vec::new();
    for disturbed in [false, true] {
        if disturbed {
            runtimes[0].line.set(State::Silent);
        }
        let mut times = Vec::new();
        for round in 1..=rounds {
            let patch = round + usize::from(disturbed) * rounds;
            times.extend(one_move(&hooked, patch, &others).await);
        }
        medians.push(spread(times).0);
    }
    report.row(
        format!("one of five runtimes blackholed: the others' median over {rounds} moves, against as many undisturbed"),
        "≤ 1.1 ×",
        format!(
            "{:.2} × ({:.0} ms of {:.0} ms)",
            medians[1] / medians[0],
            medians[1],
            medians[0]
        ),
        "",
    );
}
