//! A live child session, which a run of its parent drives.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::id::Seq;

use super::children::Children;
use crate::session::{SessionError, SessionHandle};
use crate::subagent::ChildError;
use crate::subagent::child::{Child, ChildResult, ChildStatus};
use loopd_kernel::command::{AbortRequest, Command, Send, SendPlace};
use loopd_kernel::history::Entry;
use loopd_kernel::state::State;

/// The state of a sub-agent's session when a run begins; it decides how messages are sent.
pub(in crate::session) struct Beginning {
    /// The sub-agent has never received a message.
    is_new: bool,
    /// Where new messages go: behind messages that the sub-agent has not read yet.
    place: SendPlace,
}

impl Beginning {
    pub(super) fn of(state: &State) -> Self {
        let waits = !state.queue.is_empty();
        Self {
            is_new: state.totals.user_requests == 0 && !waits,
            place: if waits {
                SendPlace::Enqueue
            } else {
                SendPlace::Immediate
            },
        }
    }
}

pub(super) struct ChildSession {
    pub(super) handle: SessionHandle,
    pub(super) beginning: Beginning,
    pub(super) children: Children,
}

impl Child for ChildSession {
    fn is_new(&self) -> bool {
        self.beginning.is_new
    }

    fn say(&self, message: String) -> BoxFuture<'static, Result<(), ChildError>> {
        let said = self.handle.command(Command::Send(Send {
            id: None,
            prompt: message,
            display_prompt: None,
            attachments: Vec::new(),
            agent_mode: None,
            request_headers: BTreeMap::new(),
            source: None,
            place: self.beginning.place,
            sender: None,
        }));
        async move { Ok(said.await.map(|_| ())?) }.boxed()
    }

    fn abort(&self) -> BoxFuture<'static, ()> {
        let aborted = self.handle.command(Command::Abort(AbortRequest::OF_DAEMON));
        async move {
            // A child session that has ended needs no abort.
            aborted.await.ok();
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'static, ()> {
        let (handle, children) = (self.handle.clone(), self.children.clone());
        async move {
            handle.stop().await;
            children.remove(handle.id());
        }
        .boxed()
    }
}

impl From<SessionError> for ChildError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error)
            | SessionError::NotYetStored(error)
            | SessionError::Unreadable(error) => Self::Log(error),
            SessionError::Refused(refusal) => Self::Refused(refusal),
            SessionError::Overloaded(_) => Self::Overloaded,
            SessionError::Faulted(_) => Self::Crashed,
            SessionError::NotFound(_)
            | SessionError::Ended(_)
            | SessionError::Left(_)
            | SessionError::Invalid(_)
            | SessionError::FileNotChanged(_) => Self::Ended,
        }
    }
}

/// Returns the status of a session for the run that began at this position of its log.
pub(super) fn status(state: &State, since: Seq) -> ChildStatus {
    if is_at_work(state) {
        ChildStatus::AtWork
    } else {
        ChildStatus::Rests(Arc::new(result(state, since)))
    }
}

/// Returns whether a session works, or has messages or sub-agents to wait for.
pub(in crate::session) fn is_at_work(state: &State) -> bool {
    let waits = !state.queue.is_empty() || !state.steering.is_empty();
    state.is_busy() || waits || state.tasks.has_agents_at_work()
}

/// Returns the result of a session for the run that began at this position of its log.
pub(in crate::session) fn result(state: &State, since: Seq) -> ChildResult {
    let mut said = state.history.after(since).rev();
    let response = said.find_map(|entry| match entry {
        Entry::Assistant(turn) if !turn.text.trim().is_empty() => Some(turn.text.clone()),
        _ => None,
    });
    let response = match (response, state.answer_cut) {
        (response, None) => response,
        (Some(text), Some(cut)) => Some(format!("{text}\n\n{}", cut.told_to_parent())),
        (None, Some(cut)) => Some(cut.told_to_parent().to_owned()),
    };
    ChildResult {
        outcome: state.last_outcome,
        response,
        error: state.last_error.clone(),
        usage: state.usage(),
    }
}
