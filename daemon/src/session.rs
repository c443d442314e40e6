//! The public side of a session: a handle that sends commands to the mailbox of its actor.
//!
//! `rpc` calls the handle and `session::actor` replies. Every call queues its message before its
//! first `await`, so that two requests of one connection keep their order.

pub mod account;
pub mod actor;
mod ask;
pub mod beside;
mod budget;
pub mod clients;
mod consolidation;
mod deciding;
mod due;
mod effects;
mod files;
mod fleet;
pub mod hooks;
mod instructions;
pub mod join;
mod journal;
pub mod mcp;
mod part;
mod plan;
pub mod provide;
mod questions;
pub mod queued_command;
mod record;
mod redact;
pub mod registry;
mod resume;
mod rewind;
mod running;
mod shells;
pub mod skills;
mod storage;
pub mod subagents;
mod todos;
mod toolset;
mod transaction;
pub mod view;
pub mod waits;
mod work;

use std::sync::Arc;

use loopd_proto::event::ask::ElicitationRequested;
use loopd_proto::event::hook::HookEnd;
use loopd_proto::id::{EventId, RequestId, SessionId};
use loopd_proto::session::ClientTool;
use loopd_store::StoreError;
use tokio::sync::{mpsc, oneshot};

use crate::client::ClientId;
pub use ask::ElicitationAnswer;
use clients::attach::{Attachment, DetachReason};
pub use clients::slash::ClientRan;
use loopd_kernel::command::{Answer, Command, PartAsked, Refusal, RewindOrder};
use loopd_kernel::state::State;
use loopd_kernel::tasks::Task;
pub use part::{PartOrder, PartRan};
use provide::ProviderChange;
pub use resume::{hidden_in, state_of};
pub use rewind::RewindDone;
pub use toolset::matches as names_tool;

/// The most messages that may wait in the mailbox of one session.
const MAILBOX: usize = 1_024;

/// Why a session did not carry out a request.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SessionError {
    #[error("Session not found: {0}")]
    NotFound(SessionId),
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("the session {0} has more requests waiting than it can take; try again")]
    Overloaded(SessionId),
    /// The request was not carried out, because its events could not be stored.
    #[error("the session's log could not be written, so nothing was changed: {0}")]
    Store(Arc<StoreError>),
    #[error(
        "the session keeps this in memory and stores it when writing works again, so do not send it again; its log could not be written: {0}"
    )]
    NotYetStored(Arc<StoreError>),
    #[error("the session's log could not be read: {0}")]
    Unreadable(Arc<StoreError>),
    #[error("the session {0} failed and was closed; resume it to go on from its log")]
    Faulted(SessionId),
    #[error("a file of the session {0} could not be changed; the daemon's log says why")]
    FileNotChanged(SessionId),
    #[error("the session {0} ended before the message was dealt with")]
    Ended(SessionId),
    #[error("this connection has left the session {0}")]
    Left(SessionId),
    #[error("{0}")]
    Invalid(String),
}

/// The reply to a command.
#[derive(Debug, Clone)]
pub struct Done {
    pub answer: Answer,
    /// The last event that the command published.
    pub event: Option<EventId>,
}

/// A message to the actor.
enum Message {
    Command {
        command: Box<Command>,
        reply: oneshot::Sender<Result<Done, SessionError>>,
    },
    /// A client has nobody to ask for a permission.
    DeclinePermission {
        client: ClientId,
        request: RequestId,
        reply: oneshot::Sender<Result<Done, SessionError>>,
    },
    /// A client's answer to a tool call, after the hooks have seen it.
    Reviewed {
        command: Box<Command>,
        /// What hooks tell the model after the results of the turn.
        context: Vec<String>,
        /// The hooks that changed something.
        ended: Vec<HookEnd>,
        reply: oneshot::Sender<Result<Done, SessionError>>,
    },
    SendAndWait(Box<waits::SendAndWait>),
    /// Asks the model something about the conversation; the reply is what it said.
    AskBeside {
        question: beside::BesideQuestion,
        reply: oneshot::Sender<beside::BesideAnswer>,
    },
    /// Something about MCP servers.
    Mcp(mcp::McpMessage),
    /// The result of one of the session's effects.
    Report(Box<Command>),
    /// Reads the session without changing it.
    View(view::Look),
    Join(Box<join::Join>),
    Attach(Box<Attachment>),
    Detach {
        client: ClientId,
        reason: DetachReason,
        reply: Option<oneshot::Sender<()>>,
    },
    /// Shows a form to the clients; the reply is the first answer, or that no client can answer.
    Elicit {
        asked: Box<ElicitationRequested>,
        reply: oneshot::Sender<ElicitationAnswer>,
    },
    /// Lets a client run its slash command; the reply says how the command ended.
    RunClientCommand {
        name: String,
        args: String,
        reply: oneshot::Sender<ClientRan>,
    },
    /// A client reports how its slash command ended; the reply says whether a caller still waited.
    ClientCommandRan {
        request: RequestId,
        ran: ClientRan,
        reply: oneshot::Sender<bool>,
    },
    /// Runs a part of a slash command; the reply is what it said, or why it did not run.
    RunPart {
        order: PartOrder,
        reply: oneshot::Sender<PartRan>,
    },
    /// A part of a slash command needs a permission.
    AskForPart(Box<PartAsked>, part::WaitingPart),
    /// A client says anew whether it answers permission requests.
    RequirePermissions {
        client: ClientId,
        required: bool,
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    /// A client replaces the tools that it runs.
    SetTools {
        client: ClientId,
        tools: Vec<ClientTool>,
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    /// Changes the providers, or what the session knows of its model.
    Provide {
        change: Box<ProviderChange>,
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    /// Changes a file of the session, after all changes that were queued before.
    ChangeFile(files::FileChange),
    /// Asks for what the session hands to a sub-agent that starts.
    ParentAtStart {
        reply: oneshot::Sender<Box<subagents::spawn::ParentAtStart>>,
    },
    /// Makes this session a sub-agent of a live session.
    Adopt(Box<subagents::as_child::Adoption>),
    /// The run that drives this sub-agent ends; the reply has the commands that still run, or says that
    /// the sub-agent works again.
    Release {
        reply: oneshot::Sender<Option<Vec<Task>>>,
    },
    /// The parent of this sub-agent hands down its changed settings.
    Inherit(Box<subagents::as_child::Inheritance>),
    /// Ends the session for every attached client and stores its end in the log.
    Close {
        /// The reason, if the end is an error.
        error: Option<String>,
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    /// Ends the actor because the log is lost. Clients that wait for the running turn get an error.
    Abandon {
        why: String,
        reply: oneshot::Sender<()>,
    },
    /// Takes the session back to an earlier point.
    Rewind {
        order: Box<RewindOrder>,
        reply: rewind::RewindReply,
    },
    /// The daemon stops: the hooks are told that the session ends.
    TellEnd {
        reply: oneshot::Sender<()>,
    },
    /// Ends the actor without changing the log, unless somebody uses the session or it works.
    StopUnlessUsed {
        reply: oneshot::Sender<()>,
    },
    /// Ends the actor without changing the log.
    Stop {
        reply: oneshot::Sender<()>,
    },
}

/// A handle to a live session; cheap to clone.
#[derive(Clone)]
pub struct SessionHandle {
    id: SessionId,
    mailbox: mpsc::Sender<Message>,
}

impl SessionHandle {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns whether the actor has ended.
    pub fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }

    fn post(&self, message: Message) -> Result<(), SessionError> {
        self.mailbox.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SessionError::Overloaded(self.id.clone()),
            mpsc::error::TrySendError::Closed(_) => SessionError::NotFound(self.id.clone()),
        })
    }

    /// Sends a command and waits until its events are committed.
    pub fn command(
        &self,
        command: Command,
    ) -> impl Future<Output = Result<Done, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Command {
            command: Box::new(command),
            reply,
        });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.unwrap_or(Err(SessionError::Faulted(id)))
        }
    }

    /// Says that a client has nobody to ask for a permission.
    pub fn decline_permission(
        &self,
        client: ClientId,
        request: RequestId,
    ) -> impl Future<Output = Result<Done, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::DeclinePermission {
            client,
            request,
            reply,
        });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.unwrap_or(Err(SessionError::Faulted(id)))
        }
    }

    /// Reads from the session.
    pub fn view<T, F>(
        &self,
        look: F,
    ) -> impl Future<Output = Result<T, SessionError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&view::View<'_>) -> T + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::View(Box::new(move |view| {
            // The send fails if the caller has stopped waiting.
            reply.send(view.map(look)).ok();
        })));
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.unwrap_or(Err(SessionError::Faulted(id)))
        }
    }

    /// Reads from the state of the session.
    pub fn state<T, F>(
        &self,
        look: F,
    ) -> impl Future<Output = Result<T, SessionError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&State) -> T + Send + 'static,
    {
        self.view(move |view| look(view.state))
    }

    /// Attaches a client, which receives the events from a position on.
    pub fn attach(&self, attachment: Attachment) -> Result<(), SessionError> {
        self.post(Message::Attach(Box::new(attachment)))
    }

    /// Detaches a client; resolves when the actor has done so.
    pub fn detach(
        &self,
        client: ClientId,
        reason: DetachReason,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Detach {
            client,
            reason,
            reply: Some(reply),
        });
        async move {
            posted?;
            // The actor may end before it replies; then the client is detached as well.
            answer.await.ok();
            Ok(())
        }
    }

    /// Shows a form to the clients and waits for the first answer.
    pub fn elicit(
        &self,
        asked: ElicitationRequested,
    ) -> impl Future<Output = Result<ElicitationAnswer, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let asked = Box::new(asked);
        let posted = self.post(Message::Elicit { asked, reply });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::Faulted(id))
        }
    }

    /// Lets the client that offers a slash command run it, and waits until it has ended.
    pub fn run_client_command(
        &self,
        name: String,
        args: String,
    ) -> impl Future<Output = Result<ClientRan, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::RunClientCommand { name, args, reply });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::NotFound(id))
        }
    }

    /// Reports how a client's slash command ended; returns whether a caller still waited for it.
    pub fn client_command_ran(
        &self,
        request: RequestId,
        error: Option<String>,
    ) -> impl Future<Output = Result<bool, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let ran = error.map_or(Ok(()), Err);
        let posted = self.post(Message::ClientCommandRan {
            request,
            ran,
            reply,
        });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::Faulted(id))
        }
    }

    /// Sets whether a client answers permission requests.
    pub fn require_permissions(
        &self,
        client: ClientId,
        required: bool,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::RequirePermissions {
            client,
            required,
            reply,
        });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.unwrap_or(Err(SessionError::Faulted(id)))
        }
    }

    /// Replaces the tools that a client runs.
    pub fn set_tools(
        &self,
        client: ClientId,
        tools: Vec<ClientTool>,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::SetTools {
            client,
            tools,
            reply,
        });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.unwrap_or(Err(SessionError::Faulted(id)))
        }
    }

    /// Changes the providers of the session.
    pub fn provide(
        &self,
        change: ProviderChange,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Provide {
            change: Box::new(change),
            reply,
        });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.unwrap_or(Err(SessionError::Faulted(id)))
        }
    }

    /// Ends the session for all clients; they receive its last event, with the error if any.
    pub fn close(
        &self,
        error: Option<String>,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        let (reply, closed) = oneshot::channel();
        let posted = self.post(Message::Close { error, reply });
        async move {
            match posted {
                // The session has ended already.
                Err(SessionError::NotFound(_)) => Ok(()),
                Err(error) => Err(error),
                Ok(()) => closed.await.unwrap_or(Ok(())),
            }
        }
    }

    /// Ends the actor of a session whose log is lost; resolves when its clients were notified.
    pub fn abandon(&self, why: &str) -> impl Future<Output = ()> + Send + use<> {
        let (reply, told) = oneshot::channel();
        let mailbox = self.mailbox.clone();
        let why = why.to_owned();
        async move {
            if mailbox.send(Message::Abandon { why, reply }).await.is_ok() {
                // An error means that the actor has ended already.
                told.await.ok();
            }
        }
    }

    /// Tells the hooks that the session ends because the daemon stops.
    pub fn tell_end(&self) -> impl Future<Output = ()> + Send + use<> {
        let (reply, told) = oneshot::channel();
        let mailbox = self.mailbox.clone();
        async move {
            if mailbox.send(Message::TellEnd { reply }).await.is_ok() {
                // An error means that the actor has ended already.
                told.await.ok();
            }
        }
    }

    /// Ends the actor without changing the log, unless somebody uses the session or it works.
    async fn stop_unless_used(&self) {
        let (reply, stopped) = oneshot::channel();
        if self
            .mailbox
            .send(Message::StopUnlessUsed { reply })
            .await
            .is_ok()
        {
            // An error means that the actor has ended already.
            stopped.await.ok();
        }
    }

    /// Ends the actor without changing the log.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + use<> {
        let (reply, stopped) = oneshot::channel();
        let mailbox = self.mailbox.clone();
        async move {
            if mailbox.send(Message::Stop { reply }).await.is_ok() {
                // An error means that the actor has ended already.
                stopped.await.ok();
            }
        }
    }
}
