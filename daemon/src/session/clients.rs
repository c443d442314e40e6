//! The clients of a session: who is attached, what they brought, and who hears what.
//!
//! In the session of a sub-agent it holds those of the session at the top, as the parent hands them
//! down. `clients/attach` lets clients come and go, `clients/slash` lets them run slash commands.

pub mod attach;
pub mod slash;

use std::sync::Arc;

use loopd_proto::id::SessionId;
use loopd_proto::session::{ClientCommand, ClientOffer, ClientTool, SessionOptions};

use crate::client::{Client, ClientId};
use crate::launch::Launch;
use crate::publish::Audience;
use crate::turn::route::TokenClients;
use attach::Attachment;
use loopd_model::secret::Secret;
use slash::RunningCommands;

/// The clients of one session.
pub(super) struct Clients {
    attachments: Vec<Attachment>,
    audience: Audience,
    launch: Option<Arc<Launch>>,
    /// Whether the launch is that of somebody who only looks on.
    borrowed_launch: bool,
    api_token: Option<Secret>,
    tokens: TokenClients,
    /// Whether a form can be shown to somebody, as clients were told last.
    can_elicit: bool,
    running_commands: RunningCommands,
}

/// What a session gives its sub-agents of its clients.
#[derive(Clone)]
pub(super) struct SharedClients {
    pub(super) launch: Option<Arc<Launch>>,
    api_token: Option<Secret>,
    tokens: TokenClients,
    /// Those that bring tools and answer questions.
    attachments: Vec<Attachment>,
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
        }
    }

    pub(super) fn attachments(&self) -> &[Attachment] {
        &self.attachments
    }

    fn offers(&self) -> impl Iterator<Item = &ClientOffer> {
        self.attachments.iter().map(|attachment| &attachment.offer)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<dyn Client>> {
        self.attachments.iter().map(|attachment| &attachment.client)
    }

    pub(super) fn audience(&self) -> &Audience {
        &self.audience
    }

    /// The launch whose environment the session uses.
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

    /// Whether somebody is there for whom the session works; who only looks on does not count.
    pub(super) fn is_attended(&self) -> bool {
        self.offers().any(|offer| !offer.observer)
    }

    /// Whether somebody else is attached.
    pub(super) fn has_others_than(&self, id: ClientId) -> bool {
        self.all().any(|client| client.id() != id)
    }

    pub(super) fn answer_permissions(&self) -> bool {
        self.offers().any(|offer| offer.request_permission)
    }

    /// Those that put questions to their users.
    pub(super) fn answering_users(&self) -> Vec<Arc<dyn Client>> {
        let attachments = self.attachments.iter();
        attachments
            .filter(|attachment| attachment.offer.request_user_input)
            .map(|attachment| attachment.client.clone())
            .collect()
    }

    /// The slash commands that clients run.
    pub(super) fn commands(&self) -> impl Iterator<Item = &ClientCommand> {
        self.offers()
            .filter_map(|it| it.commands.as_ref())
            .flatten()
    }

    fn offer_of(&mut self, id: ClientId) -> Option<&mut ClientOffer> {
        let mut attachments = self.attachments.iter_mut();
        let known = attachments.find(|attachment| attachment.client.id() == id)?;
        Some(&mut known.offer)
    }

    /// A client says whether it answers permission questions; nothing changes for one that is not
    /// attached.
    pub(super) fn require_permissions(&mut self, id: ClientId, required: bool) {
        if let Some(offer) = self.offer_of(id) {
            offer.request_permission = required;
        }
    }

    /// Replaces the tools that a client runs; tells whether it is attached.
    pub(super) fn set_tools(&mut self, id: ClientId, tools: Vec<ClientTool>) -> bool {
        let offer = self.offer_of(id);
        offer.map(|offer| offer.tools = Some(tools)).is_some()
    }

    /// Remembers whom to ask for the tokens of which provider.
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

    /// What sub-agents of the session are given.
    pub(super) fn shared(&self) -> SharedClients {
        SharedClients {
            launch: self.launch.clone(),
            api_token: self.api_token.clone(),
            tokens: self.tokens.clone(),
            attachments: self.attachments.clone(),
        }
    }

    /// Takes over what the parent of a sub-agent gives.
    pub(super) fn inherit(&mut self, shared: SharedClients) {
        self.launch = shared.launch;
        self.api_token = shared.api_token;
        self.tokens = shared.tokens;
        self.attachments = shared.attachments;
    }
}
