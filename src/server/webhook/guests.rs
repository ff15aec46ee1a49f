//! The connections of the webhook port, and who gives way when all places are taken.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::model::limits;

/// The connections, the oldest first.
#[derive(Default)]
pub(super) struct Guests(VecDeque<Guest>);

struct Guest {
    hearing: Arc<Hearing>,
    task: AbortHandle,
}

/// How far a conversation has come, as it says itself.
#[derive(Default)]
pub(super) struct Hearing {
    /// Since when everything that had been sent by then is read.
    read: OnceLock<Instant>,
    /// The request line and all headers have arrived.
    heard: AtomicBool,
}

// === impl Hearing ===

impl Hearing {
    /// Notes that everything is read that has been sent so far.
    pub(super) fn read(&self) {
        self.read.get_or_init(Instant::now);
    }

    /// Notes that the request line and all headers have arrived.
    pub(super) fn heard(&self) {
        self.heard.store(true, Ordering::Relaxed);
    }

    /// Returns until when it keeps its place, whoever comes.
    fn grace(&self) -> Instant {
        *self.read.get().unwrap_or(&Instant::now()) + limits::WEBHOOK_HEAD_GRACE
    }
}

// === impl Guests ===

impl Guests {
    /// Makes sure that there is a place; false where all are taken by those who are being served.
    ///
    /// Whoever has been silent for the longest time gives way: a forge sends its headers at once, so that those who keep
    /// connections open for nothing only push each other out. Each keeps its place for [`limits::WEBHOOK_HEAD_GRACE`] after it was
    /// read for the first time, for which this waits; the next ones wait in the kernel's queue.
    pub(super) async fn make_room(&mut self) -> bool {
        while self.0.len() >= limits::WEBHOOK_CONNECTIONS_MAX {
            self.0.retain(|guest| !guest.task.is_finished());
            if self.0.len() < limits::WEBHOOK_CONNECTIONS_MAX {
                break;
            }
            let silent = |guest: &Guest| !guest.hearing.heard.load(Ordering::Relaxed);
            let Some(at) = self.0.iter().position(silent) else {
                return false;
            };
            let grace = self.0[at].hearing.grace();
            if grace > Instant::now() {
                sleep_until(grace).await;
            } else if let Some(guest) = self.0.remove(at) {
                guest.task.abort();
            }
        }
        true
    }

    /// Starts a conversation, which says how far it has come.
    pub(super) fn seat<F>(&mut self, conversation: impl FnOnce(Arc<Hearing>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let hearing = Arc::new(Hearing::default());
        let task = tokio::spawn(conversation(Arc::clone(&hearing))).abort_handle();
        self.0.push_back(Guest { hearing, task });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seats guests that stay, and returns how far each has come.
    fn seat(guests: &mut Guests, count: usize) -> Vec<Arc<Hearing>> {
        let mut all = Vec::new();
        for _ in 0..count {
            guests.seat(|hearing| {
                all.push(hearing);
                std::future::pending()
            });
        }
        all
    }

    fn has_left(guest: &Arc<Hearing>, guests: &Guests) -> bool {
        !guests.0.iter().any(|one| Arc::ptr_eq(&one.hearing, guest))
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_silent_for_the_longest_time_gives_way_after_its_grace() {
        let mut guests = Guests::default();
        let all = seat(&mut guests, limits::WEBHOOK_CONNECTIONS_MAX);
        for one in &all {
            one.read();
        }
        all[0].heard();
        let begun = Instant::now();
        assert!(guests.make_room().await);
        assert_eq!(begun.elapsed(), limits::WEBHOOK_HEAD_GRACE);
        let mut left = all.iter().map(|one| has_left(one, &guests));
        assert!(left.by_ref().take(2).eq([false, true]));
        assert!(!left.any(|has_left| has_left));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_heard_within_the_grace_stays() {
        let mut guests = Guests::default();
        let all = seat(&mut guests, limits::WEBHOOK_CONNECTIONS_MAX);
        for one in &all {
            one.read();
        }
        let late = Arc::clone(&all[0]);
        tokio::spawn(async move {
            tokio::time::sleep(limits::WEBHOOK_HEAD_GRACE / 2).await;
            late.heard();
        });
        assert!(guests.make_room().await);
        assert!(!has_left(&all[0], &guests));
        assert!(has_left(&all[1], &guests));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_gives_way_unread_however_long_that_takes() {
        let mut guests = Guests::default();
        let all = seat(&mut guests, limits::WEBHOOK_CONNECTIONS_MAX);
        let late = Arc::clone(&all[0]);
        let begun = Instant::now();
        tokio::spawn(async move {
            tokio::time::sleep(limits::WEBHOOK_HEAD_GRACE * 10).await;
            late.read();
        });
        assert!(guests.make_room().await);
        assert!(begun.elapsed() >= limits::WEBHOOK_HEAD_GRACE * 11);
        assert!(has_left(&all[0], &guests));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_who_is_served_gives_way() {
        let mut guests = Guests::default();
        for guest in seat(&mut guests, limits::WEBHOOK_CONNECTIONS_MAX) {
            guest.heard();
        }
        assert!(!guests.make_room().await);
        assert_eq!(guests.0.len(), limits::WEBHOOK_CONNECTIONS_MAX);
    }
}
