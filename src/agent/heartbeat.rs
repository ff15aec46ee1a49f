//! Signs of life of the agent's tasks, for the liveness probe.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::time::Instant;

use crate::model::limits;

/// Signs of life, one for each task. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Heartbeats(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    last: BTreeMap<String, Instant>,
    ready: bool,
}

/// One task's part; dropping it takes the task out.
#[derive(Debug)]
pub struct Heartbeat {
    all: Heartbeats,
    task: String,
}

// === impl Heartbeats ===

impl Heartbeats {
    /// Takes a task in, as alive.
    pub fn task(&self, name: &str) -> Heartbeat {
        let heartbeat = Heartbeat {
            all: self.clone(),
            task: name.to_owned(),
        };
        heartbeat.beat();
        heartbeat
    }

    /// Notes that the ReleaseSources have been listed: from now on the agent is ready.
    pub fn listed(&self) {
        self.state().ready = true;
    }

    /// Notes that another replica leads and that this one could take over: it is ready as well, since otherwise a rolling
    /// update would wait for a new pod which waits for the old one's lease.
    pub fn standing_by(&self) {
        self.state().ready = true;
    }

    /// Answers the liveness probe: every task has given a sign of life lately.
    pub fn alive(&self, now: Instant) -> Result<(), String> {
        let state = self.state();
        let silent = state
            .last
            .iter()
            .find(|(_, last)| now.saturating_duration_since(**last) > limits::HEARTBEAT_MISSED);
        match silent {
            Some((task, _)) => Err(format!("no sign of life from {task}")),
            None => Ok(()),
        }
    }

    /// Answers the readiness probe.
    pub fn ready(&self) -> Result<(), String> {
        if self.state().ready {
            Ok(())
        } else {
            Err("neither are the ReleaseSources listed nor is it known who else leads".to_owned())
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0
            .lock()
            .expect("nothing panics while holding the heartbeats")
    }
}

// === impl Heartbeat ===

impl Heartbeat {
    /// Gives a sign of life.
    pub fn beat(&self) {
        self.all
            .state()
            .last
            .insert(self.task.clone(), Instant::now());
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.all.state().last.remove(&self.task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_task_is_named_and_one_that_has_ended_is_not() {
        let all = Heartbeats::default();
        assert!(all.ready().is_err());
        all.listed();
        assert!(all.ready().is_ok());
        let (one, other) = (all.task("target one"), all.task("target other"));
        tokio::time::advance(limits::HEARTBEAT_MISSED * 2).await;
        one.beat();
        assert_eq!(
            all.alive(Instant::now()),
            Err("no sign of life from target other".to_owned())
        );
        drop(other);
        assert_eq!(all.alive(Instant::now()), Ok(()));
    }
}
