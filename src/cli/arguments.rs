//! What can be typed.

use std::path::PathBuf;

use anstream::ColorChoice;
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    agent, approve, check, create, describe, explain, generate, get, history, install, migration,
    plan, reconcile, runs, suspend, sync, uninstall, validate, webhook,
};

const OVERVIEW: &str = "\
Start here:
  fairway validate            check the repository in this folder
  fairway explain --list      every diagnostic, and what to do about it

Exit codes: 0 all is well, 1 something was found, 2 it could not be done.";

/// A GitOps sync agent for module release channels.
#[derive(Debug, Parser)]
#[command(name = "fairway", version, after_help = OVERVIEW, max_term_width = 100)]
#[command(disable_help_subcommand = true, infer_long_args = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub(super) command: Option<Command>,

    /// The form of what goes to stdout
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        default_value_t,
        help_heading = "Output"
    )]
    pub(super) output: OutputFormat,

    /// Whether to use colours; `auto` does on a terminal without NO_COLOR
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        help_heading = "Output"
    )]
    pub(super) color: Color,

    #[command(flatten)]
    pub(super) cluster: ClusterArguments,
}

/// A command with its own arguments.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check a repository of modules and channels, without a cluster
    Validate(validate::ValidateArguments),
    /// Say what would change and why, against another revision or the cluster
    Plan(plan::PlanArguments),
    /// Bring the cluster in step with this folder, without an agent
    Sync(sync::SyncArguments),
    /// Run the daemon that follows the ReleaseSources of its namespace
    Agent(agent::AgentArguments),
    /// List sources, targets, components, runs, or what waits for a person
    Get(get::GetArguments),
    /// Show one source, target or run in full: what is held, and what lifts it
    Describe(describe::DescribeArguments),
    /// Show what became of the last revisions of a source
    History(history::HistoryArguments),
    /// Ask the agent to fetch and pass now, and wait for it
    Reconcile(reconcile::ReconcileArguments),
    /// Wait until a revision is applied in full, or a source is ready
    Wait(reconcile::WaitArguments),
    /// Leave a source alone: nothing is fetched, applied or deleted for it
    Suspend(suspend::SuspendArguments),
    /// End that
    Resume(suspend::SuspendArguments),
    /// Look at the run of a migration, or tell it what to do
    Run(runs::RunArguments),
    /// Cancel all open runs of a source
    Cancel(runs::CancelArguments),
    /// Approve what waits for a person
    Approve(approve::ApproveArguments),
    /// Say that what carries a source's label here is the source's, after its record was lost: `approve identity`
    Adopt(approve::AdoptArguments),
    /// Register the webhook of a source at its forge, and try it out
    Webhook(webhook::WebhookArguments),
    /// Install the agent, or bring what is installed to this version
    Install(install::InstallArguments),
    /// Take the agent away, and nothing that it has applied
    Uninstall(uninstall::UninstallArguments),
    /// Say whether the cluster can run Fairway, and how the agent and its sources are
    Check(check::CheckArguments),
    /// Create what a ReleaseSource needs
    Create(create::CreateArguments),
    /// Work on the migrations of a repository
    Migration(migration::MigrationArguments),
    /// Say what a diagnostic means and what to do about it
    Explain(explain::ExplainArguments),
    /// Write the files of this repository that are made from the code
    #[command(hide = true)]
    Generate(generate::GenerateArguments),
}

/// Which cluster a command means, and how it is reached.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArguments {
    /// The kubeconfig file; otherwise KUBECONFIG, ~/.kube/config, or the pod's account
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig; otherwise its current one
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,

    /// The namespace of Fairway's own resources; otherwise the context's
    #[arg(long, short, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
}

/// The form of what goes to stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless the environment says otherwise.
    #[default]
    Auto,
    /// Even into a pipe.
    Always,
    /// Never.
    Never,
}

impl From<Color> for ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}
