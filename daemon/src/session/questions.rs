//! The open questions of a session to its clients: which a joining client is shown, which the
//! clients of the session at the top are shown, and which callers wait for the answers.
//!
//! Only the state says which questions are open. This module keeps what cannot be stored.

mod declined;

use std::collections::HashMap;
use std::sync::Arc;

use loopd_proto::id::{EventId, RequestId, Seq};
use loopd_proto::session::ClientOffer;
use loopd_store::Visibility;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use self::declined::Declined;
use super::SessionHandle;
use super::actor::Actor;
use super::ask::ElicitationAnswer;
use super::clients::attach::Attachment;
use super::journal::Outgoing;
use super::part::WaitingPart;
use super::subagents::tree::TreeQuestion;
use crate::client::{Class, Client, ClientId, Notice};
use loopd_kernel::questions::{Asks, OpenQuestion};

/// The callers in this process that wait for answers.
#[derive(Default)]
pub(super) struct QuestionWaiters {
    /// The tasks that wait for the clients' replies.
    requests: HashMap<RequestId, Vec<AbortHandle>>,
    /// The callers that wait for a form.
    forms: HashMap<RequestId, oneshot::Sender<ElicitationAnswer>>,
    /// The clients that cannot answer a permission request.
    declined: Declined,
    /// The parts of slash commands that wait for a permission.
    parts: HashMap<RequestId, WaitingPart>,
}

impl QuestionWaiters {
    pub(super) fn sent(&mut self, request: RequestId, reply: AbortHandle) {
        self.requests.entry(request).or_default().push(reply);
    }

    pub(super) fn wants_form(
        &mut self,
        request: RequestId,
        reply: oneshot::Sender<ElicitationAnswer>,
    ) {
        self.forms.insert(request, reply);
    }

    pub(super) fn wants_part(&mut self, request: RequestId, part: WaitingPart) {
        self.parts.insert(request, part);
    }

    /// Returns the part that waited for this permission.
    pub(super) fn part_decided(&mut self, request: &RequestId) -> Option<WaitingPart> {
        self.parts.remove(request)
    }

    /// Stops waiting for the answer to a question.
    pub(super) fn withdraw(&mut self, request: &RequestId) {
        for reply in self.requests.remove(request).unwrap_or_default() {
            reply.abort();
        }
        self.forms.remove(request);
        self.declined.forget(request);
    }

    pub(super) fn form_answered(&mut self, request: &RequestId, answer: ElicitationAnswer) {
        if let Some(reply) = self.forms.remove(request) {
            // The send fails if the caller has stopped waiting.
            reply.send(answer).ok();
        }
    }
}

/// Returns whether a client with this offer is shown the stored event of a question. Questions to
/// users reach clients in other ways.
pub(super) fn answers(offer: &ClientOffer, asks: &Asks) -> bool {
    match asks {
        Asks::Permission(_) => offer.request_permission,
        Asks::ClientTool(tool) => {
            let mut tools = offer.tools.iter().flatten();
            tools.any(|offered| offered.name == *tool)
        }
        Asks::UserInput(_)
        | Asks::Elicitation(_)
        | Asks::ExitPlanMode(_)
        | Asks::AutoModeSwitch(_)
        | Asks::Guard => false,
    }
}

impl Actor {
    /// Shows a joining client the events after its position, and the older questions that are still
    /// open and that it can answer.
    pub(super) async fn show_missed(&self, client: &Arc<dyn Client>, attachment: &Attachment) {
        let mut first_missed = None;
        for event in self.recent.durable_after(attachment.from) {
            first_missed.get_or_insert(event.seq);
            client.tell(Class::Event, &Notice::event(&self.state.id, &event.line));
        }
        for question in self.state.questions.iter() {
            let was_missed = first_missed.is_some_and(|first| question.seq >= first);
            if was_missed || !answers(&attachment.offer, &question.asks) {
                continue;
            }
            if let Some(line) = self.stored_line(question).await {
                client.tell(Class::Event, &Notice::event(&self.state.id, &line));
            }
        }
    }

    /// Lets the daemon wait for a person while a question is open, as long as it waits for people.
    pub(super) fn wait_for_answers(&mut self) {
        let is_open = self.state.questions.iter().next().is_some();
        match (is_open, &self.asks) {
            (true, None) => self.asks = Some(self.services.keep_alive.waiting()),
            (false, Some(_)) => self.asks = None,
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Shows a client the open calls of tools that it did not run before.
    pub(super) async fn show_open_calls(&self, client: ClientId, tools: &[String]) {
        let Some(client) = self.clients.all().find(|known| known.id() == client) else {
            return;
        };
        for question in self.state.questions.iter() {
            let is_call = matches!(&question.asks, Asks::ClientTool(tool) if tools.contains(tool));
            if is_call && let Some(line) = self.stored_line(question).await {
                client.tell(Class::Event, &Notice::event(&self.state.id, &line));
            }
        }
    }

    /// Returns the stored event of a question; `None` if clients do not see that event.
    async fn stored_line(&self, question: &OpenQuestion) -> Option<Arc<str>> {
        if let Some(line) = self.recent.line(question.seq) {
            return Some(line);
        }
        let before = Seq(question.seq.0.saturating_sub(1));
        let stored = self.services.store.read(&self.state.id, before, 1).await;
        let stored = stored.map(|events| events.into_iter().next());
        match stored {
            Ok(Some(event)) if event.seq == question.seq => {
                return (event.visible == Visibility::Public).then_some(event.json);
            }
            Ok(_) => {
                tracing::error!(session = %self.state.id, request = %question.request, "the log has no event for an open question; clients that join are not shown it");
            }
            Err(error) => {
                tracing::error!(session = %self.state.id, request = %question.request, %error, "an open question could not be read; clients that join are not shown it");
            }
        }
        None
    }

    /// Publishes the events of a transaction: first those of its command, then those that were
    /// decided within it. Returns the last event of the command. The clients of the session at the
    /// top see a question only now, after the commit.
    pub(super) fn publish_committed(
        &mut self,
        own: Vec<Outgoing>,
        later: Vec<Outgoing>,
    ) -> Option<EventId> {
        let parent = self.subagents.parent();
        let tree = parent.map(|parent| parent.tree().clone());
        // The guard lives until the events are out: a client that joins sees a question once.
        let _table = tree.as_ref().and_then(|tree| {
            tree.committed(&self.state.id, &self.state.questions, |question| {
                let mut stored = own
                    .iter()
                    .chain(&later)
                    .filter(|event| event.durable && event.visible);
                let stored = stored.find(|event| event.seq == question.seq);
                self.asks_above(question, stored.map(|event| event.line.clone()))
            })
        });
        let last = self.publish(own);
        self.publish(later);
        last
    }

    /// Shows the clients at the top what this session asked before it was reopened.
    pub(in crate::session) async fn show_questions_above(&self) {
        let Some(parent) = self.subagents.parent() else {
            return;
        };
        let mut asked = Vec::new();
        for question in self.state.questions.iter() {
            let line = self.stored_line(question).await;
            asked.push(self.asks_above(question, line));
        }
        parent.tree().reopened(asked);
    }

    fn asks_above(&self, question: &OpenQuestion, line: Option<Arc<str>>) -> TreeQuestion {
        TreeQuestion {
            session: SessionHandle {
                id: self.state.id.clone(),
                mailbox: self.mailbox.clone(),
            },
            question: question.clone(),
            line,
        }
    }
}
