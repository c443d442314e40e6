//! Callers that wait until a message was dealt with (`session.sendAndWait`).
//!
//! The state has how a message ended. This module keeps the callers that wait, and two things that
//! the state does not have: the event that ends a wait, and the line of the answer. A wait never
//! blocks the agent loop, and cancelling it changes nothing. The actor and its transactions call
//! this module.

use std::sync::Arc;

use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{EventId, MessageId, Seq};
use loopd_proto::params::session::Until;
use tokio::sync::oneshot;

use super::actor::{Actor, Flow};
use super::journal::Outgoing;
use super::{Message, SessionError, SessionHandle};
use crate::client::ClientId;
use loopd_kernel::command::{Command, Send};
use loopd_kernel::state::{MessageEnd, State};

/// How a message was dealt with.
#[derive(Debug, Clone)]
pub struct Completion {
    pub message: MessageId,
    pub aborted: bool,
    pub response: Option<Response>,
    /// The event that ended the wait; `None` if it was published before the wait began.
    pub event: Option<EventId>,
}

/// The place of the event that answers a message.
#[derive(Debug, Clone)]
pub enum Response {
    Line(Arc<str>),
    /// The event is in the log, at this position.
    Stored(Seq),
}

/// Why a message was not dealt with.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WaitError {
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The run of the message failed, as a `session.error` event says.
    #[error("{message}")]
    Failed {
        message: String,
        event: Option<EventId>,
    },
}

type WaitReply = oneshot::Sender<Result<Completion, WaitError>>;

/// A message to send, and the caller that waits for its end.
pub(super) struct SendAndWait {
    send: Send,
    until: Until,
    client: ClientId,
    reply: WaitReply,
}

/// A caller that waits.
struct Wait {
    message: MessageId,
    until: Until,
    client: ClientId,
    reply: WaitReply,
    /// How the run of the message ended, if the session has not become idle yet.
    ran: Option<Ran>,
}

struct Ran {
    aborted: bool,
    /// The position of the answer in the log, and its line if the line is in memory.
    answer: Option<(Seq, Option<Arc<str>>)>,
}

/// All callers that wait for messages of one session.
#[derive(Default)]
pub(super) struct Waits {
    waiting: Vec<Wait>,
    news: News,
    /// The latest message of the model while a caller waited.
    said: Option<Said>,
}

/// The events of the running transaction that concern waiting callers.
#[derive(Default)]
struct News {
    /// Whether a message may have ended.
    ended: bool,
    errors: Vec<(EventId, String)>,
    loop_idle: Option<EventId>,
    session_idle: Option<EventId>,
    /// Whether an abort made the session idle.
    aborted: bool,
    /// The message with which the autopilot stopped, and the event that says so.
    stopped: Option<(MessageId, EventId)>,
    /// Set when a caller waits for a message that ended earlier: no event will end that wait.
    late: bool,
}

/// An `assistant.message` event.
struct Said {
    at: Seq,
    line: Arc<str>,
}

impl SessionHandle {
    /// Sends a message for a client and waits until it was dealt with. Dropping the future ends the
    /// wait and nothing else.
    pub fn send_and_wait(
        &self,
        send: Send,
        until: Until,
        client: ClientId,
    ) -> impl Future<Output = Result<Completion, WaitError>> + std::marker::Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::SendAndWait(Box::new(SendAndWait {
            send,
            until,
            client,
            reply,
        })));
        let id = self.id.clone();
        async move {
            posted?;
            let ended = answer.await;
            ended.unwrap_or_else(|_| Err(SessionError::Ended(id).into()))
        }
    }
}

impl Waits {
    /// Records an event that is being stored.
    pub(super) fn stored(&mut self, event: &Durable, outgoing: &Outgoing) {
        if self.waiting.is_empty() {
            return;
        }
        match event {
            Durable::AssistantMessage(_) => {
                self.said = Some(Said {
                    at: outgoing.seq,
                    line: outgoing.line.clone(),
                });
            }
            Durable::SessionError(failure) => {
                let error = (outgoing.id.clone(), failure.message.clone());
                self.news.errors.push(error);
            }
            Durable::LoopEnded(_) | Durable::Unqueued(_) => self.news.ended = true,
            Durable::AutopilotStopped(stopped) => {
                let request = stopped.request_id.clone();
                self.news.stopped = request.map(|request| (request, outgoing.id.clone()));
            }
            _ => {}
        }
    }

    /// Records an ephemeral event that is being published.
    pub(super) fn told(&mut self, event: &Ephemeral, outgoing: &Outgoing) {
        if self.waiting.is_empty() {
            return;
        }
        match event {
            Ephemeral::AssistantIdle(_) => self.news.loop_idle = Some(outgoing.id.clone()),
            Ephemeral::SessionIdle(idle) => {
                self.news.session_idle = Some(outgoing.id.clone());
                self.news.aborted = idle.aborted == Some(true);
            }
            _ => {}
        }
    }

    /// Answers the callers whose wait is over; called after a transaction was published.
    pub(super) fn settle(&mut self, state: &State) {
        let news = std::mem::take(&mut self.news);
        if news.ended || news.session_idle.is_some() {
            self.answer_all(state, &news);
        }
    }

    /// Forgets the events of a transaction that was not stored; the log ends at `end`.
    pub(super) fn forget_unstored(&mut self, end: Seq) {
        self.news = News::default();
        if self.said.as_ref().is_some_and(|said| said.at > end) {
            self.said = None;
        }
    }

    fn answer_all(&mut self, state: &State, news: &News) {
        for wait in std::mem::take(&mut self.waiting) {
            if let Some(wait) = wait.settled(state, news, self.said.as_ref()) {
                self.waiting.push(wait);
            }
        }
        if self.waiting.is_empty() {
            self.said = None;
        }
    }

    /// Answers the callers of one client, or all of them, with an error.
    pub(super) fn refuse(&mut self, whose: Whose, error: &SessionError) {
        let all = std::mem::take(&mut self.waiting).into_iter();
        let (refused, kept): (Vec<_>, _) = all.partition(|wait| match &whose {
            Whose::All => true,
            Whose::Of(client) => *client == wait.client,
        });
        self.waiting = kept;
        for wait in refused {
            wait.end(Err(error.clone().into()));
        }
    }
}

/// Whose waits are refused.
pub(super) enum Whose {
    All,
    Of(ClientId),
}

impl Wait {
    /// Answers the caller if the wait is over, else returns the wait.
    fn settled(mut self, state: &State, news: &News, said: Option<&Said>) -> Option<Self> {
        if self.reply.is_closed() {
            return None;
        }
        let ran = match state.end_of(&self.message) {
            // The message ended earlier; so many have ended since that the state dropped it.
            None => match self.ran.take() {
                Some(ran) => ran,
                None => return Some(self),
            },
            Some(MessageEnd::Removed) => {
                self.answer(None, Ran::REMOVED);
                return None;
            }
            Some(MessageEnd::Ran {
                outcome: LoopOutcome::Failed,
                error,
                ..
            }) => {
                self.end(Err(news.failure(error.as_ref())));
                return None;
            }
            Some(MessageEnd::Ran {
                outcome, answer, ..
            }) => Ran::new(*outcome, *answer),
        };
        let mut ran = ran.with(said);
        // The run ended by itself before, and the wait for its agents was aborted.
        ran.aborted |= news.aborted && !news.ended;
        let over = match self.until {
            Until::Idle => news.session_idle.clone(),
            Until::Answer => news.loop_idle.clone().or(news.session_idle.clone()),
            Until::Task => news.stop_of(&self.message).or(news.session_idle.clone()),
        };
        // The session goes on with the message of somebody else, which is nothing to wait for.
        let goes_on_with_others = ran.aborted && news.ended && state.is_busy();
        let over = over.or_else(|| {
            let idle = news.loop_idle.clone();
            idle.filter(|_| goes_on_with_others)
        });
        if over.is_none() && !news.late && !goes_on_with_others {
            self.ran = Some(ran);
            return Some(self);
        }
        self.answer(over, ran);
        None
    }

    fn answer(self, event: Option<EventId>, ran: Ran) {
        let message = self.message.clone();
        self.end(Ok(Completion {
            message,
            aborted: ran.aborted,
            response: ran.response(),
            event,
        }));
    }

    fn end(self, outcome: Result<Completion, WaitError>) {
        // The send fails if the caller has stopped waiting.
        self.reply.send(outcome).ok();
    }
}

impl News {
    /// Returns the event that says that the autopilot stopped with this message.
    fn stop_of(&self, message: &MessageId) -> Option<EventId> {
        let stopped = self.stopped.as_ref();
        let stopped = stopped.filter(|(request, _)| request == message);
        stopped.map(|(_, event)| event.clone())
    }

    /// Returns the error that a run failed with.
    fn failure(&self, error: Option<&EventId>) -> WaitError {
        let told = error.and_then(|error| self.errors.iter().find(|(id, _)| id == error));
        match told {
            Some((event, message)) => WaitError::Failed {
                message: message.clone(),
                event: Some(event.clone()),
            },
            None => WaitError::Failed {
                message: "the run that answered this message failed; its session.error says why"
                    .to_owned(),
                event: None,
            },
        }
    }
}

impl Ran {
    const REMOVED: Self = Self {
        aborted: true,
        answer: None,
    };

    fn new(outcome: LoopOutcome, answer: Option<Seq>) -> Self {
        let aborted = match outcome {
            LoopOutcome::Done | LoopOutcome::Failed => false,
            LoopOutcome::Aborted | LoopOutcome::Interrupted => true,
        };
        let answer = answer.filter(|_| !aborted).map(|at| (at, None));
        Self { aborted, answer }
    }

    /// Adds the line of the answer, if the answer is the model's latest message.
    fn with(mut self, said: Option<&Said>) -> Self {
        if let (Some((at, line)), Some(said)) = (&mut self.answer, said)
            && said.at == *at
        {
            *line = Some(said.line.clone());
        }
        self
    }

    fn response(self) -> Option<Response> {
        self.answer.map(|(at, line)| match line {
            Some(line) => Response::Line(line),
            None => Response::Stored(at),
        })
    }
}

impl Actor {
    /// Sends a message for a caller that waits until it was dealt with.
    pub(super) async fn send_and_wait(&mut self, wanted: SendAndWait) -> Flow {
        let SendAndWait {
            mut send,
            until,
            client,
            reply,
        } = wanted;
        let new = || self.services.clock.id().into();
        let message = send.id.get_or_insert_with(new).clone();
        // Before the send, because the transaction that takes the message may also end it.
        self.waits.waiting.push(Wait {
            message: message.clone(),
            until,
            client,
            reply,
            ran: None,
        });
        if self.storage.is_blocked() && self.state.accepted(&message).is_some() {
            // The message is in the log: its caller asks again after a broken connection, and waits
            // until the session can go on.
            if let Err(error) = self.decide(Command::Send(send))
                && let Some(wait) = self.waits.waiting.pop()
            {
                wait.end(Err(error.into()));
            }
            return Flow::Go;
        }
        match self.execute(Command::Send(send)).await {
            Ok(_) => {
                self.answer_late();
                Flow::Go
            }
            Err(error) => {
                let flow = self.flow_after(&error);
                // No wait was settled meanwhile, so the last one belongs to the refused message.
                if let Some(wait) = self.waits.waiting.pop() {
                    wait.end(Err(error.into()));
                }
                flow
            }
        }
    }

    /// Answers callers that ask again, after a broken connection, about messages that have ended
    /// since. While the session still works because of a message, a wait for idle goes on.
    fn answer_late(&mut self) {
        if self.state.is_at_work() {
            return;
        }
        let late = News {
            late: true,
            ..News::default()
        };
        self.waits.answer_all(&self.state, &late);
    }
}
