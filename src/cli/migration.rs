//! `fairway migration`: what can be done with the migrations of a repository. A file of its own for each subcommand.

use clap::{Args, Subcommand};

use super::context::Context;
use super::failure::{Exit, Failure};
use super::migration_plan::{self, PlanArguments};
use super::migration_rbac::{self, RbacArguments};
use super::migration_retire::{self, RetireArguments};
use super::migration_test::{self, TestArguments};

/// The arguments of `fairway migration`.
#[derive(Debug, Args)]
pub struct MigrationArguments {
    #[command(subcommand)]
    command: MigrationCommand,
}

#[derive(Debug, Subcommand)]
enum MigrationCommand {
    /// Try the tests of migrations without a cluster, with a kill at every write
    Test(TestArguments),
    /// Show what each migration would decide on the cluster now, and why; it only reads
    Plan(PlanArguments),
    /// Print the Roles that the migrations of a repository need
    Rbac(RbacArguments),
    /// Take the steps out of a migration that no version needs any more; its guard stays
    Retire(RetireArguments),
}

pub(super) fn run(arguments: &MigrationArguments, context: &mut Context) -> Result<Exit, Failure> {
    match &arguments.command {
        MigrationCommand::Test(arguments) => migration_test::run(arguments, context),
        MigrationCommand::Plan(arguments) => migration_plan::run(arguments, context),
        MigrationCommand::Rbac(arguments) => migration_rbac::run(arguments, context),
        MigrationCommand::Retire(arguments) => migration_retire::run(arguments, context),
    }
}
