//! The clocks of runs. What is spent is measured by a clock that only goes forward; wall time is written down for people and
//! decides nothing that a jump could change.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Time, as runs know it.
pub trait Clock: Send + Sync {
    /// Returns wall time, for records.
    fn wall(&self) -> Timestamp;

    /// Returns the time since some beginning; it never goes back and never jumps.
    fn monotonic(&self) -> Duration;

    /// Waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;

    /// Does what may take up to the deadline of an evaluation where it holds up nothing else. A panic is an answer too: it is told, and
    /// nothing else is harmed. It stands here since a clock that is not the world's must know of everything that goes on.
    fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, String>> + Send {
        async {
            tokio::task::spawn_blocking(work)
                .await
                .map_err(|error| format!("the evaluation did not end: {error}"))
        }
    }
}

/// The clock of this process: tokio's for durations, and one door to wall time.
#[derive(Debug, Clone, Copy)]
pub struct ProcessClock {
    wall: fn() -> Timestamp,
    begin: Instant,
}

impl ProcessClock {
    /// Makes a clock that reads wall time through `wall`.
    pub fn new(wall: fn() -> Timestamp) -> Self {
        Self {
            wall,
            begin: Instant::now(),
        }
    }
}

// === impl Clock ===

impl Clock for ProcessClock {
    fn wall(&self) -> Timestamp {
        (self.wall)()
    }

    fn monotonic(&self) -> Duration {
        self.begin.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
