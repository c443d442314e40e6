//! One session, as a client holds it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loopd_proto::attachment::Attachment;
use loopd_proto::event::{self, Body, Durable, Ephemeral, Event};
use loopd_proto::id::{MessageId, RequestId, SessionId, ToolCallId};
use loopd_proto::method::{self, Method};
use loopd_proto::params::event_log::ReadParams;
use loopd_proto::params::session::{Of, SendMode, SendParams};
use loopd_proto::params::{permission, tool};
use loopd_proto::session::{SessionCreateParams, SessionOpened, SessionResumeParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::task::AbortHandle;
use ulid::Ulid;

use crate::connection::Shared;
use crate::events::Events;
use crate::feed::{Feed, Refresh};
use crate::turn::{Reply, Turn, Wait};
use crate::{Client, Error, SessionConfig};

/// How many events one read brings at most.
const PAGE: usize = 1_000;

/// How a session is opened.
pub(crate) enum Opening {
    Create,
    Resume(SessionId),
    Watch(SessionId),
}

/// A handler under way, and the call it is for.
pub(crate) struct Running {
    call: Option<ToolCallId>,
    task: AbortHandle,
}

/// What outlives the connections of an open session.
pub(crate) struct Core {
    pub(crate) id: SessionId,
    pub(crate) config: SessionConfig,
    pub(crate) feed: Feed,
    running: Mutex<HashMap<RequestId, Running>>,
}

/// An open session; clones mean the same one.
///
/// Dropping it leaves the session attended until the client goes; [`Session::destroy`] ends it.
#[derive(Clone)]
pub struct Session {
    core: Arc<Core>,
    client: Client,
    opened: Arc<SessionOpened>,
}

/// A message to send.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub prompt: String,
    /// What people see in its place.
    pub display_prompt: Option<String>,
    pub attachments: Vec<Attachment>,
    pub mode: SendMode,
}

impl<T: Into<String>> From<T> for Message {
    fn from(prompt: T) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }
}

impl Session {
    pub(crate) async fn open(
        client: Client,
        opening: Opening,
        config: SessionConfig,
    ) -> Result<Self, Error> {
        let id = match &opening {
            Opening::Create => config.session_id.clone(),
            Opening::Resume(id) | Opening::Watch(id) => Some(id.clone()),
        };
        let core = Arc::new(Core {
            id: id.unwrap_or_else(|| Ulid::generate().into()),
            config,
            feed: Feed::new(),
            running: Mutex::default(),
        });
        let shared = &client.shared;
        // Before the request: the first events may come before its answer is read.
        shared.add(&core)?;
        let opened = match opening {
            Opening::Create => {
                let params = core.create_params();
                shared.call_once::<method::SessionCreate>(&params).await
            }
            Opening::Resume(_) | Opening::Watch(_) => {
                core.feed.begin_refresh(Refresh::Now);
                let params = SessionResumeParams {
                    disable_resume: matches!(opening, Opening::Watch(_)),
                    ..core.resume_params()
                };
                let resumed = shared.call_once::<method::SessionResume>(&params).await;
                match resumed {
                    Ok(opened) => core.learn_cursor(shared).await.map(|()| opened),
                    Err(error) => Err(error),
                }
            }
        };
        match opened {
            Ok(opened) => Ok(Self {
                core,
                client,
                opened: Arc::new(opened),
            }),
            Err(error) => {
                shared.forget(&core.id);
                Err(error)
            }
        }
    }

    pub fn id(&self) -> &SessionId {
        &self.core.id
    }

    /// What the daemon said about the session when it was opened.
    pub fn opened(&self) -> &SessionOpened {
        &self.opened
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What happens in the session; the first stream, that of a turn included, begins with what was
    /// heard since it was opened.
    pub fn events(&self) -> Events {
        self.core.feed.stream()
    }

    /// What was stored of the session so far, and what happens from exactly there on.
    pub async fn past_and_events(&self) -> Result<(Vec<Event>, Events), Error> {
        let mut live = self.core.feed.stream_from_here();
        let past = self.history().await?;
        live.leave_out(&past);
        Ok((past, live))
    }

    /// What was stored of the session so far.
    pub async fn history(&self) -> Result<Vec<Event>, Error> {
        let of = self.of();
        let stored = self.call::<method::SessionGetMessages>(&of).await?;
        Ok(parse_all(&stored.events))
    }

    /// Queues a message; a repetition after a broken connection does no harm.
    pub async fn send(&self, message: impl Into<Message>) -> Result<MessageId, Error> {
        let message = message.into();
        let params = SendParams {
            session_id: self.core.id.clone(),
            prompt: message.prompt,
            message_id: Some(Ulid::generate().into()),
            display_prompt: message.display_prompt,
            attachments: Some(message.attachments),
            mode: message.mode,
            prepend: false,
            agent_mode: None,
            request_headers: std::collections::BTreeMap::new(),
            source: None,
        };
        let rests = self.core.feed.rests();
        let sent = self.call::<method::SessionSend>(&params).await?;
        self.core.feed.stir(rests);
        Ok(sent.message_id)
    }

    /// Sends a message and follows what comes of it.
    pub async fn turn(&self, message: impl Into<Message>, wait: Wait) -> Result<Turn, Error> {
        let message = message.into();
        let shown = message.display_prompt.as_ref().unwrap_or(&message.prompt);
        let shown = shown.clone();
        let events = self.core.feed.stream();
        let id = self.send(message).await?;
        Ok(Turn::new(id, shown, events, wait))
    }

    /// Sends a message and waits until the session has nothing left to do.
    pub async fn send_and_wait(&self, message: impl Into<Message>) -> Result<Reply, Error> {
        self.send_and_wait_for(message, Wait::Session).await
    }

    /// Sends a message and waits for the answer, or for everything that it set off.
    pub async fn send_and_wait_for(
        &self,
        message: impl Into<Message>,
        wait: Wait,
    ) -> Result<Reply, Error> {
        let mut turn = self.turn(message, wait).await?;
        while turn.next().await.is_some() {}
        turn.finish()
    }

    /// Stops the running turn.
    pub async fn abort(&self) -> Result<(), Error> {
        self.call::<method::SessionAbort>(&self.of()).await?;
        Ok(())
    }

    /// Leaves the session; the last one out ends it, and its log stays.
    pub async fn destroy(&self) -> Result<(), Error> {
        let left = self.call::<method::SessionDestroy>(&self.of()).await;
        self.client.shared.forget(&self.core.id);
        match left {
            Err(error) if error.is_session_not_found() => Ok(()),
            left => left.map(|_| ()),
        }
    }

    /// Calls any method of the table; it may be called again when the connection breaks.
    pub async fn call<M>(&self, params: &M::Params) -> Result<M::Result, Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        self.client.shared.call::<M>(params).await
    }

    fn of(&self) -> Of {
        Of {
            session_id: self.core.id.clone(),
        }
    }
}

impl Core {
    fn create_params(&self) -> SessionCreateParams {
        SessionCreateParams {
            session_id: Some(self.id.clone()),
            git_hub_token: None,
            options: self.config.options.clone(),
            offer: self.config.offer(),
        }
    }

    /// Joins again, quietly; what the session was doing goes on.
    pub(crate) fn resume_params(&self) -> SessionResumeParams {
        SessionResumeParams {
            session_id: self.id.clone(),
            git_hub_token: None,
            continue_pending_work: true,
            disable_resume: true,
            options: self.config.options.clone(),
            offer: self.config.offer(),
        }
    }

    pub(crate) fn read_params(&self, cursor: Option<String>) -> ReadParams {
        ReadParams {
            session_id: self.id.clone(),
            cursor,
            max: Some(PAGE),
            wait_ms: None,
            types: None,
        }
    }

    async fn learn_cursor(&self, shared: &Shared) -> Result<(), Error> {
        let of = Of {
            session_id: self.id.clone(),
        };
        let tail = shared.call_once::<method::EventLogTail>(&of).await;
        let (cursor, outcome) = match tail {
            Ok(tail) => (Some(tail.cursor), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.feed.end_refresh(cursor);
        outcome
    }

    /// Moves the cursor on when much has happened since.
    pub(crate) fn keep_cursor(self: &Arc<Self>, shared: &Arc<Shared>) {
        if !self.feed.begin_refresh(Refresh::WhenDue) {
            return;
        }
        let (core, shared) = (self.clone(), shared.clone());
        shared.clone().tasks.spawn(async move {
            if let Err(error) = core.learn_cursor(&shared).await {
                tracing::debug!(session = %core.id, %error, "the cursor stays where it was");
            }
        });
    }

    fn running(&self) -> MutexGuard<'_, HashMap<RequestId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the handler of a question that an event asks, or stops that of one it closes.
    pub(crate) fn act_upon(self: &Arc<Self>, shared: &Arc<Shared>, event: &Event) {
        match &event.body {
            Body::Durable(Durable::PermissionRequested(asked)) => {
                let Some(deciding) = self.config.handlers.decide(asked.clone()) else {
                    return;
                };
                let (core, own) = (self.clone(), shared.clone());
                let request = asked.request_id.clone();
                self.run(shared, &asked.request_id, None, async move {
                    let params = permission::HandleParams {
                        session_id: core.id.clone(),
                        request_id: request,
                        result: deciding.await,
                    };
                    own.call::<method::PermissionsHandle>(&params).await
                });
            }
            Body::Durable(Durable::ExternalToolRequested(asked)) => {
                let Some(running) = self.config.handlers.run(asked) else {
                    return;
                };
                let (core, own) = (self.clone(), shared.clone());
                let request = asked.request_id.clone();
                let call = Some(asked.tool_call_id.clone());
                self.run(shared, &asked.request_id, call, async move {
                    let (result, error) = match running.await {
                        Ok(result) => (Some(result), None),
                        Err(error) => (None, Some(error)),
                    };
                    let params = tool::HandleParams {
                        session_id: core.id.clone(),
                        request_id: request,
                        result,
                        error,
                    };
                    own.call::<method::ToolsHandlePending>(&params).await
                });
            }
            Body::Durable(Durable::PermissionCompleted(completed)) => {
                self.stop(|request, _| *request == completed.request_id);
            }
            Body::Ephemeral(Ephemeral::ExternalToolCompleted(completed)) => {
                self.stop(|request, _| *request == completed.request_id);
            }
            Body::Durable(Durable::ToolComplete(completed)) => {
                self.stop(|_, running| running.call.as_ref() == Some(&completed.tool_call_id));
            }
            Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => {}
        }
    }

    fn run<T>(
        self: &Arc<Self>,
        shared: &Shared,
        request: &RequestId,
        call: Option<ToolCallId>,
        answering: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) where
        T: Send + 'static,
    {
        let mut running = self.running();
        // A question that is shown again is the one that is being dealt with.
        if running.contains_key(request) {
            return;
        }
        let (core, own) = (self.clone(), request.clone());
        let task = shared.tasks.spawn(async move {
            if let Err(error) = answering.await {
                tracing::warn!(session = %core.id, %error, "an answer could not be given");
            }
            core.running().remove(&own);
        });
        let task = task.abort_handle();
        running.insert(request.clone(), Running { call, task });
    }

    /// Drops the handlers of questions that are closed, or no longer ours to answer.
    pub(crate) fn stop(&self, which: impl Fn(&RequestId, &Running) -> bool) {
        self.running().retain(|request, running| {
            let stops = which(request, running);
            if stops {
                running.task.abort();
            }
            !stops
        });
    }
}

/// Reads events; one that is not an event at all is left out and logged.
pub(crate) fn parse_all(lines: &[Box<RawValue>]) -> Vec<Event> {
    let parse = |line: &RawValue| match event::read(line.get()) {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::warn!(%error, "an event could not be read");
            None
        }
    };
    lines.iter().filter_map(|line| parse(line)).collect()
}
