//! The clients of a session: which are attached, what they offer, and which receive its events.
//!
//! In the session of a sub-agent these are the clients of the session at the top, as the parent
//! hands them down. `clients/attach` attaches and detaches clients, `clients/slash` lets them run
//! slash commands.

pub mod attach;
mod queued;
pub mod slash;

use std::sync::Arc;

use loopd_proto::id::SessionId;
use loopd_proto::session::{ClientCommand, ClientOffer, ClientTool, SessionOptions};

use crate::client::{Client, ClientId};
use crate::hook::HookClient;
use crate::launch::Launch;
use crate::publish::Audience;
use crate::turn::route::TokenClients;
use attach::Attachment;
use loopd_model::secret::Secret;
use queued::OfferedCommand;
use slash::RunningCommands;

/// The clients of one session.
pub(super) struct Clients {
    attachments: Vec<Attachment>,
    audience: Audience,
    launch: Option<Arc<Launch>>,
    /// Whether the launch belongs to an observer.
    borrowed_launch: bool,
    api_token: Option<Secret>,
    tokens: TokenClients,
    /// Whether a client can show forms, as last announced to the clients.
    can_elicit: bool,
    running_commands: RunningCommands,
    /// The slash command of the queue that clients are to run.
    queued: Option<OfferedCommand>,
}

/// The part of a session's clients that it hands down to its sub-agents.
#[derive(Clone)]
pub(super) struct SharedClients {
    pub(super) launch: Option<Arc<Launch>>,
    api_token: Option<Secret>,
    tokens: TokenClients,
    /// The clients that offer tools and answer questions.
    attachments: Vec<Attachment>,
}

impl SharedClients {
    /// Returns the clients that answer hooks, which know this session.
    pub(super) fn hook_clients(&self, session: &SessionId) -> Vec<HookClient> {
        let attachments = self.attachments.iter().filter(|it| it.offer.hooks);
        attachments.map(|it| it.hook_client(session)).collect()
    }
}

impl Clients {
    pub(super) fn new(session: SessionId) -> Self {
        Self {
            attachments: Vec::new(),
            audience: Audience::new(session),
            launch: None,
            borrowed_launch: false,
            api_token: None,
            tokens: TokenClients::new(),
            can_elicit: false,
            running_commands: RunningCommands::default(),
            queued: None,
        }
    }

    pub(super) fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    pub(super) fn offers(&self) -> impl Iterator<Item = &ClientOffer> {
        self.attachments.iter().map(|attachment| &attachment.offer)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<dyn Client>> {
        self.attachments.iter().map(|attachment| &attachment.client)
    }

    pub(super) fn audience(&self) -> &Audience {
        &self.audience
    }

    /// Returns the launch whose environment the session uses.
    pub(super) fn launch(&self) -> Option<&Arc<Launch>> {
        self.launch.as_ref()
    }

    pub(super) fn api_token(&self) -> Option<&Secret> {
        self.api_token.as_ref()
    }

    pub(super) fn token_clients(&self) -> &TokenClients {
        &self.tokens
    }

    pub(super) fn can_elicit(&self) -> bool {
        self.can_elicit
    }

    /// Returns whether a client is attached that is not just an observer.
    pub(super) fn is_attended(&self) -> bool {
        self.offers().any(|offer| !offer.observer)
    }

    /// Returns whether a client other than this one is attached.
    pub(super) fn has_others_than(&self, id: ClientId) -> bool {
        self.all().any(|client| client.id() != id)
    }

    pub(super) fn answer_permissions(&self) -> bool {
        self.offers().any(|offer| offer.request_permission)
    }

    /// Returns the clients that can ask their users.
    pub(super) fn answering_users(&self) -> Vec<Arc<dyn Client>> {
        let attachments = self.attachments.iter();
        attachments
            .filter(|attachment| attachment.offer.request_user_input)
            .map(|attachment| attachment.client.clone())
            .collect()
    }

    /// Returns the clients that can ask their users about a plan.
    pub(super) fn answering_plans(&self) -> Vec<Arc<dyn Client>> {
        let attachments = self.attachments.iter();
        attachments
            .filter(|attachment| attachment.offer.request_exit_plan_mode)
            .map(|attachment| attachment.client.clone())
            .collect()
    }

    /// Returns the clients that can ask their users for another model.
    pub(super) fn answering_switches(&self) -> Vec<Arc<dyn Client>> {
        let attachments = self.attachments.iter();
        attachments
            .filter(|attachment| attachment.offer.request_auto_mode_switch)
            .map(|attachment| attachment.client.clone())
            .collect()
    }

    pub(super) fn can_switch_model(&self) -> bool {
        self.offers().any(|offer| offer.request_auto_mode_switch)
    }

    /// Lists the slash commands that clients run.
    pub(super) fn commands(&self) -> impl Iterator<Item = &ClientCommand> {
        self.offers()
            .filter_map(|it| it.commands.as_ref())
            .flatten()
    }

    /// Returns whether a client runs the slash command of this name.
    pub(super) fn runs_command(&self, name: &str) -> bool {
        let mut commands = self.commands();
        commands.any(|command| command.name.eq_ignore_ascii_case(name))
    }

    fn offer_of(&mut self, id: ClientId) -> Option<&mut ClientOffer> {
        let mut attachments = self.attachments.iter_mut();
        let known = attachments.find(|attachment| attachment.client.id() == id)?;
        Some(&mut known.offer)
    }

    /// Sets whether a client answers permission requests; ignores a client that is not attached.
    pub(super) fn require_permissions(&mut self, id: ClientId, required: bool) {
        if let Some(offer) = self.offer_of(id) {
            offer.request_permission = required;
        }
    }

    /// Returns the names of tools that a client does not run yet.
    pub(super) fn new_tools(&mut self, id: ClientId, tools: &[ClientTool]) -> Vec<String> {
        let known = self.offer_of(id).and_then(|offer| offer.tools.as_deref());
        let known = known.unwrap_or_default();
        let is_new = |tool: &&ClientTool| known.iter().all(|other| other.name != tool.name);
        tools
            .iter()
            .filter(is_new)
            .map(|tool| tool.name.clone())
            .collect()
    }

    /// Replaces the tools that a client runs; returns whether the client is attached.
    pub(super) fn set_tools(&mut self, id: ClientId, tools: Vec<ClientTool>) -> bool {
        let offer = self.offer_of(id);
        offer.map(|offer| offer.tools = Some(tools)).is_some()
    }

    /// Records which client supplies the tokens of which provider.
    pub(super) fn learn_tokens(&mut self, options: &SessionOptions, client: &Arc<dyn Client>) {
        let named = options.providers.iter().flatten();
        for provider in options.provider.iter().chain(named) {
            let name = provider.name().to_owned();
            if provider.asks_for_tokens() {
                self.tokens.insert(name, client.clone());
            } else {
                self.tokens.remove(&name);
            }
        }
    }

    /// Returns what the session hands down to its sub-agents.
    pub(super) fn shared(&self) -> SharedClients {
        SharedClients {
            launch: self.launch.clone(),
            api_token: self.api_token.clone(),
            tokens: self.tokens.clone(),
            attachments: self.attachments.clone(),
        }
    }

    /// Takes over the environment and the token of the session above, for a session that a client has
    /// opened directly. A client that is not just an observer keeps its own.
    pub(super) fn take_launch_above(&mut self, shared: &SharedClients) {
        if let Some(launch) = &shared.launch
            && (self.launch.is_none() || self.borrowed_launch)
        {
            self.launch = Some(launch.clone());
            self.borrowed_launch = false;
        }
        if self.api_token.is_none() {
            self.api_token.clone_from(&shared.api_token);
        }
    }

    /// Replaces the clients of a sub-agent by those that its parent hands down.
    pub(super) fn inherit(&mut self, shared: SharedClients) {
        self.launch = shared.launch;
        self.api_token = shared.api_token;
        self.tokens = shared.tokens;
        self.attachments = shared.attachments;
    }
}
