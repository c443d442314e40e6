//! A session as the rest of the daemon sees it: a handle whose calls are commands in a mailbox.
//!
//! `rpc` calls it; `session::actor` answers. Every call queues its message before its first wait,
//! so that two requests of one connection keep their order.

pub mod actor;
mod ask;
pub mod clients;
mod effects;
mod files;
pub mod join;
mod journal;
pub mod provide;
mod questions;
mod redact;
pub mod registry;
mod resume;
mod running;
mod shells;
pub mod subagents;
mod toolset;
mod transaction;
pub mod view;
pub mod waits;
mod work;

use std::sync::Arc;

use loopd_proto::id::{EventId, RequestId, SessionId};
use loopd_proto::session::ClientTool;
use loopd_store::StoreError;
use tokio::sync::{mpsc, oneshot};

use crate::client::ClientId;
pub use ask::ElicitationAnswer;
use clients::attach::{Attachment, DetachReason};
pub use clients::slash::ClientRan;
use loopd_kernel::command::{Answer, Command, Refusal};
use loopd_kernel::state::State;
use provide::ProviderChange;

/// How many messages may wait for one session.
const MAILBOX: usize = 1_024;

/// Why a session could not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SessionError {
    #[error("Session not found: {0}")]
    NotFound(SessionId),
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("the session {0} has more requests waiting than it can take; try again")]
    Overloaded(SessionId),
    #[error("the session's log could not be written: {0}")]
    Store(Arc<StoreError>),
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

impl SessionError {
    /// Whether the session can go on after it.
    fn flow(&self) -> actor::Flow {
        match self {
            Self::Store(_) | Self::Faulted(_) => actor::Flow::Stop,
            Self::NotFound(_)
            | Self::Refused(_)
            | Self::Overloaded(_)
            | Self::FileNotChanged(_)
            | Self::Ended(_)
            | Self::Left(_)
            | Self::Invalid(_) => actor::Flow::Go,
        }
    }
}

/// What a command came to.
#[derive(Debug, Clone)]
pub struct Done {
    pub answer: Answer,
    /// The last event that the command made.
    pub event: Option<EventId>,
}

/// What reaches the actor.
enum Message {
    Command {
        command: Box<Command>,
        reply: oneshot::Sender<Result<Done, SessionError>>,
    },
    SendAndWait(Box<waits::SendAndWait>),
    /// An effect of the session reports.
    Report(Box<Command>),
    /// Looks at the session without changing it.
    View(Box<dyn FnOnce(&view::View<'_>) + Send>),
    Join(Box<join::Join>),
    Attach(Box<Attachment>),
    Detach {
        client: ClientId,
        reason: DetachReason,
        reply: Option<oneshot::Sender<()>>,
    },
    /// Wants an elicitation answered, or learns that nobody can.
    Elicit {
        message: String,
        schema: serde_json::Value,
        reply: oneshot::Sender<ElicitationAnswer>,
    },
    /// Wants a client's slash command run, and learns how that ended.
    RunClientCommand {
        name: String,
        args: String,
        reply: oneshot::Sender<ClientRan>,
    },
    /// A client reports how its slash command ended; the reply says whether anybody waited.
    ClientCommandRan {
        request: RequestId,
        ran: ClientRan,
        reply: oneshot::Sender<bool>,
    },
    /// A client changes its mind about answering permission questions.
    RequirePermissions {
        client: ClientId,
        required: bool,
        reply: oneshot::Sender<()>,
    },
    /// A client replaces the tools that it runs; the reply says whether it is attached.
    SetTools {
        client: ClientId,
        tools: Vec<ClientTool>,
        reply: oneshot::Sender<bool>,
    },
    /// Providers or what is known of the model change.
    Provide {
        change: Box<ProviderChange>,
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    /// Changes a file of the session after those before it.
    ChangeFile(files::FileChange),
    /// Wants to know what an agent of the session is made from.
    ParentAtStart {
        reply: oneshot::Sender<Box<subagents::spawn::ParentAtStart>>,
    },
    /// Makes the session an agent of a live one.
    Adopt(Box<subagents::parent::Adoption>),
    /// What the session has from its parent has changed.
    Inherit(Box<subagents::parent::Inheritance>),
    /// Ends the session for everybody who is attached, and says so in its log.
    Close {
        /// Why, if that is an error.
        error: Option<String>,
        reply: oneshot::Sender<Result<(), SessionError>>,
    },
    /// Ends the actor, whose log is lost; who waits for the turn under way is told that it failed.
    Abandon {
        why: String,
        reply: oneshot::Sender<()>,
    },
    /// Ends the actor; its log stays.
    Stop {
        reply: oneshot::Sender<()>,
    },
}

/// A cheap reference to a live session.
#[derive(Clone)]
pub struct SessionHandle {
    id: SessionId,
    mailbox: mpsc::Sender<Message>,
}

impl SessionHandle {
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Whether the actor has ended.
    pub fn is_closed(&self) -> bool {
        self.mailbox.is_closed()
    }

    fn post(&self, message: Message) -> Result<(), SessionError> {
        self.mailbox.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SessionError::Overloaded(self.id.clone()),
            mpsc::error::TrySendError::Closed(_) => SessionError::NotFound(self.id.clone()),
        })
    }

    /// Gives a command and waits until what it caused is committed.
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

    /// Reads something out of the session.
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
            // The asker may have gone; then nobody wants to know.
            reply.send(look(view)).ok();
        })));
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::Faulted(id))
        }
    }

    /// Reads something out of the session's state.
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

    /// Lets a client hear the session from a position on.
    pub fn attach(&self, attachment: Attachment) -> Result<(), SessionError> {
        self.post(Message::Attach(Box::new(attachment)))
    }

    /// A client leaves; resolves when that is settled.
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
            // The actor may end while it settles this: then it is settled.
            answer.await.ok();
            Ok(())
        }
    }

    /// Puts a form to the clients and waits for the first answer.
    pub fn elicit(
        &self,
        message: String,
        schema: serde_json::Value,
    ) -> impl Future<Output = Result<ElicitationAnswer, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Elicit {
            message,
            schema,
            reply,
        });
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::Faulted(id))
        }
    }

    /// Lets the client that brought a slash command run it, and waits for its end.
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

    /// Reports how such a command ended; whether anybody waited for it.
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

    /// Says whether a client answers permission questions.
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
            answer.await.map_err(|_| SessionError::Faulted(id))
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
            match answer.await {
                Ok(true) => Ok(()),
                Ok(false) => Err(SessionError::Left(id)),
                Err(_) => Err(SessionError::Faulted(id)),
            }
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

    /// Ends the session for everybody; whoever is attached hears its end, and the error if there is
    /// one.
    pub fn close(
        &self,
        error: Option<String>,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        let (reply, closed) = oneshot::channel();
        let posted = self.post(Message::Close { error, reply });
        async move {
            match posted {
                // Somebody else has ended it.
                Err(SessionError::NotFound(_)) => Ok(()),
                Err(error) => Err(error),
                Ok(()) => closed.await.unwrap_or(Ok(())),
            }
        }
    }

    /// Ends the actor of a session whose log is lost; resolves when its clients were told.
    pub fn abandon(&self, why: &str) -> impl Future<Output = ()> + Send + use<> {
        let (reply, told) = oneshot::channel();
        let mailbox = self.mailbox.clone();
        let why = why.to_owned();
        async move {
            if mailbox.send(Message::Abandon { why, reply }).await.is_ok() {
                // An error means that it has ended already.
                told.await.ok();
            }
        }
    }

    /// Ends the actor without touching the log.
    pub fn stop(&self) -> impl Future<Output = ()> + Send + use<> {
        let (reply, stopped) = oneshot::channel();
        let mailbox = self.mailbox.clone();
        async move {
            if mailbox.send(Message::Stop { reply }).await.is_ok() {
                // An error means that it has ended already.
                stopped.await.ok();
            }
        }
    }
}
