//! Rings a bell when something below a directory changes.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Instant;

use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::error::SourceError;
use crate::model::limits;

/// Watches a directory until it is dropped.
///
/// The bell carries no data: what has changed is for the next snapshot to find out. An overflow of the kernel's queue, or
/// an error of the watch, rings it like any change.
pub struct Watch {
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Starts to watch a directory and all below it, without following links. `.git` is left out.
    ///
    /// # Errors
    ///
    /// When the directory cannot be watched, for instance since the system's watches are used up.
    pub fn start(directory: &Path, ring: impl Fn() + Send + 'static) -> Result<Self, SourceError> {
        let failed =
            |error: notify::Error| SourceError::from_storage(directory, &error.to_string());
        let (sender, receiver) = mpsc::sync_channel(1);
        let handler = move |result: notify::Result<Event>| {
            if result.as_ref().map_or(true, is_change) {
                // When the channel is full, a ring is due already.
                let _ = sender.try_send(());
            }
        };
        let config = Config::default().with_follow_symlinks(false);
        let mut watcher = RecommendedWatcher::new(handler, config).map_err(failed)?;
        watcher
            .watch(directory, RecursiveMode::Recursive)
            .map_err(failed)?;
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || ring_when_quiet(&receiver, ring))
            .map_err(|error| SourceError::from_storage(directory, &error.to_string()))?;
        Ok(Self { _watcher: watcher })
    }
}

fn is_change(event: &Event) -> bool {
    if event.need_rescan() {
        return true;
    }
    let in_git = |path: &std::path::PathBuf| path.iter().any(|part| part == ".git");
    !matches!(event.kind, EventKind::Access(_)) && !event.paths.iter().all(in_git)
}

/// Ends when the watcher, and with it the sending side, is dropped.
fn ring_when_quiet(changes: &Receiver<()>, ring: impl Fn()) {
    while changes.recv().is_ok() {
        let first = Instant::now();
        while first.elapsed() < limits::WATCH_DELAY_MAX {
            match changes.recv_timeout(limits::WATCH_QUIET) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        ring();
    }
}
