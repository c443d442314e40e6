//! The MCP servers of a session: when they are looked for, and what clients are told about them.

pub mod app_sampling;
pub(super) mod lookup;
mod port;
mod pushed;
pub mod sampling;
mod tokens;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use loopd_mcp::naming;
use loopd_mcp::{PushedMessage, Server};
use loopd_proto::event::Ephemeral;
use loopd_proto::event::ask::ElicitationRequested;
use loopd_proto::event::mcp::{
    ListChanged, LoadedServer, McpStatus, OauthCompleted, OauthOutcome, OauthRequired,
    ServersLoaded, StatusChanged,
};
use loopd_proto::id::{RequestId, SessionId};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, mpsc, oneshot};

use self::app_sampling::AppSample;
use self::lookup::look;
use self::port::SessionPort;
use self::sampling::{MOST_OPEN, SampleOrder, Sampled};
pub use self::tokens::ONLY_CLIENTS;
use super::actor::Actor;
use super::ask::ElicitationAnswer;
use super::{Message, SessionError, SessionHandle};
use crate::client::ClientId;
use crate::launch::looks_secret;
use crate::mcp::McpCell;
use crate::redaction::file::FileMasks;
use crate::services::Services;
use crate::tool::mcp::{AtClose, McpTasks, McpTasksSetup, McpTool};
use loopd_kernel::policy::grant::Grant;
use loopd_kernel::tasks::Task;
use loopd_proto::permission::PermissionRequest;

/// How many tokens of clients are kept to be masked.
const MOST_GIVEN: usize = 32;

/// The MCP servers of a session.
pub(super) struct SessionMcp {
    pub(super) cell: McpCell,
    /// The tasks on servers that the session has.
    pub(super) tasks: McpTasks,
    port: Arc<SessionPort>,
    /// Servers that clients brought for this session by a method of their own.
    brought: BTreeMap<String, Map<String, Value>>,
    /// What clients were told last about each server.
    told: BTreeMap<String, (McpStatus, Option<String>)>,
    /// What a client said about itself to the user interfaces of tools.
    pub(super) app_context: Map<String, Value>,
    /// The clients that provide tokens, each with the name of its offer.
    providers: Vec<(ClientId, String)>,
    /// Who waits for a token.
    wanted_tokens: HashMap<RequestId, oneshot::Sender<Option<String>>>,
    /// The newest tokens that clients gave, which nothing that is said may show.
    given_tokens: VecDeque<String>,
    /// The places for requests of servers that want to use the model.
    samples: Arc<Semaphore>,
    /// The requests for the model that apps have under way.
    app_samples: Vec<AppSample>,
}

/// What reaches a session about its servers.
pub enum McpMessage {
    /// There is something to tell.
    News,
    /// A client brings a server, or takes one away that it brought.
    Bring {
        name: String,
        config: Option<Map<String, Value>>,
    },
    /// A client says something about itself to the user interfaces of tools.
    SetAppContext(Map<String, Value>),
    /// Something that clients are told.
    Tell(Box<Ephemeral>),
    /// A server asks a person something.
    Elicit {
        asked: Box<ElicitationRequested>,
        reply: oneshot::Sender<ElicitationAnswer>,
    },
    /// A server wants to use the model of the session.
    Sample {
        order: SampleOrder,
        reply: oneshot::Sender<Sampled>,
    },
    /// An app wants to use the model of the session for a server.
    SampleForApp {
        name: String,
        cancel: oneshot::Sender<()>,
        order: SampleOrder,
        reply: oneshot::Sender<Sampled>,
    },
    /// An app does not want an answer any more; the reply says whether there was such a request.
    CancelSample {
        name: String,
        reply: oneshot::Sender<bool>,
    },
    /// A server that may do so pushes a message.
    Pushed {
        server: String,
        message: Box<PushedMessage>,
    },
    /// A client provides tokens from now on, under this name.
    ProvideTokens(ClientId, String),
    /// It does not any more.
    ProvideNoTokens(String),
    /// Asks whether any client provides tokens.
    HasProviders(oneshot::Sender<bool>),
    /// A server wants a token.
    AskForToken {
        asked: Box<OauthRequired>,
        reply: oneshot::Sender<Option<String>>,
    },
    /// A client answers with a token or without; the reply says whether somebody waited for it.
    TokenAnswered {
        request: RequestId,
        token: Option<String>,
        reply: Option<oneshot::Sender<bool>>,
    },
}

impl SessionHandle {
    /// Takes a server that a client brings for this session, or away.
    pub fn bring_server(
        &self,
        name: String,
        config: Option<Map<String, Value>>,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        self.post_mcp(McpMessage::Bring { name, config })
    }

    /// Keeps what a client says about itself to the user interfaces of tools.
    pub fn set_app_context(
        &self,
        context: Map<String, Value>,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        self.post_mcp(McpMessage::SetAppContext(context))
    }

    /// Tells the clients something.
    pub fn tell(
        &self,
        event: Ephemeral,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        self.post_mcp(McpMessage::Tell(Box::new(event)))
    }

    /// Lets a client be asked for the tokens of servers.
    pub fn provide_tokens(
        &self,
        client: ClientId,
        name: String,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        self.post_mcp(McpMessage::ProvideTokens(client, name))
    }

    pub fn provide_no_tokens(
        &self,
        name: String,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        self.post_mcp(McpMessage::ProvideNoTokens(name))
    }

    /// Returns whether any client provides tokens.
    pub fn has_token_providers(
        &self,
    ) -> impl Future<Output = Result<bool, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Mcp(McpMessage::HasProviders(reply)));
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::Ended(id))
        }
    }

    /// Answers a server's wish for a token; returns whether somebody waited for it.
    pub fn answer_token(
        &self,
        request: RequestId,
        token: Option<String>,
    ) -> impl Future<Output = Result<bool, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Mcp(McpMessage::TokenAnswered {
            request,
            token,
            reply: Some(reply),
        }));
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::Ended(id))
        }
    }

    /// Sends a message and waits until the session has taken it.
    fn post_mcp(
        &self,
        message: McpMessage,
    ) -> impl Future<Output = Result<(), SessionError>> + Send + use<> {
        let posted = self.post(Message::Mcp(message));
        let taken = self.view(|_| ());
        async move {
            posted?;
            taken.await
        }
    }
}

impl SessionMcp {
    pub(super) fn new(
        id: &SessionId,
        services: &Arc<Services>,
        mailbox: &mpsc::Sender<Message>,
        masks: &FileMasks,
    ) -> Self {
        Self {
            cell: McpCell::default(),
            tasks: McpTasks::new(McpTasksSetup {
                log: super::shells::log(mailbox),
                keep_alive: services.keep_alive.clone(),
                scratch: services.scratch_folder(id),
                masks: masks.clone(),
                patience: services.config.mcp.task_wait(),
            }),
            port: Arc::new(SessionPort::new(
                id.clone(),
                services.clone(),
                mailbox.clone(),
            )),
            brought: BTreeMap::new(),
            told: BTreeMap::new(),
            app_context: Map::new(),
            providers: Vec::new(),
            wanted_tokens: HashMap::new(),
            given_tokens: VecDeque::new(),
            samples: Arc::new(Semaphore::new(MOST_OPEN)),
            app_samples: Vec::new(),
        }
    }

    /// Returns the secrets that the session has for its servers.
    pub(super) fn secrets(&self) -> Vec<String> {
        let servers = self.cell.servers();
        let configured = servers.iter().flat_map(|server| server.config().secrets());
        // Words that people use as values of such variables are no secrets.
        let configured = configured.filter(|value| looks_secret(value));
        configured
            .chain(self.given_tokens.iter().cloned())
            .collect()
    }

    /// Takes the servers of the parent, for a sub-agent.
    pub(super) fn inherit(&mut self, above: &McpCell) {
        self.cell = above.below();
    }

    /// Returns the servers that may be about to offer a tool of this name for the first time.
    pub(super) fn starting_for(&self, tool: &str) -> Vec<Arc<Server>> {
        let servers = self.cell.servers().into_iter();
        let may_offer = |server: &Arc<Server>| {
            server.is_new() && tool.starts_with(&naming::plain(&server.name, ""))
        };
        servers.filter(may_offer).collect()
    }

    /// Returns the tool that a grant is about.
    pub(super) fn tool_of(&self, grant: &Grant) -> Option<McpTool> {
        let Some(PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        }) = grant.request()
        else {
            return None;
        };
        let server = self.cell.server(server_name)?;
        Some(McpTool::new(server, tool_name))
    }
}

impl Actor {
    /// Goes on with the tasks on servers that were left running when the session was last in memory.
    pub(super) fn rejoin_mcp_tasks(&mut self) {
        let is_left = |task: &&Task| {
            let mcp = task.external().and_then(|work| work.mcp.as_ref());
            mcp.is_some() && !self.mcp.tasks.has(&task.id)
        };
        let left: Vec<Task> = self
            .state
            .tasks
            .running()
            .filter(is_left)
            .cloned()
            .collect();
        if left.is_empty() || self.subagents.is_child() {
            return;
        }
        self.file_masks.set(self.redaction());
        let (lookup, tasks) = (self.mcp_lookup(), self.mcp.tasks.clone());
        let (cell, reporter) = (self.mcp.cell.clone(), self.reporter());
        self.running.spawn(async move {
            if let Some(lookup) = lookup {
                look(lookup, &reporter).await;
            }
            let of = |task: &Task| {
                let mcp = task.external().and_then(|work| work.mcp.as_ref())?;
                cell.server(&mcp.server)
            };
            let left = left.into_iter().map(|task| (of(&task), task));
            let left = left.map(|(server, task)| (task, server)).collect();
            tasks.rejoin(left).await;
        });
    }

    /// Ends what the session has to do with servers.
    pub(super) async fn end_mcp(&self) {
        // A task that the log has as running is found again when the session is opened again.
        let mut running = self.state.tasks.running();
        let goes_on = running.any(|task| self.mcp.tasks.has(&task.id));
        let what = if goes_on {
            AtClose::Leave
        } else {
            AtClose::Cancel
        };
        self.mcp.tasks.close(what).await;
        self.mcp.cell.close().await;
    }

    /// Returns whether a client is there that provides tokens.
    fn has_token_providers(&self) -> bool {
        let here = |(client, _): &(ClientId, String)| {
            let mut attached = self.clients.attachments().iter();
            attached.any(|attachment| attachment.client.id() == *client)
        };
        self.mcp.providers.iter().any(here)
    }

    /// Asks the clients that provide tokens, if there are any.
    fn ask_for_token(&mut self, asked: OauthRequired, reply: oneshot::Sender<Option<String>>) {
        if !self.has_token_providers() {
            // The reply ends without a token.
            return;
        }
        self.mcp
            .wanted_tokens
            .retain(|_, waiting| !waiting.is_closed());
        self.mcp
            .wanted_tokens
            .insert(asked.request_id.clone(), reply);
        self.tell(&Ephemeral::McpOauthRequired(Box::new(asked)));
    }

    fn token_answered(&mut self, request: RequestId, token: Option<String>) -> bool {
        let Some(waiting) = self.mcp.wanted_tokens.remove(&request) else {
            return false;
        };
        let outcome = match &token {
            Some(token) => {
                let given = &mut self.mcp.given_tokens;
                given.truncate(MOST_GIVEN - 1);
                given.push_front(token.clone());
                OauthOutcome::Token
            }
            None => OauthOutcome::Cancelled,
        };
        // The send fails if the server has stopped waiting.
        let waited = waiting.send(token).is_ok();
        self.tell(&Ephemeral::McpOauthCompleted(OauthCompleted {
            request_id: request,
            outcome,
        }));
        waited
    }

    pub(super) async fn take_mcp(&mut self, message: McpMessage) {
        match message {
            McpMessage::News => {}
            McpMessage::Bring {
                name,
                config: Some(config),
            } => {
                self.mcp.brought.insert(name, config);
            }
            McpMessage::Bring { name, config: None } => {
                self.mcp.brought.remove(&name);
            }
            McpMessage::SetAppContext(context) => self.mcp.app_context = context,
            McpMessage::Tell(event) => self.tell(&event),
            McpMessage::Elicit { asked, reply } => {
                if self.clients.can_elicit() {
                    self.elicit(asked, reply).await;
                }
                // Without a client that shows forms the reply ends, which declines.
            }
            McpMessage::Sample { order, reply } => self.prepare_sample(order, reply),
            McpMessage::SampleForApp {
                name,
                cancel,
                order,
                reply,
            } => self.sample_for_app(name, cancel, order, reply),
            McpMessage::CancelSample { name, reply } => {
                // The send fails if nobody waits any more.
                reply.send(self.cancel_sample(&name)).ok();
            }
            McpMessage::Pushed { server, message } => self.take_pushed(&server, *message).await,
            McpMessage::ProvideTokens(client, name) => self.mcp.providers.push((client, name)),
            McpMessage::ProvideNoTokens(name) => self.mcp.providers.retain(|(_, it)| *it != name),
            McpMessage::HasProviders(reply) => {
                // The send fails if nobody waits any more.
                reply.send(self.has_token_providers()).ok();
            }
            McpMessage::AskForToken { asked, reply } => self.ask_for_token(*asked, reply),
            McpMessage::TokenAnswered {
                request,
                token,
                reply,
            } => {
                let waited = self.token_answered(request, token);
                if let Some(reply) = reply {
                    // The send fails if the client has stopped waiting.
                    reply.send(waited).ok();
                }
            }
        }
    }

    /// Tells clients what is new about servers.
    pub(super) fn tell_mcp_news(&mut self) {
        let Some(news) = self.mcp.port.take_news() else {
            return;
        };
        let report = self.mcp.cell.report();
        if news.loaded {
            let servers = report.clone();
            self.mcp.told = report.iter().map(told).collect();
            self.tell(&Ephemeral::McpServersLoaded(ServersLoaded { servers }));
        }
        for (name, why) in news.failures {
            // One that is told by name only is not of this session any more.
            if report.iter().any(|server| server.name == name) {
                self.tell_status(name, (McpStatus::Failed, Some(why)));
            }
        }
        for server in &report {
            let (name, now) = told(server);
            self.tell_status(name, now);
        }
        let changed = |names: BTreeSet<String>, event: fn(ListChanged) -> Ephemeral| {
            names
                .into_iter()
                .map(move |server_name| event(ListChanged { server_name }))
        };
        let events = changed(news.tools, Ephemeral::McpToolsChanged)
            .chain(changed(news.prompts, Ephemeral::McpPromptsChanged))
            .chain(changed(news.resources, Ephemeral::McpResourcesChanged));
        for event in events.collect::<Vec<_>>() {
            self.tell(&event);
        }
    }

    /// Tells the status of a server unless clients know it.
    fn tell_status(&mut self, name: String, now: (McpStatus, Option<String>)) {
        if self.mcp.told.get(&name) == Some(&now) {
            return;
        }
        self.mcp.told.insert(name.clone(), now.clone());
        let (status, error) = now;
        self.tell(&Ephemeral::McpStatusChanged(StatusChanged {
            server_name: name,
            status,
            error,
        }));
    }
}

fn told(server: &LoadedServer) -> (String, (McpStatus, Option<String>)) {
    (server.name.clone(), (server.status, server.error.clone()))
}
