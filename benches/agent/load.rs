//! Many deliveries, and many connections that deliver nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::catalog::{BETWEEN, follow, world};
use crate::forge::{Hooked, github};
use crate::probe::memory;
use crate::report::Report;

const DELIVERIES: u32 = 2_000;
const CONNECTIONS: usize = 10_000;

/// Two thousand deliveries, evenly over one second, with a change before them and one in their midst.
pub(crate) async fn burst(report: &mut Report) {
    let world = world(1, 1).await;
    world.config_map("web", "settings", "one");
    world.repository.publish("Add settings");
    let hooked = Arc::new(follow(world, json!({})).await);
    hooked.push("warm").await;
    tokio::time::sleep(BETWEEN).await;
    let (fetches, body) = (hooked.fetches(), hooked.body("refs/heads/main"));
    hooked.world.config_map("web", "settings", "two");
    hooked.world.repository.publish("First");
    hooked.world.config_map("web", "settings", "last");
    hooked.world.repository.commit("Last");
    let mut sending = JoinSet::new();
    let begun = Instant::now();
    for number in 0..DELIVERIES {
        let (hooked, body) = (Arc::clone(&hooked), body.clone());
        let headers = github(&format!("delivery-{number}"), &body);
        sending.spawn(async move {
            let due = begun + Duration::from_secs(1) * number / DELIVERIES;
            tokio::time::sleep_until(due.into()).await;
            if number == DELIVERIES / 2 {
                tokio::task::block_in_place(|| hooked.world.repository.push());
            }
            let asked = Instant::now();
            let status = hooked.send(&headers, &body).await.status;
            (status, asked.elapsed().as_secs_f64() * 1_000.0)
        });
    }
    let answers = sending.join_all().await;
    let seconds = begun.elapsed().as_secs_f64();
    let refused = answers.iter().filter(|answer| answer.0 != 200).count();
    let mut times: Vec<f64> = answers.iter().map(|answer| answer.1).collect();
    times.sort_by(f64::total_cmp);
    let (median, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    // Fails the measure when the last change is lost.
    hooked.world.until_value("settings", Some("last")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    report.row(
        "2,000 valid deliveries in a second: lost changes; fetches; answers' p99",
        "0; ≤ 2; ≤ 50 ms",
        format!(
            "0; {}; {p99:.1} ms (median {median:.1} ms; {refused} refused; answered within {seconds:.2} s)",
            hooked.fetches() - fetches
        ),
        "",
    );
}

/// Ten thousand connections that send headers which never end.
pub(crate) async fn slow_connections(report: &mut Report) {
    let world = world(1, 1).await;
    let hooked: Hooked = follow(world, json!({})).await;
    // What a first delivery allocates once is not what connections cost.
    assert_eq!(hooked.push("first").await.status, 200);
    tokio::time::sleep(BETWEEN).await;
    let (before, _) = memory(hooked.agent.id());
    let (address, slow) = (
        hooked.address.clone(),
        format!(
            "POST {} HTTP/1.1\r\nX-Slow: {}",
            hooked.path,
            "x".repeat(12 * 1024)
        ),
    );
    let mut flood = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (address, slow) = (address.clone(), slow.clone());
        flood.spawn(async move {
            let connecting = TcpStream::connect(address);
            let connected = tokio::time::timeout(Duration::from_secs(20), connecting).await;
            // Where the kernel's queue is full, that connection costs the agent nothing.
            if let Ok(Ok(mut stream)) = connected {
                let _ = stream.write_all(slow.as_bytes()).await;
                tokio::time::sleep(Duration::from_secs(20)).await;
            }
        });
    }
    let mut most = before;
    for _ in 0..25 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        most = most.max(memory(hooked.agent.id()).0);
    }
    let asked = Instant::now();
    let answer = hooked.push("during").await;
    let answered = asked.elapsed().as_millis();
    assert_eq!(answer.status, 200, "a forge gets through");
    most = most.max(memory(hooked.agent.id()).0);
    report.row(
        "memory while 10,000 slow connections hang on the webhook port",
        "+ ≤ 32 MiB",
        format!(
            "+ {:.1} MiB, from {before:.0} (a delivery meanwhile is answered in {answered} ms)",
            most - before
        ),
        "",
    );
    flood.shutdown().await;
}
