//! The session as its MCP servers see it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_mcp::port::{CallRef, Elicitation, ElicitationAnswer, HostSession, ServerNews};
use loopd_model::http::Url;
use loopd_proto::event::ask::{ElicitationAction, ElicitationRequested};
use loopd_proto::id::{RequestId, SessionId, ToolCallId};
use loopd_proto::visible::visible;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::McpMessage;
use super::sampling::SampleOrder;
use crate::services::Services;
use crate::session::Message;
use loopd_kernel::command::Command;

/// Passes on what servers ask and tell.
pub(super) struct SessionPort {
    session: SessionId,
    services: Arc<Services>,
    mailbox: mpsc::Sender<Message>,
    news: Mutex<News>,
    roots: Mutex<Vec<PathBuf>>,
}

/// Closes a question when the server stops waiting for it.
struct OpenForm {
    mailbox: mpsc::Sender<Message>,
    /// `None` once it is answered.
    request: Option<RequestId>,
}

impl Drop for OpenForm {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            let command = Command::AnswerElicitation {
                request,
                action: ElicitationAction::Cancel,
                content: None,
            };
            // A question that cannot be closed now is closed by whoever answers it.
            self.mailbox
                .try_send(Message::Report(Box::new(command)))
                .ok();
        }
    }
}

/// Closes the permission request of a server that stops waiting for the model.
struct OpenSample {
    mailbox: mpsc::Sender<Message>,
    /// `None` once it is answered.
    request: Option<RequestId>,
}

impl Drop for OpenSample {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            let command = Command::WithdrawPart(request);
            // A request that cannot be closed now is closed by whoever answers it.
            self.mailbox
                .try_send(Message::Report(Box::new(command)))
                .ok();
        }
    }
}

/// Whether people may be sent to a page.
fn is_safe(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| {
        let host = url.host_str().unwrap_or_default();
        let is_local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        url.scheme() == "https" || (url.scheme() == "http" && is_local)
    })
}

/// The most failures of servers that wait to be told.
const MOST_FAILURES: usize = 32;

/// What clients have to be told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// The servers of the session are others than before.
    pub(super) loaded: bool,
    status: bool,
    /// The servers that failed, and why, in order.
    pub(super) failures: Vec<(String, String)>,
    pub(super) tools: BTreeSet<String>,
    pub(super) prompts: BTreeSet<String>,
    pub(super) resources: BTreeSet<String>,
}

impl SessionPort {
    pub(super) fn new(
        session: SessionId,
        services: Arc<Services>,
        mailbox: mpsc::Sender<Message>,
    ) -> Self {
        Self {
            session,
            services,
            mailbox,
            news: Mutex::default(),
            roots: Mutex::default(),
        }
    }

    /// Returns what clients have to be told, once.
    pub(super) fn take_news(&self) -> Option<News> {
        let mut news = self.news.lock();
        (*news != News::default()).then(|| std::mem::take(&mut *news))
    }

    fn wake(&self) {
        // If the mailbox is full, the session looks for news after the next message anyway.
        self.mailbox.try_send(Message::Mcp(McpMessage::News)).ok();
    }

    pub(super) fn set_roots(&self, roots: Vec<PathBuf>) {
        *self.roots.lock() = roots;
    }
}

impl HostSession for SessionPort {
    fn elicit(
        &self,
        server: &str,
        call: CallRef,
        asked: Elicitation,
    ) -> BoxFuture<'_, ElicitationAnswer> {
        let request = RequestId::from(self.services.clock.id());
        let (message, schema, url) = match asked {
            Elicitation::Form { message, schema } => (message, Some(schema), None),
            Elicitation::Url { message, url, .. } => (message, None, Some(url)),
        };
        let asked = ElicitationRequested {
            request_id: request.clone(),
            message: visible(&message).into_owned(),
            mode: Some(if url.is_some() { "url" } else { "form" }.to_owned()),
            requested_schema: schema,
            tool_call_id: call.0.as_deref().map(ToolCallId::from),
            elicitation_source: Some(server.to_owned()),
            url,
        };
        async move {
            if asked.url.as_deref().is_some_and(|url| !is_safe(url)) {
                return ElicitationAnswer::Declined;
            }
            let mut open = OpenForm {
                mailbox: self.mailbox.clone(),
                request: Some(request),
            };
            let (reply, answer) = oneshot::channel();
            let message = Message::Mcp(McpMessage::Elicit {
                asked: Box::new(asked),
                reply,
            });
            if self.mailbox.send(message).await.is_err() {
                return ElicitationAnswer::Cancelled;
            }
            let answer = answer.await;
            open.request = None;
            match answer {
                Ok(form) => match form.action {
                    ElicitationAction::Accept => ElicitationAnswer::Accepted(form.content),
                    ElicitationAction::Decline => ElicitationAnswer::Declined,
                    ElicitationAction::Cancel => ElicitationAnswer::Cancelled,
                },
                Err(_) => ElicitationAnswer::Declined,
            }
        }
        .boxed()
    }

    fn sample(
        &self,
        server: &str,
        _call: CallRef,
        request: Value,
    ) -> BoxFuture<'_, Result<Value, String>> {
        let order = SampleOrder {
            request: RequestId::from(self.services.clock.id()),
            server: server.to_owned(),
            params: request,
        };
        async move {
            let mut open = OpenSample {
                mailbox: self.mailbox.clone(),
                request: Some(order.request.clone()),
            };
            let (reply, sampled) = oneshot::channel();
            let message = Message::Mcp(McpMessage::Sample { order, reply });
            let ended = || "the session has ended".to_owned();
            self.mailbox.send(message).await.map_err(|_| ended())?;
            let sampled = sampled.await;
            open.request = None;
            sampled.map_err(|_| ended())?
        }
        .boxed()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.services.clock.now().0).unwrap_or(0)
    }

    fn roots(&self) -> Vec<PathBuf> {
        self.roots.lock().clone()
    }

    fn servers_changed(&self) {
        self.news.lock().loaded = true;
        self.wake();
    }

    fn news(&self, server: &str, news: ServerNews) {
        let mut all = self.news.lock();
        let name = || server.to_owned();
        match news {
            ServerNews::Status => all.status = true,
            ServerNews::Failed(why) => {
                // A server that fails that often before anybody is told has failed once for them.
                if all.failures.len() < MOST_FAILURES {
                    all.failures.push((name(), why));
                }
            }
            ServerNews::Pushed(message) => {
                let message = McpMessage::Pushed {
                    server: name(),
                    message,
                };
                // A session that does not keep up with its messages gets fewer of them.
                self.mailbox.try_send(Message::Mcp(message)).ok();
            }
            ServerNews::ToolsChanged => {
                all.tools.insert(name());
            }
            ServerNews::PromptsChanged => {
                all.prompts.insert(name());
            }
            ServerNews::ResourcesChanged => {
                all.resources.insert(name());
            }
            ServerNews::ResourceUpdated(_) => {}
            ServerNews::Log { level, text } => {
                tracing::debug!(session = %self.session, server, level, text, "an MCP server said something");
            }
        }
        drop(all);
        self.wake();
    }
}
