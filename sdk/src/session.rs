//! An open session of a client.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use loopd_proto::attachment::Attachment;
use loopd_proto::event::Event;
use loopd_proto::id::{MessageId, SessionId};
use loopd_proto::method::{self, Method};
use loopd_proto::params::autopilot::{AutopilotStatus, PauseParams, Paused};
use loopd_proto::params::session::{Of, SendAndWaitParams, SendMode, SendParams};
use loopd_proto::params::settings::ModeParams;
use loopd_proto::params::usage::Metrics;
use loopd_proto::run_scope::RunScope;
use loopd_proto::session::{Mode, SessionOpened, SessionResumeParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use ulid::Ulid;

use crate::core::{SessionCore, parse_all};
use crate::events::Events;
use crate::feed::Refresh;
use crate::turn::{Reply, Turn, Wait};
use crate::{Client, Error, SessionConfig};

/// The ways to open a session.
pub(crate) enum Opening {
    Create,
    Resume(SessionId),
    Watch(SessionId),
}

/// An open session. Clones refer to the same session.
///
/// Dropping it does not leave the session: the client stays joined until it closes.
/// [`Session::destroy`] leaves it.
#[derive(Clone)]
pub struct Session {
    core: Arc<SessionCore>,
    client: Client,
    opened: Arc<SessionOpened>,
}

/// A message to send.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub prompt: String,
    /// The text that people see instead of the prompt.
    pub display_prompt: Option<String>,
    pub attachments: Vec<Attachment>,
    pub mode: SendMode,
    /// What the message sets for its run only, as a slash command says.
    pub scope: Option<Box<RunScope>>,
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
        let core = SessionCore::new(id.unwrap_or_else(|| Ulid::generate().into()), config);
        let shared = &client.shared;
        // Before the request, because the first events may come before its reply.
        shared.add(&core)?;
        let opened = match opening {
            Opening::Create => {
                let params = core.create_params();
                shared.call_once::<method::SessionCreate>(&params).await
            }
            Opening::Resume(_) | Opening::Watch(_) => {
                core.feed.begin_refresh(Refresh::Now);
                let watches = matches!(opening, Opening::Watch(_));
                let mut params = SessionResumeParams {
                    disable_resume: watches,
                    returns: watches,
                    ..core.resume_params()
                };
                params.offer.observer = watches;
                let resumed = shared.call_once::<method::SessionResume>(&params).await;
                match resumed {
                    Ok(opened) => core.refresh_cursor(shared).await.map(|()| opened),
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

    /// Returns the daemon's reply to the request that opened the session.
    pub fn opened(&self) -> &SessionOpened {
        &self.opened
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Opens a stream of the session's events. The first stream, which may be that of a turn, begins
    /// with the events since the session was opened.
    pub fn events(&self) -> Events {
        self.core.feed.stream()
    }

    /// Returns the stored events, and a stream that continues exactly where they end.
    pub async fn past_and_events(&self) -> Result<(Vec<Event>, Events), Error> {
        let mut live = self.core.feed.stream_from_here();
        let past = self.history().await?;
        live.skip_read(&past);
        Ok((past, live))
    }

    /// Returns the stored events.
    pub async fn history(&self) -> Result<Vec<Event>, Error> {
        let of = self.of();
        let stored = self.call::<method::SessionGetMessages>(&of).await?;
        Ok(parse_all(&stored.events))
    }

    /// Queues a message, exactly once even if the connection breaks.
    pub async fn send(&self, message: impl Into<Message>) -> Result<MessageId, Error> {
        let params = self.sending(message.into(), Ulid::generate().into());
        let idle_count = self.core.feed.idle_count();
        let shared = &self.client.shared;
        let (sent, tries) = shared.call_counting::<method::SessionSend>(&params).await?;
        self.core.feed.mark_busy(idle_count);
        if tries > 1 {
            // A daemon that has since died may have taken the message and reported nothing.
            self.core
                .publish_idle_if_missed(&self.client.daemon_status().await?);
        }
        Ok(sent.message_id)
    }

    /// Sends a message and returns the turn that it starts.
    pub fn turn(&self, message: impl Into<Message>, wait: Wait) -> Turn {
        let id: MessageId = Ulid::generate().into();
        let params = SendAndWaitParams {
            send: self.sending(message.into(), id.clone()),
            until: wait.into(),
        };
        let events = self.core.feed.stream();
        let shared = self.client.shared.clone();
        let completion =
            async move { shared.call::<method::SessionSendAndWait>(&params).await }.boxed();
        Turn::new(id, wait, events, completion)
    }

    /// Builds the request with an id of ours, so that the daemon recognises a repetition.
    fn sending(&self, message: Message, id: MessageId) -> SendParams {
        SendParams {
            session_id: self.core.id.clone(),
            prompt: message.prompt,
            message_id: Some(id),
            display_prompt: message.display_prompt,
            attachments: Some(message.attachments),
            mode: message.mode,
            prepend: false,
            agent_mode: None,
            request_headers: BTreeMap::new(),
            source: None,
            required_tool: None,
            run_scope: message.scope,
            wait: false,
            without_effect: Vec::new(),
        }
    }

    /// Sends a message and waits until the session has nothing left to do.
    pub async fn send_and_wait(&self, message: impl Into<Message>) -> Result<Reply, Error> {
        self.send_and_wait_for(message, Wait::Session).await
    }

    /// Sends a message and waits as long as `wait` says.
    pub async fn send_and_wait_for(
        &self,
        message: impl Into<Message>,
        wait: Wait,
    ) -> Result<Reply, Error> {
        let mut turn = self.turn(message, wait);
        while turn.next().await.is_some() {}
        turn.finish()
    }

    /// Returns what the session and all its sub-agents have used, and its limits.
    pub async fn usage(&self) -> Result<Metrics, Error> {
        let session_id = self.id().clone();
        self.call::<method::UsageGetMetrics>(&Of { session_id })
            .await
    }

    /// Switches the session to a mode.
    pub async fn set_mode(&self, mode: Mode) -> Result<(), Error> {
        let params = ModeParams {
            session_id: self.core.id.clone(),
            mode,
            expected_mode: None,
        };
        self.call::<method::ModeSet>(&params).await.map(|_| ())
    }

    /// Returns what the autopilot of the session does, and why it stopped last.
    pub async fn autopilot(&self) -> Result<AutopilotStatus, Error> {
        self.call::<method::LoopdAutopilotStatus>(&self.of()).await
    }

    /// Pauses the autopilot: the agent is not told to go on when it stops.
    pub async fn pause_autopilot(&self) -> Result<Paused, Error> {
        self.set_autopilot_paused(true).await
    }

    /// Lets a paused autopilot go on. An agent that has stopped meanwhile goes on at once.
    pub async fn continue_autopilot(&self) -> Result<Paused, Error> {
        self.set_autopilot_paused(false).await
    }

    async fn set_autopilot_paused(&self, paused: bool) -> Result<Paused, Error> {
        let params = PauseParams {
            session_id: self.core.id.clone(),
            paused,
        };
        self.call::<method::LoopdAutopilotPause>(&params).await
    }

    /// Leaves the session. When the last client leaves, the session ends; its log stays.
    pub async fn destroy(&self) -> Result<(), Error> {
        let left = self.call::<method::SessionDestroy>(&self.of()).await;
        self.client.shared.forget(&self.core.id);
        match left {
            Err(error) if error.is_session_not_found() => Ok(()),
            left => left.map(|_| ()),
        }
    }

    /// Calls a method of the protocol. The request is sent again if the connection breaks.
    pub async fn call<M>(&self, params: &M::Params) -> Result<M::Result, Error>
    where
        M: Method,
        M::Params: Serialize,
        M::Result: DeserializeOwned,
    {
        self.client.shared.call::<M>(params).await
    }

    pub(crate) fn of(&self) -> Of {
        Of {
            session_id: self.core.id.clone(),
        }
    }
}
