//! A live child session, as the run of its parent drives it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::id::Seq;

use super::children::Children;
use crate::session::{SessionError, SessionHandle};
use crate::subagent::ChildError;
use crate::subagent::child::{Child, ChildResult, ChildStatus};
use loopd_kernel::command::{Command, Send, SendPlace};
use loopd_kernel::history::Entry;
use loopd_kernel::state::State;

/// How an agent's session is when a run of it begins, which decides how it is spoken to.
pub(in crate::session) struct Beginning {
    /// Nobody had spoken to it.
    is_new: bool,
    /// Where messages go: behind those that it had no time to read before.
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
        }));
        async move { Ok(said.await.map(|_| ())?) }.boxed()
    }

    fn abort(&self) -> BoxFuture<'static, ()> {
        let aborted = self.handle.command(Command::Abort);
        async move {
            // A child that is gone needs no interruption.
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
            SessionError::Store(error) => Self::Log(error),
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

/// How a session stands that was spoken to when its log ended there.
pub(super) fn status(state: &State, since: Seq) -> ChildStatus {
    if is_at_work(state) {
        ChildStatus::AtWork
    } else {
        ChildStatus::Rests(Arc::new(result(state, since)))
    }
}

/// Whether a session works or has something to work on.
pub(in crate::session) fn is_at_work(state: &State) -> bool {
    let waits = !state.queue.is_empty() || !state.steering.is_empty();
    state.is_busy() || waits || state.tasks.has_agents_at_work()
}

/// What a session came to that was spoken to when its log ended there.
pub(in crate::session) fn result(state: &State, since: Seq) -> ChildResult {
    let mut said = state.history.after(since).rev();
    let response = said.find_map(|entry| match entry {
        Entry::Assistant(turn) if !turn.text.trim().is_empty() => Some(turn.text.clone()),
        _ => None,
    });
    ChildResult {
        outcome: state.last_outcome,
        response,
        error: state.last_error.clone(),
        usage: state.usage(),
    }
}
