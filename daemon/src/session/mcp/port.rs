//! The session as its MCP servers see it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_mcp::port::{CallRef, Elicitation, ElicitationAnswer, HostSession, ServerNews};
use loopd_proto::id::SessionId;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;

use super::McpMessage;
use crate::session::Message;

/// Passes on what servers ask and tell.
pub(super) struct SessionPort {
    session: SessionId,
    mailbox: mpsc::Sender<Message>,
    news: Mutex<News>,
    roots: Mutex<Vec<PathBuf>>,
}

/// What clients have to be told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// The servers of the session are others than before.
    pub(super) loaded: bool,
    status: bool,
    pub(super) tools: BTreeSet<String>,
    pub(super) prompts: BTreeSet<String>,
    pub(super) resources: BTreeSet<String>,
}

impl SessionPort {
    pub(super) fn new(session: SessionId, mailbox: mpsc::Sender<Message>) -> Self {
        Self {
            session,
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
        _server: &str,
        _call: CallRef,
        _asked: Elicitation,
    ) -> BoxFuture<'_, ElicitationAnswer> {
        async { ElicitationAnswer::Declined }.boxed()
    }

    fn sample(
        &self,
        _server: &str,
        _call: CallRef,
        _request: Value,
    ) -> BoxFuture<'_, Result<Value, String>> {
        async { Err("this session lets no server use its model".to_owned()) }.boxed()
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
            ServerNews::ToolsChanged => {
                all.tools.insert(name());
            }
            ServerNews::PromptsChanged => {
                all.prompts.insert(name());
            }
            ServerNews::ResourcesChanged => {
                all.resources.insert(name());
            }
            ServerNews::ResourceUpdated(_) | ServerNews::Task(_) => {}
            ServerNews::Log { level, text } => {
                tracing::debug!(session = %self.session, server, level, text, "an MCP server said something");
            }
        }
        drop(all);
        self.wake();
    }
}
