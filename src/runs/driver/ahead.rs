//! A run before its hook comes: what people say of it is heard and its guard is asked, and nothing else is done.

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Driver;
use super::session::{Leave, Session, Word};
use crate::model::api::{Run, RunCommand, RunPhase};
use crate::model::migration::Decision;
use crate::runs::clock::Clock;
use crate::runs::effects::Effects;
use crate::runs::machine::Next;
use crate::runs::sight::Sight;
use crate::runs::store::RunStore;

impl<E: Effects, S: RunStore, C: Clock> Driver<E, S, C> {
    /// Asks whether a run may begin, and writes down what keeps it from that. Returns the record, and whether it may: its hook then asks
    /// again, right before the first step. It must not be driven at the same time.
    pub async fn look_ahead(
        &self,
        run: Run,
        (commands, sight): (watch::Receiver<Option<RunCommand>>, &Sight),
        stop: &CancellationToken,
        on_change: impl Fn(&Run) + Send + Sync,
    ) -> (Run, bool) {
        let mut session = Session::new(self, run, commands, stop, on_change);
        let ended = session.look_ahead(sight).await;
        let may_begin = matches!(ended, Ok(true));
        session.let_go(ended.map(|_| ()));
        (session.run, may_begin)
    }
}

impl<E: Effects, S: RunStore, C: Clock, F: Fn(&Run) + Send + Sync> Session<'_, E, S, C, F> {
    async fn look_ahead(&mut self, sight: &Sight) -> Result<bool, Leave> {
        self.hear().await?;
        if self.machine().next() == Next::Pause {
            self.write_down(Word::Paused).await?;
        }
        let before = self.status();
        if !matches!(before.phase, RunPhase::Pending | RunPhase::Blocked) {
            return Ok(false);
        }
        let overridden = self.machine().is_overridden();
        let verdict = self.verdict(overridden, sight).await;
        let mut machine = self.machine();
        let may_begin = match verdict.decision {
            // Its hook asks again, as often as it takes.
            Decision::Run | Decision::Unknown => {
                machine.may_begin();
                true
            }
            _ => {
                machine.judged(verdict);
                false
            }
        };
        let status = machine.into_status();
        if status != before {
            self.save(status).await?;
        }
        Ok(may_begin)
    }
}
