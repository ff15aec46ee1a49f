//! What an agent costs that has nothing to do.

use std::time::Duration;

use serde_json::json;

use crate::catalog::{follow, runtime, world};
use crate::probe::{Requests, memory, processor};
use crate::report::{Report, number};

/// Two runtimes in step, for so many seconds with the default interval.
pub(crate) async fn two_runtimes(report: &mut Report, seconds: u64) {
    let world = world(20, 1).await;
    let third = Duration::from_secs(seconds / 3);
    let runtimes = [runtime(&world, "one").await, runtime(&world, "two").await];
    let before = Requests::so_far(&world.client).await;
    tokio::time::sleep(third).await;
    let own = Requests::so_far(&world.client).await.since(&before);
    let spec = json!({"interval": "5m", "runtimes": {"catalog": "Sync", "tolerate": "0"}});
    let hooked = follow(world, spec).await;
    for runtime in &runtimes {
        hooked.world.until_runtime(runtime, "Synced").await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let process = hooked.agent.id();
    let before = Requests::so_far(&hooked.world.client).await;
    let used = processor(process);
    tokio::time::sleep(third * 3).await;
    let used = processor(process).saturating_sub(used);
    let found = Requests::so_far(&hooked.world.client).await.since(&before);
    let found = found.without(&own, 3);
    let minutes = (third * 3).as_secs_f64() / 60.0;
    report.row(
        "idle with two runtimes: memory; requests other than watches and leases, a minute",
        "≤ 40 MiB; ≤ 2",
        format!(
            "{:.0} MiB; {:.1} (and {:.1} lease renewals; CPU {:.2} s)",
            memory(process).0,
            number(found.ordinary()) / minutes,
            number(found.renewals()) / minutes,
            used.as_secs_f64() / minutes
        ),
        "",
    );
}
