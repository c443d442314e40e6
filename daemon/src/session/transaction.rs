//! One transaction of a session: store, publish and start what was decided.
//!
//! Every change of a session happens in this order. The actor calls it with each decision. No event
//! is published before its commit.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use loopd_proto::event::Durable;
use loopd_proto::id::EventId;
use loopd_store::{Batch, StoredEvent};

use super::actor::Actor;
use super::journal::{self, Outgoing};
use super::work::Work;
use super::{Done, SessionError};
use crate::client::Class;
use crate::publish::OutgoingEvent;
use loopd_kernel::command::{Answer, Effect, EffectStart, Step};

/// The events and effects of one transaction.
#[derive(Default)]
struct Written {
    events: Vec<StoredEvent>,
    outgoing: Vec<Outgoing>,
    /// Effects that may finish within the transaction.
    within: VecDeque<Effect>,
    /// Effects that start before the commit.
    before: Vec<Effect>,
    /// Effects that start after the commit.
    after: Vec<Effect>,
}

impl Written {
    fn put(&mut self, effect: Effect) {
        // An effect that starts before the turn is cancelled would be cancelled as well.
        let mut after = self.after.iter();
        let cancels = after.any(|effect| matches!(effect, Effect::CancelTurn));
        match effect.starts() {
            EffectStart::WithinTransaction if !cancels => self.within.push_back(effect),
            EffectStart::BeforeCommit if !cancels => self.before.push(effect),
            EffectStart::WithinTransaction
            | EffectStart::BeforeCommit
            | EffectStart::AfterCommit => self.after.push(effect),
        }
    }
}

impl Actor {
    pub(super) async fn carry_out(
        &mut self,
        steps: Vec<Step>,
        answer: Answer,
    ) -> Result<Done, SessionError> {
        let after = self.state.seq;
        // These events change what sub-agents inherit.
        let changes = |step: &Step| {
            matches!(
                step,
                Step::Store(Durable::Permissions(_) | Durable::Configured(_))
            )
        };
        let hands_down = steps.iter().any(changes);
        let mut written = Written::default();
        self.write(steps, &mut written)?;
        let own = written.outgoing.len();
        self.decide_within(&mut written)?;
        let stored_any = !written.events.is_empty();
        let commit = stored_any.then(|| {
            self.refresh_record();
            self.services.store.append(Batch {
                record: self.record.clone(),
                after,
                events: written.events,
            })
        });
        if !written.before.is_empty() {
            self.clients.audience().hold();
        }
        self.start_all(written.before);
        if let Some(commit) = commit {
            commit
                .await
                .map_err(|error| SessionError::Store(Arc::new(error)))?;
        }
        let later = written.outgoing.split_off(own);
        let event = self.publish_committed(written.outgoing, later);
        self.clients.audience().release();
        self.waits.settle(&self.state);
        if stored_any {
            self.report_status();
            self.announce_update();
        }
        self.start_all(written.after);
        if hands_down {
            self.hand_down();
        }
        if !self.state.is_busy() {
            self.shells.drop_spare();
        }
        Ok(Done { answer, event })
    }

    /// Turns decided steps into events and effects. No event is published before the commit.
    fn write(&mut self, steps: Vec<Step>, written: &mut Written) -> Result<(), SessionError> {
        for step in steps {
            let line = match step {
                Step::Store(event) => {
                    let event = self.presentable(event);
                    journal::record(&mut self.state, &self.services.clock, &event).map(
                        |(stored, out)| {
                            self.show_stored(&event);
                            self.waits.stored(&event, &out);
                            written.events.push(stored);
                            written.outgoing.push(out);
                        },
                    )
                }
                Step::Tell(event) => {
                    journal::pass(&self.state, &self.services.clock, &event).map(|out| {
                        self.waits.told(&event, &out);
                        written.outgoing.push(out);
                    })
                }
                Step::Do(effect) => {
                    written.put(effect);
                    Ok(())
                }
            };
            if let Err(error) = line {
                tracing::error!(session = %self.state.id, %error, "an event could not be written as JSON");
                return Err(SessionError::Faulted(self.state.id.clone()));
            }
        }
        Ok(())
    }

    /// Decides the reports of effects that finish at once in the transaction that asked for them.
    /// This is allowed only for an effect that only reads and finishes without waiting. Preparing a
    /// plain message and assessing a plain call are such effects; each saves a commit. An effect
    /// that has to wait goes on as a task.
    fn decide_within(&mut self, written: &mut Written) -> Result<(), SessionError> {
        while let Some(effect) = written.within.pop_front() {
            let command = match self.begin(effect).map(Work::at_once) {
                None | Some(Ok(None)) => continue,
                Some(Ok(Some(command))) => command,
                Some(Err(work)) => {
                    self.spawn_reporting(work);
                    continue;
                }
            };
            match self.decide(command) {
                Ok(decision) => self.write(decision.steps, written)?,
                Err(error) => {
                    tracing::error!(session = %self.state.id, %error, "the session cannot go on");
                    return Err(SessionError::Faulted(self.state.id.clone()));
                }
            }
        }
        Ok(())
    }

    fn start_all(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.start(effect);
        }
    }

    /// Publishes committed events in order; returns the id of the last one.
    pub(super) fn publish(&mut self, outgoing: Vec<Outgoing>) -> Option<EventId> {
        let mut last = None;
        for event in outgoing {
            if !event.visible {
                continue;
            }
            self.clients.audience().publish(&OutgoingEvent {
                class: event.class,
                kind: event.kind,
                line: Cow::Borrowed(&event.line),
            });
            if event.class != Class::Delta {
                self.recent
                    .push(event.seq, event.durable, event.kind, event.line);
            }
            last = Some(event.id);
        }
        if last.is_some() {
            self.ticks.send_replace(self.recent.tick());
        }
        last
    }
}
