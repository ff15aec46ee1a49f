//! Records in memory.

use super::Memory;
use super::faults::{LogEntry, Write};
use super::state::{Outcome, State};
use crate::model::api::{Run, RunStatus};
use crate::runs::{EffectError, RunStore, StoreError};

impl RunStore for Memory {
    async fn create(&self, run: &Run) -> Result<Run, StoreError> {
        let name = run.metadata.name.clone().unwrap_or_default();
        self.record("create", &name, |state| Ok(state.create_run(run)))
            .await
    }

    async fn read(&self, name: &str) -> Result<Option<Run>, StoreError> {
        self.alive().await;
        Ok(self.run(name))
    }

    async fn write(&self, run: &Run, status: RunStatus) -> Result<Run, StoreError> {
        let name = run.metadata.name.clone().unwrap_or_default();
        self.record("write", &name, |state| {
            if !state.runs.contains_key(&name) {
                return Err(StoreError::Gone(name.clone()));
            }
            state
                .store_run(run, status)
                .map(|run| (run, true))
                .ok_or_else(|| StoreError::Conflict(name.clone()))
        })
        .await
    }
}

impl Memory {
    async fn record<T>(
        &self,
        verb: &'static str,
        name: &str,
        act: impl FnOnce(&mut State) -> Result<(T, bool), StoreError>,
    ) -> Result<T, StoreError> {
        self.alive().await;
        let entry = LogEntry {
            write: Write::Record,
            verb,
            about: format!("Run {name}"),
            step: None,
            changed: false,
            key: None,
        };
        let outcome: Outcome<T, StoreError> =
            self.lock()
                .attempt(entry, act, StoreError::Unavailable, |error| {
                    failed(name, error)
                });
        self.conclude(outcome).await
    }
}

fn failed(name: &str, error: EffectError) -> StoreError {
    match error {
        EffectError::Conflict(_) => StoreError::Conflict(name.to_owned()),
        EffectError::NotFound(_) => StoreError::Gone(name.to_owned()),
        EffectError::ClaimLost(message) => StoreError::ClaimLost(message),
        EffectError::Transient { message, .. } | EffectError::Lost(message) => {
            StoreError::Unavailable(message)
        }
        other => StoreError::Refused(other.to_string()),
    }
}
