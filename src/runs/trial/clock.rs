//! Time that passes only when there is nothing else to do.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use jiff::Timestamp;

use crate::runs::Clock;

/// How often time may move on in one trial. A run that waits longer waits for nothing that comes.
const JUMPS_MAX: usize = 20_000;

/// A clock that stands still while anything goes on, and jumps to the next moment that somebody waits for. It begins at a fixed
/// moment, so that a trial is the same each time.
#[derive(Debug, Clone, Default)]
pub(super) struct TrialClock(Arc<Mutex<Time>>);

#[derive(Debug, Default)]
struct Time {
    now: Duration,
    asked: u64,
    /// Who waits, by until when and in which order they asked.
    waiting: BTreeMap<(Duration, u64), Waker>,
}

impl TrialClock {
    /// Runs to the end; none where nothing more would ever happen.
    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut jumps = 0;
        loop {
            if let Poll::Ready(end) = work.as_mut().poll(&mut context) {
                return Some(end);
            }
            // Everything happens on this thread: who has woken nobody by now never will, unless time goes on.
            if !woken.0.swap(false, Ordering::Relaxed) {
                jumps += 1;
                if jumps > JUMPS_MAX || !self.jump() {
                    return None;
                }
            }
        }
    }

    /// Goes on to the next moment that somebody waits for; false where nobody does.
    fn jump(&self) -> bool {
        let mut time = self.lock();
        let Some(((until, _), waker)) = time.waiting.pop_first() else {
            return false;
        };
        time.now = time.now.max(until);
        drop(time);
        waker.wake();
        true
    }

    fn lock(&self) -> MutexGuard<'_, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Clock ===

impl Clock for TrialClock {
    fn wall(&self) -> Timestamp {
        // 2026-01-01, and at most twenty thousand waits later.
        Timestamp::UNIX_EPOCH + Duration::from_secs(1_767_225_600) + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        self.lock().now
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        let mut time = self.lock();
        time.asked += 1;
        let key = (time.now.saturating_add(duration), time.asked);
        drop(time);
        Sleep {
            clock: self.clone(),
            key,
        }
    }

    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        catch_unwind(AssertUnwindSafe(work)).map_err(|_| "the evaluation did not end".to_owned())
    }
}

struct Sleep {
    clock: TrialClock,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut time = self.clock.lock();
        if time.now >= self.key.0 {
            return Poll::Ready(());
        }
        time.waiting.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.lock().waiting.remove(&self.key);
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
