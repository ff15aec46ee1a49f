//! `fairway suspend` and `fairway resume`.

use std::io::Write;

use clap::Args;
use serde_json::json;

use super::connection::runtime;
use super::context::Context;
use super::failure::{Exit, Failure};
use super::resources::Home;
use crate::model::SourceName;

/// Arguments of `fairway suspend` and `fairway resume`.
#[derive(Debug, Args)]
pub struct SuspendArguments {
    /// The ReleaseSource
    source: SourceName,
}

/// Sets `spec.suspend`. Nothing is fetched, applied, put right or deleted for the source while it is true.
pub(super) fn run(
    arguments: &SuspendArguments,
    suspend: bool,
    context: &mut Context,
) -> Result<Exit, Failure> {
    let name = &arguments.source;
    let before = runtime()?.block_on(async {
        let home = Home::connect(context).await?;
        let before = home.source(name).await?;
        if before.spec.suspend != suspend {
            home.patch(name, &json!({"spec": {"suspend": suspend}}))
                .await?;
        }
        Ok::<_, Failure>(before.spec.suspend)
    })?;
    let text = match (before == suspend, suspend) {
        (true, true) => format!("{name} was suspended already"),
        (true, false) => format!("{name} was not suspended"),
        (false, true) => format!(
            "{name} is suspended: what is on the cluster stays as it is. fairway resume {name}"
        ),
        (false, false) => format!("{name} is resumed"),
    };
    writeln!(context.err, "{text}")?;
    Ok(Exit::Ok)
}
