//! A live child session, which a run of its parent drives.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::id::{Seq, ShellId, TaskId, ToolCallId};
use tokio::sync::oneshot;

use super::children::Children;
use crate::session::{Message, SessionError, SessionHandle};
use crate::subagent::ChildError;
use crate::subagent::child::{Child, ChildResult, ChildStatus, CommandEnding};
use crate::tool::shell_output;
use loopd_exec::shells::{CloseReason, FoundShell};
use loopd_kernel::command::{AbortRequest, Command, Send, SendPlace};
use loopd_kernel::history::Entry;
use loopd_kernel::state::State;
use loopd_kernel::tasks::Task;
use loopd_kernel::texts;

/// How many characters of a command's output its end tells.
const LAST_OUTPUT: usize = 2_000;

/// How many bytes of the results of interrupted calls are told to the parent.
const CUT_CALLS: usize = 6 * 1024;

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
            required_tool: None,
            request_headers: BTreeMap::new(),
            source: None,
            place: self.beginning.place,
            sender: None,
            scope: None,
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

    fn release(&self) -> BoxFuture<'static, Option<Vec<Task>>> {
        let (reply, released) = oneshot::channel();
        let posted = self.handle.post(Message::Release { reply });
        async move {
            if posted.is_err() {
                return Some(Vec::new());
            }
            // A session that is gone leaves nothing running.
            released.await.unwrap_or_else(|_| Some(Vec::new()))
        }
        .boxed()
    }

    fn has_news(&self) -> BoxFuture<'static, bool> {
        let seen = self
            .handle
            .state(|state| !state.tasks.undelivered().is_empty());
        async move { seen.await.unwrap_or(false) }.boxed()
    }

    fn wake(&self) -> BoxFuture<'static, Result<(), ChildError>> {
        let woken = self.handle.command(Command::TakeUp);
        async move { Ok(woken.await.map(|_| ())?) }.boxed()
    }

    fn command_end(&self, id: TaskId) -> BoxFuture<'static, Option<CommandEnding>> {
        let handle = self.handle.clone();
        async move {
            loop {
                let wanted = id.clone();
                let seen = handle.view(move |view| {
                    let task = view.state.tasks.get(wanted.as_str()).cloned();
                    let shell = view.shells.find(&ShellId::from(wanted.as_str())).ok();
                    (task, shell, view.ticks.subscribe())
                });
                let (task, shell, mut ticks) = seen.await.ok()?;
                let task = task?;
                if let Some(ending) = task.ending() {
                    return Some(CommandEnding {
                        ending: ending.clone(),
                        output: last_output(&task, shell).await,
                    });
                }
                ticks.changed().await.ok()?;
            }
        }
        .boxed()
    }

    fn command_output(&self, id: TaskId) -> BoxFuture<'static, String> {
        let wanted = id.clone();
        let seen = self.handle.view(move |view| {
            let task = view.state.tasks.get(wanted.as_str()).cloned();
            let shell = view.shells.find(&ShellId::from(wanted.as_str())).ok();
            (task, shell, view.agents.clone())
        });
        async move {
            let Ok((Some(task), shell, agents)) = seen.await else {
                return String::new();
            };
            if agents.is_left(&id) {
                // A sub-agent of the child left it.
                return agents.command_output(&id).await.unwrap_or_default();
            }
            last_output(&task, shell).await
        }
        .boxed()
    }

    fn stop_command(&self, id: TaskId) -> BoxFuture<'static, bool> {
        let seen = self
            .handle
            .view(|view| (view.shells.clone(), view.agents.clone()));
        async move {
            let Ok((shells, agents)) = seen.await else {
                return false;
            };
            if agents.is_left(&id) {
                return agents.stop_command(&id).await;
            }
            let shell = ShellId::from(id.as_str());
            shells.stop(&shell, CloseReason::Cancelled).await.is_ok()
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (handle, children) = (self.handle.clone(), self.children.clone());
        async move {
            handle.stop().await;
            children.remove(handle.id());
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'static, ()> {
        let (handle, children) = (self.handle.clone(), self.children.clone());
        // Its log says that its commands were stopped. This stores nothing if there are none.
        let suspended = self.handle.command(Command::Suspend(Vec::new()));
        async move {
            // A session that has ended needs no end.
            suspended.await.ok();
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
    // What it said beside its calls is no answer.
    let mut last = state.history.after(since).rev();
    let last = last.find_map(|entry| match entry {
        Entry::Assistant(turn) => Some(turn),
        _ => None,
    });
    let is_empty = last.is_some_and(|turn| turn.calls.is_empty() && turn.text.trim().is_empty());
    let unfinished = match (&response, state.answer_cut) {
        (_, Some(cut)) => Some(cut.told_to_parent().trim_matches(['[', ']']).to_owned()),
        (None, None) => Some("it ended without an answer".to_owned()),
        (Some(_), None) => is_empty.then(|| "it ended without an answer".to_owned()),
    };
    let response = match (response, state.answer_cut) {
        (Some(text), None) if is_empty => Some(format!("{text}\n\n{ONLY_BEFORE}")),
        (response, None) => response,
        (Some(text), Some(cut)) => Some(format!("{text}\n\n{}", cut.told_to_parent())),
        (None, Some(cut)) => Some(cut.told_to_parent().to_owned()),
    };
    ChildResult {
        outcome: state.last_outcome,
        response,
        unfinished,
        cut_calls: cut_calls(state, since),
        error: state.last_error.clone(),
        limited: state.last_error_is_limit,
        usage: state.usage(),
    }
}

/// The note after what an agent said, if its last message was empty.
const ONLY_BEFORE: &str =
    "[The agent ended without an answer. This is what it said beside its calls before.]";

/// Returns what the calls had that were interrupted together with the session: the model of the
/// session has not read it. `None` if they had nothing.
fn cut_calls(state: &State, since: Seq) -> Option<String> {
    let mut cut = Vec::new();
    for entry in state.history.after(since).rev() {
        match entry {
            Entry::Result {
                call,
                text,
                interrupted: true,
                ..
            } if text != texts::INTERRUPTED => cut.push((call, text)),
            Entry::Result { .. } | Entry::Image { .. } => {}
            Entry::User(_) => return None,
            Entry::Assistant(turn) => {
                let room = CUT_CALLS / cut.len().max(1);
                let tell = |(id, text): (&ToolCallId, &String)| {
                    let call = turn.calls.iter().find(|call| call.id == *id)?;
                    Some(format!("[{}] {}", call.name, texts::end_of(text, room)))
                };
                let told: Vec<String> = cut.into_iter().rev().filter_map(tell).collect();
                return (!told.is_empty()).then(|| told.join("\n\n"));
            }
        }
    }
    None
}

/// Returns the last of what a command printed.
async fn last_output(task: &Task, shell: Option<FoundShell>) -> String {
    let text = match shell {
        Some(FoundShell::Attached(command)) => shell_output::piece(command.run.output()),
        // A log that cannot be read counts as empty.
        Some(FoundShell::Detached(command)) => command.tail().await.unwrap_or_default(),
        None => task.latest_response().unwrap_or_default().to_owned(),
    };
    let text = text.trim_end();
    let start = text.char_indices().rev().nth(LAST_OUTPUT - 1);
    let start = start.map_or(0, |(start, _)| start);
    text.get(start..).unwrap_or(text).to_owned()
}
