//! Reaching the cluster that a command means.

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::arguments::ClusterArguments;
use super::failure::Failure;
use crate::cluster::Cluster;

/// The namespace of Fairway's own resources where neither the arguments nor the context name one.
pub(super) const NAMESPACE: &str = "fairway-system";

/// Makes the runtime of a command.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}

/// Connects to the cluster that the arguments name; returns the namespace of its context as well.
///
/// # Errors
///
/// When there is no usable kubeconfig, or the cluster does not answer.
pub(super) async fn connect(arguments: &ClusterArguments) -> Result<(Cluster, String), Failure> {
    let config = config(arguments).await?;
    let namespace = config.default_namespace.clone();
    let cluster = Cluster::connect(config, None).await.map_err(Failure::of)?;
    Ok((cluster, namespace))
}

/// Returns the namespace of Fairway's own resources.
pub(super) fn home_namespace(arguments: &ClusterArguments, of_context: &str) -> String {
    match (&arguments.namespace, of_context) {
        (Some(namespace), _) => namespace.clone(),
        (None, "" | "default") => NAMESPACE.to_owned(),
        (None, namespace) => namespace.to_owned(),
    }
}

async fn config(arguments: &ClusterArguments) -> Result<Config, Failure> {
    let options = KubeConfigOptions {
        context: arguments.context.clone(),
        ..Default::default()
    };
    match &arguments.kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(Failure::of)?;
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .map_err(Failure::of)
        }
        None if arguments.context.is_some() => {
            Config::from_kubeconfig(&options).await.map_err(Failure::of)
        }
        None => Config::infer().await.map_err(Failure::of),
    }
}
