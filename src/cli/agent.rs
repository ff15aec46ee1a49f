//! `fairway agent`: the daemon.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{connect, home_namespace, runtime};
use super::context::Context;
use super::failure::{Exit, Failure};
use super::identity;
use super::resources::parse_duration;
use super::signals::stopped_by_signals;
use crate::agent::clock;
use crate::agent::lease::{KeptLease, LeaseSettings};
use crate::agent::telemetry::{self, LogFormat};
use crate::agent::{Daemon, Heartbeats, Outlets, Replica, Settings};
use crate::cluster::AccessPolicy;
use crate::model::{limits, names};
use crate::report::{AuditLog, EventSink, LeaseMeasure, Metrics};
use crate::server::webhook::{self, Receiver, Routes};
use crate::server::{Probes, serve};

/// Arguments of `fairway agent`.
#[derive(Debug, Args)]
pub struct AgentArguments {
    /// Where mirrors of repositories are kept; what is lost there is fetched again
    #[arg(long, value_name = "DIR", default_value = "/var/cache/fairway")]
    cache_dir: PathBuf,
    /// Address of the private port with /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Let kubeconfigs of runtimes lead to this machine, as in tests and the demo
    #[arg(long)]
    allow_local_runtimes: bool,
    /// Address of the public port for webhooks, as 0.0.0.0:9292; otherwise there is none
    #[arg(long, value_name = "ADDRESS")]
    webhook_listen: Option<SocketAddr>,
    /// The form of log lines; by itself, human on a terminal and JSON elsewhere
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// What is logged, as tracing's directives have it
    #[arg(
        long,
        value_name = "FILTER",
        default_value = "info",
        env = "FAIRWAY_LOG"
    )]
    log: String,
    /// Who this replica is in the lease, such as the pod's name. No other process may have the same, and one that is started
    /// again with it goes on at once; by itself, the host's name and something random
    #[arg(long, value_name = "NAME", env = "FAIRWAY_IDENTITY")]
    identity: Option<String>,
    /// How long the lease lasts after a renewal: what a takeover from a killed replica takes at most
    #[arg(long, value_name = "TIME", value_parser = parse_lease_duration, default_value = "14s")]
    lease_duration: Duration,
    /// The lease that replicas share
    #[arg(long, value_name = "NAME", default_value = names::LEASE_HOME, hide = true)]
    lease_name: String,
}

pub(super) fn run(arguments: AgentArguments, context: &mut Context) -> Result<Exit, Failure> {
    telemetry::initialize(&arguments.log, arguments.log_format).map_err(Failure::of)?;
    crate::source::initialize().map_err(Failure::of)?;
    runtime()?.block_on(serve_until_told(arguments, context))
}

async fn serve_until_told(arguments: AgentArguments, context: &Context) -> Result<Exit, Failure> {
    let stop = stopped_by_signals()?;
    let (cluster, default_namespace) = connect(&context.cluster).await?;
    let namespace = home_namespace(&context.cluster, &default_namespace);
    let lease = lease_settings(&arguments, &namespace);
    let heartbeats = Heartbeats::default();
    let metrics = Arc::new(Metrics::new());
    let outlets = Outlets {
        cluster: cluster.clone(),
        events: Arc::new(EventSink::new(cluster.clone(), &namespace, "fairway")),
        audit: Arc::new(AuditLog::new(std::io::stdout())),
        metrics: Arc::clone(&metrics),
    };
    let listener = TcpListener::bind(arguments.listen).await?;
    tracing::info!(
        agent.namespace = namespace,
        agent.address = %listener.local_addr()?,
        agent.identity = lease.identity,
        cluster.uid = %cluster.uid(),
        "started"
    );
    let webhooks = listen_for_webhooks(arguments.webhook_listen, &metrics, &stop).await?;
    let settings = Settings {
        namespace,
        cache: arguments.cache_dir,
        runtime_access: AccessPolicy {
            forbid_local: !arguments.allow_local_runtimes,
        },
        webhooks,
    };
    let replica = Replica::new(cluster, lease, heartbeats.clone(), stop.clone());
    let measured = measured(&metrics, &arguments.lease_name, replica.lease());
    let (alive, ready) = (heartbeats.clone(), heartbeats.clone());
    let probes = Probes {
        alive: Arc::new(move || alive.alive(Instant::now())),
        ready: Arc::new(move || ready.ready()),
        metrics: Arc::new(measured),
    };
    let server = tokio::spawn(serve(listener, probes, stop.clone()));
    let led = replica
        .run(|cluster, skew, term| {
            let outlets = outlets.under(cluster.clone());
            let metrics = Arc::clone(&metrics);
            let daemon = Daemon::new(
                settings.clone(),
                cluster,
                outlets,
                heartbeats.clone(),
                (skew, term),
            );
            async move {
                // What it follows makes its future large.
                let ended = Box::pin(daemon.run()).await;
                metrics.stands_by();
                ended
            }
        })
        .await;
    stop.cancel();
    let _ = server.await;
    led.map_err(Failure::of)?;
    tracing::info!("stopped");
    Ok(Exit::Ok)
}

fn lease_settings(arguments: &AgentArguments, namespace: &str) -> LeaseSettings {
    let own = arguments.identity.clone();
    LeaseSettings {
        namespace: namespace.to_owned(),
        name: arguments.lease_name.clone(),
        inherit: own.is_some(),
        identity: own.unwrap_or_else(|| identity::unique("agent")),
        duration: arguments.lease_duration,
    }
}

/// Returns what renders the metrics, with the lease as it is at that moment.
fn measured(
    metrics: &Arc<Metrics>,
    name: &str,
    lease: &KeptLease,
) -> impl Fn() -> String + Send + Sync + use<> {
    let (metrics, name) = (Arc::clone(metrics), name.to_owned());
    let (held, view) = (lease.held(), lease.view());
    move || {
        let view = view.borrow().clone();
        let end = held.borrow().as_ref().map(|held| held.effects_end);
        let remaining = end.map(|end| end.saturating_duration_since(Instant::now()));
        metrics.lease(&LeaseMeasure {
            lease: &name,
            holder: view.holder.as_deref(),
            transitions: view.transitions,
            remaining: remaining.unwrap_or_default(),
        });
        metrics.render()
    }
}

/// Leases count in whole seconds.
fn parse_lease_duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text)?;
    let (min, max) = (limits::LEASE_DURATION_MIN, limits::LEASE_DURATION_MAX);
    if duration < min || duration > max || duration.subsec_nanos() != 0 {
        return Err(format!(
            "a lease lasts whole seconds, from {} to {}",
            min.as_secs(),
            max.as_secs()
        ));
    }
    Ok(duration)
}

/// Opens the webhook port, if one is wanted; returns its routing table.
async fn listen_for_webhooks(
    address: Option<SocketAddr>,
    metrics: &Arc<Metrics>,
    stop: &CancellationToken,
) -> Result<Option<Routes>, Failure> {
    let Some(address) = address else {
        return Ok(None);
    };
    let listener = TcpListener::bind(address).await?;
    tracing::info!(webhook.address = %listener.local_addr()?, "listening for webhooks");
    let routes = Routes::default();
    let receiver = Receiver::new(routes.clone(), Arc::clone(metrics), clock::now);
    tokio::spawn(webhook::serve(listener, receiver, stop.clone()));
    Ok(Some(routes))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("15s", Some(15))]
    #[case("1m", Some(60))]
    #[case("1s", None)]
    #[case("1500ms", None)]
    #[case("6m", None)]
    fn a_lease_lasts_whole_seconds_within_limits(#[case] text: &str, #[case] seconds: Option<u64>) {
        let parsed = parse_lease_duration(text).ok();
        assert_eq!(parsed.map(|duration| duration.as_secs()), seconds);
    }
}
