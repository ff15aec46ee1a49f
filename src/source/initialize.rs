//! The options of libgit2 that hold for the whole process.

use std::sync::OnceLock;

use git2::{ConfigLevel, opts};

use super::error::SourceError;
use super::smart;

/// Sets the process-wide options of libgit2: our own https below it, and that no configuration from outside is read.
///
/// Must be called first thing in `main`, before other threads run; later calls do nothing.
///
/// # Errors
///
/// When libgit2 cannot start, which means that the process is out of memory.
pub fn initialize() -> Result<(), SourceError> {
    static DONE: OnceLock<Result<(), SourceError>> = OnceLock::new();
    DONE.get_or_init(|| set_options().map_err(|error| SourceError::from_local(&error)))
        .clone()
}

#[expect(
    unsafe_code,
    reason = "git2 offers the process-wide options as unsafe functions only, since they write C globals without a lock; \
              they are written once here, before any thread could read them"
)]
fn set_options() -> Result<(), git2::Error> {
    // SAFETY: called once, before other threads use libgit2, as the documentation of `initialize` demands.
    unsafe {
        smart::register()?;
        super::ssh::register()?;
        // A volume in a pod, or a checkout in CI, often belongs to another user. The check protects git programs that run
        // what a repository's configuration names; libgit2 runs nothing.
        opts::set_verify_owner_validation(false)?;
        // A user's or system's configuration could rewrite URLs (`url.*.insteadOf`) behind our checks.
        for level in [
            ConfigLevel::ProgramData,
            ConfigLevel::System,
            ConfigLevel::XDG,
            ConfigLevel::Global,
        ] {
            opts::set_search_path(level, "")?;
        }
    }
    opts::strict_hash_verification(true);
    Ok(())
}
