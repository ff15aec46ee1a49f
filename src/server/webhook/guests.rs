//! The connections of the webhook port, and who gives way when all places are taken.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::model::limits;

/// The connections, the oldest first.
#[derive(Default)]
pub(super) struct Guests(VecDeque<Guest>);

struct Guest {
    /// Its request line and headers have arrived.
    heard: Arc<AtomicBool>,
    since: Instant,
    task: AbortHandle,
}

impl Guests {
    /// Makes sure that there is a place; false where all are taken by those who are being served.
    ///
    /// Whoever has been silent for the longest time gives way: a forge sends its headers at once, so that those who keep
    /// connections open for nothing only push each other out. Each has [`limits::WEBHOOK_HEAD_GRACE`] to be read, for which this
    /// waits; the next ones wait in the kernel's queue.
    pub(super) async fn make_room(&mut self) -> bool {
        while self.0.len() >= limits::WEBHOOK_CONNECTIONS_MAX {
            self.0.retain(|guest| !guest.task.is_finished());
            if self.0.len() < limits::WEBHOOK_CONNECTIONS_MAX {
                break;
            }
            let silent = |guest: &Guest| !guest.heard.load(Ordering::Relaxed);
            let Some(at) = self.0.iter().position(silent) else {
                return false;
            };
            let grace = self.0[at].since + limits::WEBHOOK_HEAD_GRACE;
            if grace > Instant::now() {
                sleep_until(grace).await;
            } else if let Some(guest) = self.0.remove(at) {
                guest.task.abort();
            }
        }
        true
    }

    /// Starts a conversation, which says when the headers have arrived.
    pub(super) fn seat<F>(&mut self, conversation: impl FnOnce(Arc<AtomicBool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let heard = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(conversation(Arc::clone(&heard))).abort_handle();
        self.0.push_back(Guest {
            heard,
            since: Instant::now(),
            task,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seats guests that stay, and returns the word of each that its headers came.
    fn seat(guests: &mut Guests, count: usize) -> Vec<Arc<AtomicBool>> {
        let mut all = Vec::new();
        for _ in 0..count {
            guests.seat(|heard| {
                all.push(heard);
                std::future::pending()
            });
        }
        all
    }

    fn has_left(guest: &Arc<AtomicBool>, guests: &Guests) -> bool {
        !guests.0.iter().any(|one| Arc::ptr_eq(&one.heard, guest))
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_was_silent_for_the_longest_time_gives_way_after_its_grace() {
        let mut guests = Guests::default();
        let all = seat(&mut guests, limits::WEBHOOK_CONNECTIONS_MAX);
        all[0].store(true, Ordering::Relaxed);
        let begun = Instant::now();
        assert!(guests.make_room().await);
        assert_eq!(begun.elapsed(), limits::WEBHOOK_HEAD_GRACE);
        let left: Vec<bool> = all.iter().map(|one| has_left(one, &guests)).collect();
        let left: Vec<usize> = (0..all.len()).filter(|at| left[*at]).collect();
        assert_eq!(left, [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_heard_within_the_grace_stays() {
        let mut guests = Guests::default();
        let all = seat(&mut guests, limits::WEBHOOK_CONNECTIONS_MAX);
        let late = Arc::clone(&all[0]);
        tokio::spawn(async move {
            tokio::time::sleep(limits::WEBHOOK_HEAD_GRACE / 2).await;
            late.store(true, Ordering::Relaxed);
        });
        assert!(guests.make_room().await);
        assert!(!has_left(&all[0], &guests));
        assert!(has_left(&all[1], &guests));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_who_is_served_gives_way() {
        let mut guests = Guests::default();
        for heard in seat(&mut guests, limits::WEBHOOK_CONNECTIONS_MAX) {
            heard.store(true, Ordering::Relaxed);
        }
        assert!(!guests.make_room().await);
        assert_eq!(guests.0.len(), limits::WEBHOOK_CONNECTIONS_MAX);
    }
}
