//! Looks at processes and at the API server from outside.

use std::time::Duration;

use http::Request;

use crate::support::control_plane::ControlPlane;

/// Requests since the start of the API server that were neither watches nor the lists that begin them: all, and those that
/// write.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Requests {
    pub(crate) all: u64,
    pub(crate) writes: u64,
}

/// Counts requests on a resource (all resources, if it is empty).
pub(crate) async fn requests(client: &kube::Client, resource: &str) -> Requests {
    let text = client
        .request_text(Request::get("/metrics").body(Vec::new()).unwrap())
        .await
        .unwrap();
    let mut found = Requests::default();
    for line in text
        .lines()
        .filter(|line| line.starts_with("apiserver_request_total{"))
    {
        let label = |name: &str| {
            let (_, rest) = line.split_once(&format!("{name}=\"")).unwrap_or(("", "\""));
            rest.split('"').next().unwrap_or_default()
        };
        // The API server renews a lease of its own; lists are how a watch begins.
        let own = label("resource") == "leases" || matches!(label("verb"), "WATCH" | "LIST");
        if own || (!resource.is_empty() && label("resource") != resource) {
            continue;
        }
        let count = line
            .rsplit(' ')
            .next()
            .and_then(|count| count.parse().ok())
            .unwrap_or(0);
        found.all += count;
        if label("verb") != "GET" {
            found.writes += count;
        }
    }
    found
}

/// Resident memory of a process in MiB, now and at its highest.
pub(crate) fn memory(process: u32) -> (f64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let kibibytes = |name: &str| -> f64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    (kibibytes("VmRSS:") / 1024.0, kibibytes("VmHWM:") / 1024.0)
}

/// Processor time that a process has used, of the hundredths of a second that Linux counts in.
pub(crate) fn processor(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// The process of the API server.
pub(crate) fn api_server(plane: &ControlPlane) -> u32 {
    let state = plane.kubeconfig().parent().unwrap();
    let text = std::fs::read_to_string(state.join("pids/apiserver")).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}
