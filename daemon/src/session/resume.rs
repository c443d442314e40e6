//! From a stored log to a live state.

use std::sync::Arc;

use super::SessionError;
use super::actor::Actor;
use crate::kernel::apply::apply;
use crate::kernel::command::Command;

impl Actor {
    /// Folds the log; what was in flight when it ended is closed.
    pub(super) async fn load(&mut self) -> Result<(), SessionError> {
        let id = self.state.id.clone();
        let stored = self
            .services
            .store
            .load(&id)
            .await
            .map_err(|error| SessionError::Store(Arc::new(error)))?;
        let Some((record, events)) = stored else {
            return Err(SessionError::NotFound(id));
        };
        self.record = record;
        for stored in events {
            match loopd_proto::event::read_durable(&stored.json) {
                Ok((head, event)) => {
                    self.remember_question(&event, &stored.json);
                    apply(&mut self.state, &head, &event);
                }
                Err(error) => {
                    // Written by a later version, or damaged: skipped, so that the rest loads.
                    tracing::warn!(session = %id, kind = %stored.kind, %error, "an event could not be read");
                }
            }
            self.state.seq = stored.seq;
        }
        self.options = self.state.options.clone();
        self.execute(Command::Recover).await?;
        self.jobs.take_over(&self.state);
        Ok(())
    }
}
