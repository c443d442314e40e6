//! One transaction of a session: store, publish and start what was decided.
//!
//! Every change of a session happens in this order. The actor calls it with each decision. No event
//! is published before its commit. `storage` has what happens if a commit fails.

use std::borrow::Cow;
use std::collections::VecDeque;

use loopd_proto::event::Durable;
use loopd_proto::event::rewind::REWOUND;
use loopd_proto::id::{EventId, Seq};
use loopd_store::{Batch, SessionRecord, StoredEvent, Visibility};

use super::actor::Actor;
use super::journal::{self, Outgoing};
use super::storage::OnFailure;
use super::work::Work;
use super::{Done, SessionError};
use crate::client::Class;
use crate::publish::OutgoingEvent;
use crate::redaction::Redaction;
use loopd_kernel::command::{Answer, Command, Effect, EffectStart, RoomNeed, Step};

/// The events and effects of one transaction.
#[derive(Default)]
struct Written {
    events: Vec<StoredEvent>,
    outgoing: Vec<Outgoing>,
    /// The stored events again, if the session is a sub-agent whose run follows them.
    followed: Vec<Durable>,
    /// Effects that may finish within the transaction.
    within: VecDeque<Effect>,
    /// Effects that start before the commit.
    before: Vec<Effect>,
    /// Effects that start after the commit.
    after: Vec<Effect>,
    /// The search for secrets, made when an event needs it for the first time.
    redaction: Option<Redaction>,
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

/// A transaction that is decided and applied, but not committed yet.
pub(super) struct Transaction {
    /// The end of the log before the transaction.
    after: Seq,
    /// The events of the command, then those that were decided within the transaction.
    outgoing: Vec<Outgoing>,
    /// How many of the events are those of the command.
    own: usize,
    followed: Vec<Durable>,
    /// Effects that start after the commit.
    effects: Vec<Effect>,
    /// Whether the transaction changes what sub-agents inherit.
    hands_down: bool,
    answer: Answer,
}

impl Transaction {
    fn stores_any(&self) -> bool {
        self.outgoing.iter().any(|event| event.durable)
    }

    /// Returns whether the transaction takes the session back, so that the log is folded again.
    pub(super) fn rewinds(&self) -> bool {
        self.outgoing.iter().any(|event| event.kind == REWOUND)
    }

    /// Returns whether the running turn is cancelled after the commit.
    pub(super) fn cancels_turn(&self) -> bool {
        let mut effects = self.effects.iter();
        effects.any(|effect| matches!(effect, Effect::CancelTurn))
    }

    /// Returns the batch of the transaction, to commit it once more.
    pub(super) fn batch(&self, record: SessionRecord) -> Batch {
        let durable = self.outgoing.iter().filter(|event| event.durable);
        let events = durable.map(|event| StoredEvent {
            seq: event.seq,
            id: event.id.clone(),
            kind: event.kind.into(),
            visible: if event.visible {
                Visibility::Public
            } else {
                Visibility::Internal
            },
            json: event.line.clone(),
        });
        Batch {
            record,
            after: self.after,
            events: events.collect(),
        }
    }
}

impl Actor {
    pub(super) async fn carry_out(
        &mut self,
        steps: Vec<Step>,
        answer: Answer,
        on_failure: OnFailure,
    ) -> Result<Done, SessionError> {
        let after = self.state.seq;
        // These events change what sub-agents inherit.
        let changes = |step: &Step| match step {
            // Rules hold in the copies of repositories that agents work in.
            Step::Store(Durable::TaskStarted(started)) => started.work.has_worktree(),
            step => matches!(
                step,
                Step::Store(
                    Durable::Permissions(_)
                        | Durable::RulesChanged(_)
                        | Durable::Configured(_)
                        | Durable::ClientGuard(_)
                        | Durable::GuardFolders(_)
                        | Durable::VouchedHooks(_)
                        | Durable::SkillSwitched(_)
                        | Durable::ModeChanged(_)
                        | Durable::AgentSelected(_)
                        | Durable::AgentDeselected(_)
                )
            ),
        };
        let hands_down = steps.iter().any(changes);
        self.running.transaction_ends();
        let mut written = Written::default();
        self.write(steps, &mut written)?;
        let own = written.outgoing.len();
        self.decide_within(&mut written)?;
        self.make_room_within(&mut written)?;
        let commit = (!written.events.is_empty()).then(|| {
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
        let transaction = Transaction {
            after,
            outgoing: written.outgoing,
            own,
            followed: written.followed,
            effects: written.after,
            hands_down,
            answer,
        };
        let Some(commit) = commit else {
            return Ok(self.finish(transaction));
        };
        match commit.await {
            Ok(()) => {
                self.commits_work();
                if transaction.rewinds() {
                    self.fold_again().await;
                }
                Ok(self.finish(transaction))
            }
            Err(error) => Box::pin(self.commit_failed(transaction, error, on_failure)).await,
        }
    }

    /// Publishes a committed transaction and starts its effects.
    pub(super) fn finish(&mut self, transaction: Transaction) -> Done {
        let stored_any = transaction.stores_any();
        self.running.transaction_ends();
        transaction
            .followed
            .iter()
            .for_each(|event| self.show_stored(event));
        let mut own = transaction.outgoing;
        let later = own.split_off(transaction.own);
        self.notify_hooks(&own);
        self.notify_hooks(&later);
        let event = self.publish_committed(own, later);
        self.clients.audience().release();
        self.waits.settle(&self.state);
        self.settle_calls();
        if stored_any {
            self.report_status();
            self.wait_for_answers();
            self.announce_update();
        }
        let mut effects = transaction.effects;
        self.storage.hold_back(&mut effects);
        self.start_all(effects);
        if transaction.hands_down {
            self.follow_planning();
            self.hand_down();
        }
        if !self.state.is_busy() {
            self.shells.drop_spare();
        }
        Done {
            answer: transaction.answer,
            event,
        }
    }

    /// Turns decided steps into events and effects. No event is published before the commit.
    fn write(&mut self, steps: Vec<Step>, written: &mut Written) -> Result<(), SessionError> {
        for step in steps {
            let line = match step {
                Step::Store(event) => {
                    let event = self.presentable(event, &mut written.redaction);
                    let recorded = journal::record(&mut self.state, &self.services.clock, &event);
                    if matches!(event, Durable::UserMessage(_)) {
                        self.turn_began();
                    }
                    recorded.map(|(stored, out)| {
                        self.waits.stored(&event, &out);
                        written.events.push(stored);
                        written.outgoing.push(out);
                        if self.subagents.is_child() {
                            written.followed.push(event);
                        }
                    })
                }
                Step::Tell(event) => {
                    let event = self.tellable(&event);
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

    /// Lets the kernel make room for a model call that is about to go out, if its request is large.
    /// The events of this transaction belong to the request, so that this comes after them.
    fn make_room_within(&mut self, written: &mut Written) -> Result<(), SessionError> {
        let is_call = |effect: &Effect| matches!(effect, Effect::CallModel(_));
        let Some(at) = written.before.iter().position(is_call) else {
            return Ok(());
        };
        let request = self.request_facts();
        if !request.is_large() {
            return Ok(());
        }
        if let Effect::CallModel(turn) = written.before.remove(at) {
            let need = Command::MakeRoom(Box::new(RoomNeed { turn, request }));
            let decision = self.decide(need)?;
            self.write(decision.steps, written)?;
        }
        Ok(())
    }

    pub(super) fn start_all(&mut self, effects: Vec<Effect>) {
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
                seq: event.durable.then_some(event.seq),
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
