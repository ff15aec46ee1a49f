//! `fairway agent`: the daemon.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{connect, home_namespace, runtime};
use super::context::Context;
use super::failure::{Exit, Failure};
use crate::agent::clock;
use crate::agent::telemetry::{self, LogFormat};
use crate::agent::{Daemon, Heartbeats, Outlets, Settings};
use crate::report::{AuditLog, EventSink, Metrics};
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
    let heartbeats = Heartbeats::default();
    let metrics = Arc::new(Metrics::new());
    let events: Api<Event> = Api::namespaced(cluster.client(), &namespace);
    let outlets = Outlets {
        cluster: cluster.clone(),
        events: Arc::new(EventSink::new(events, "fairway")),
        audit: Arc::new(AuditLog::new(std::io::stdout())),
        metrics: Arc::clone(&metrics),
    };
    let listener = TcpListener::bind(arguments.listen).await?;
    tracing::info!(
        agent.namespace = namespace,
        agent.address = %listener.local_addr()?,
        cluster.uid = %cluster.uid(),
        "started"
    );
    let webhooks = listen_for_webhooks(arguments.webhook_listen, &metrics, &stop).await?;
    let (alive, ready) = (heartbeats.clone(), heartbeats.clone());
    let probes = Probes {
        alive: Arc::new(move || alive.alive(Instant::now())),
        ready: Arc::new(move || ready.ready()),
        metrics: Arc::new(move || metrics.render()),
    };
    let server = tokio::spawn(serve(listener, probes, stop.clone()));
    let settings = Settings {
        namespace,
        cache: arguments.cache_dir,
        webhooks,
    };
    Daemon::new(settings, cluster, outlets, heartbeats, stop.clone())
        .run()
        .await;
    stop.cancel();
    let _ = server.await;
    tracing::info!("stopped");
    Ok(Exit::Ok)
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

/// Returns a token that SIGTERM and SIGINT cancel.
fn stopped_by_signals() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let cancelled = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to stop");
        cancelled.cancel();
    });
    Ok(stop)
}
