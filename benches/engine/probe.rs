//! Looks at processes and at the API server from outside.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Request;

use crate::support::control_plane::ControlPlane;
use crate::support::world::Agent;

/// Requests since the start of the API server, by verb and resource. Those under way, as watches are, do not count yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests(BTreeMap<(String, String), u64>);

impl Requests {
    /// Asks the API server.
    pub(crate) async fn so_far(client: &kube::Client) -> Self {
        let request = Request::get("/metrics").body(Vec::new()).unwrap();
        let text = client.request_text(request).await.unwrap();
        let mut found = Self::default();
        for line in text.lines() {
            let Some(labels) = line.strip_prefix("apiserver_request_total{") else {
                continue;
            };
            let label = |name: &str| {
                let (_, rest) = labels.split_once(&format!("{name}=\"")).unwrap_or_default();
                rest.split('"').next().unwrap_or_default().to_owned()
            };
            let count = line.rsplit(' ').next().unwrap().parse::<u64>().unwrap_or(0);
            *found
                .0
                .entry((label("verb"), label("resource")))
                .or_default() += count;
        }
        found
    }

    /// Returns what has come since an earlier look, without that look itself, which asks for no resource.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let counts = self.0.iter().map(|(key, count)| {
            let before = earlier.0.get(key).copied().unwrap_or(0);
            (key.clone(), count - before)
        });
        Self(
            counts
                .filter(|((_, resource), count)| *count > 0 && !resource.is_empty())
                .collect(),
        )
    }

    /// Returns the same without the API server's own requests, which were counted while nothing else was there for `1 / times`
    /// of the time.
    pub(crate) fn without(mut self, idle: &Self, times: u64) -> Self {
        for (key, own) in &idle.0 {
            if let Some(count) = self.0.get_mut(key) {
                *count = count.saturating_sub(own * times);
            }
        }
        self
    }

    /// Counts the requests that are neither watches nor about leases.
    pub(crate) fn ordinary(&self) -> u64 {
        self.sum(|verb, resource| verb != "WATCH" && resource != "leases")
    }

    /// Counts the ordinary requests that write.
    pub(crate) fn writes(&self) -> u64 {
        self.sum(|verb, resource| !matches!(verb, "WATCH" | "GET" | "LIST") && resource != "leases")
    }

    /// Counts the writes on leases.
    pub(crate) fn renewals(&self) -> u64 {
        self.sum(|verb, resource| !matches!(verb, "WATCH" | "GET" | "LIST") && resource == "leases")
    }

    /// Counts the requests for single objects of a resource, and those that write.
    pub(crate) fn single(&self, of: &str) -> (u64, u64) {
        let all = self.sum(|verb, resource| {
            resource == of && !matches!(verb, "WATCH" | "LIST" | "DELETECOLLECTION")
        });
        let reads = self.sum(|verb, resource| resource == of && verb == "GET");
        (all, all - reads)
    }

    fn sum(&self, counts: impl Fn(&str, &str) -> bool) -> u64 {
        let counted = self
            .0
            .iter()
            .filter(|((verb, resource), _)| counts(verb, resource));
        counted.map(|(_, count)| count).sum()
    }
}

/// Returns the time from the moment before the agent's first request of a plan with so many actions to its last answer: the
/// first is a line of its log, the others are audit lines.
pub(crate) fn applying(agent: &Agent, actions: usize) -> Duration {
    let time = |text: &serde_json::Value| text.as_str().unwrap().parse::<jiff::Timestamp>();
    let log = agent.log();
    let begun = log
        .lines()
        .rfind(|line| {
            line.contains("\"executing\"") && line.contains(&format!("\"plan.actions\":{actions}"))
        })
        .unwrap();
    let begun: serde_json::Value = serde_json::from_str(begun).unwrap();
    let lines = agent.audit();
    let last = time(&lines[lines.len() - 1]["time"]).unwrap();
    let begun = time(&begun["timestamp"]).unwrap();
    Duration::try_from(last.duration_since(begun)).unwrap()
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
