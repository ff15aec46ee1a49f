//! From one replica to the next, with the default settings of the lease.

use std::time::Instant;

use serde_json::json;

use crate::replicas::{Replica, until_holder, until_lease};
use crate::report::{Report, spread};
use crate::support::control_plane::ControlPlane;
use crate::support::world::World;

/// Kills a leader, and stops its successor, so many times; a third one stands by each time.
pub(crate) async fn both(report: &mut Report, rounds: usize) {
    let world = World::on(ControlPlane::minimal()).await;
    world.config_map("web", "settings", "begin");
    world.repository.publish("Begin");
    let mut leader = Replica::start_with(&world, &["--identity", "replica-0"]).await;
    world.declare(json!({})).await;
    world.until_reason("Synced").await;
    let (mut killed, mut stopped) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    for round in 0..2 * rounds {
        let name = format!("replica-{}", round + 1);
        let next = Replica::start_with(&world, &["--identity", &name]).await;
        next.until_logged("the lease has a holder", 1).await;
        // What the next one finds to do as soon as it leads.
        let value = format!("round-{round}");
        world.config_map("web", "settings", &value);
        world.repository.publish("Change settings");
        // Right after a renewal, which is the longest wait.
        let renewed = until_lease(&world, "held", |lease| lease.renew_time.is_some()).await;
        let renewed = renewed.spec.unwrap().renew_time;
        until_lease(&world, "renewed", |lease| lease.renew_time != renewed).await;
        let begun = Instant::now();
        let times = if round % 2 == 0 {
            leader.agent.kill();
            &mut killed
        } else {
            leader.signal("TERM");
            &mut stopped
        };
        until_holder(&world, &name).await;
        times.0.push(begun.elapsed().as_secs_f64());
        world.until_value("settings", Some(&value)).await;
        times.1.push(begun.elapsed().as_secs_f64());
        leader = next;
    }
    let words = |times: (Vec<f64>, Vec<f64>)| {
        let ((taken, _, worst), (applied, _, _)) = (spread(times.0), spread(times.1));
        format!("{taken:.2} s (worst {worst:.2}), first change applied after {applied:.2} s")
    };
    report.row(
        "takeover after kill -9 right after a renewal, with default lease settings; after a clean stop",
        "≤ 15 s; ≤ 1 s",
        format!("{}; {}", words(killed), words(stopped)),
        "",
    );
}
