//! The part of an open session that survives a reconnect: its configuration, its feed and its
//! running handlers. The connection drives it; callers hold it inside a `Session`.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use loopd_proto::event::{self, Body, Durable, Ephemeral, Event};
use loopd_proto::id::{RequestId, SessionId, ToolCallId};
use loopd_proto::method;
use loopd_proto::params::daemon::{Activity, DaemonStatus};
use loopd_proto::params::event_log::ReadParams;
use loopd_proto::params::session::Of;
use loopd_proto::params::{permission, tool};
use loopd_proto::session::{PolicyParams, SessionCreateParams, SessionResumeParams};
use loopd_proto::time::Timestamp;
use serde_json::value::RawValue;
use tokio::task::AbortHandle;

use crate::connection::Shared;
use crate::feed::{Feed, Refresh};
use crate::handler::PermissionAsked;
use crate::{Error, SessionConfig};

/// The maximum number of events in one read.
const PAGE: usize = 1_000;

/// A running handler, and the tool call that it belongs to.
pub(crate) struct Running {
    call: Option<ToolCallId>,
    task: AbortHandle,
}

/// The part of an open session that survives a reconnect.
pub(crate) struct SessionCore {
    pub(crate) id: SessionId,
    pub(crate) config: SessionConfig,
    pub(crate) feed: Feed,
    running: Mutex<HashMap<RequestId, Running>>,
}

impl SessionCore {
    pub(crate) fn new(id: SessionId, config: SessionConfig) -> Arc<Self> {
        Arc::new(Self {
            id,
            config,
            feed: Feed::new(),
            running: Mutex::default(),
        })
    }

    pub(crate) fn create_params(&self) -> SessionCreateParams {
        SessionCreateParams {
            session_id: Some(self.id.clone()),
            policy: PolicyParams::default(),
            options: self.config.options.clone(),
            offer: self.config.offer(),
            ..SessionCreateParams::default()
        }
    }

    /// Joins again without a `session.resume` event and lets pending work go on.
    pub(crate) fn resume_params(&self) -> SessionResumeParams {
        SessionResumeParams {
            session_id: self.id.clone(),
            git_hub_token: None,
            policy: PolicyParams::default(),
            continue_pending_work: true,
            disable_resume: true,
            returns: true,
            trust_working_directory: None,
            without_effect: Vec::new(),
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

    /// Publishes an idle event if the daemon reports the session idle and the feed has not seen one.
    pub(crate) fn publish_idle_if_missed(&self, status: &DaemonStatus) {
        let mut sessions = status.sessions.iter();
        let live = sessions.find(|live| live.session_id == self.id);
        if live.is_none_or(|live| live.activity == Activity::Idle) {
            let uptime = i64::try_from(status.uptime_ms).unwrap_or(0);
            self.feed
                .publish_idle(Timestamp(status.started.0.saturating_add(uptime)));
        }
    }

    pub(crate) async fn refresh_cursor(&self, shared: &Shared) -> Result<(), Error> {
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

    /// Starts a cursor refresh when many events have come since the last one.
    pub(crate) fn refresh_cursor_when_due(self: &Arc<Self>, shared: &Arc<Shared>) {
        if !self.feed.begin_refresh(Refresh::WhenDue) {
            return;
        }
        let (core, shared) = (self.clone(), shared.clone());
        shared.clone().tasks.spawn(async move {
            if let Err(error) = core.refresh_cursor(&shared).await {
                tracing::debug!(session = %core.id, %error, "the cursor stays where it was");
            }
        });
    }

    fn running(&self) -> MutexGuard<'_, HashMap<RequestId, Running>> {
        self.running.lock()
    }

    /// Starts the handler of a question that the event opens, or stops that of one that it closes.
    pub(crate) fn dispatch(self: &Arc<Self>, shared: &Arc<Shared>, event: &Event) {
        match &event.body {
            Body::Durable(Durable::PermissionRequested(asked)) => {
                let question = PermissionAsked::new(asked.clone(), event.head.agent_id.clone());
                let Some(deciding) = self.config.handlers.decide(question) else {
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
        // The daemon repeats open questions to whoever joins: a handler is already at work on it.
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

    /// Drops the handlers that `which` selects.
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

/// Parses events. A line that is not an event is logged and skipped.
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
