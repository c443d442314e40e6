//! What a session is opened with: its options, and what this client does for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use loopd_proto::id::SessionId;
use loopd_proto::params::ui::UserInputResponse;
use loopd_proto::permission::PermissionDecision;
use loopd_proto::session::{ClientOffer, SessionOptions};

use crate::handler::{Handlers, PermissionAsked, Permissions, Tool, UserInput};

/// What to open a session with.
#[derive(Clone, Default)]
pub struct SessionConfig {
    /// The configuration that stays with the session.
    pub options: SessionOptions,
    /// The name of a new session; made up when absent.
    pub session_id: Option<SessionId>,
    pub(crate) handlers: Handlers,
}

impl SessionConfig {
    /// A session with text that streams and nothing else out of the ordinary.
    pub fn new() -> Self {
        Self {
            options: SessionOptions {
                streaming: Some(true),
                ..SessionOptions::default()
            },
            ..Self::default()
        }
    }

    /// Chooses the model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.options.model = Some(model.into());
        self
    }

    /// Chooses the directory to work in.
    #[must_use]
    pub fn working_directory(mut self, directory: impl Into<String>) -> Self {
        self.options.working_directory = Some(directory.into());
        self
    }

    /// Says who opens the session.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.options.client_name = Some(name.into());
        self
    }

    /// Offers a tool that runs in this process.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.handlers.tools.insert(tool.spec.name.clone(), tool);
        self
    }

    /// Decides about permissions that tools of the session and of its agents ask for.
    ///
    /// The future is dropped when somebody else decides first.
    #[must_use]
    pub fn on_permission<F, Fut>(mut self, decide: F) -> Self
    where
        F: Fn(PermissionAsked) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = PermissionDecision> + Send + 'static,
    {
        let decide = Arc::new(move |asked| decide(asked).boxed());
        self.handlers.permissions = Permissions::Decides(decide);
        self
    }

    /// Lets permissions wait for somebody else; without this and [`SessionConfig::on_permission`]
    /// a session that only this client attends is refused what it would have to ask for.
    #[must_use]
    pub fn leave_permissions_open(mut self) -> Self {
        self.handlers.permissions = Permissions::LeavesOpen;
        self
    }

    /// Answers questions that the model has for its user.
    ///
    /// The future is dropped when somebody else answers first.
    #[must_use]
    pub fn on_user_input<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(UserInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = UserInputResponse> + Send + 'static,
    {
        self.handlers.user_input = Some(Arc::new(move |asked| answer(asked).boxed()));
        self
    }

    /// What the daemon is told of the handlers.
    pub(crate) fn offer(&self) -> ClientOffer {
        let tools: Vec<_> = self
            .handlers
            .tools
            .values()
            .map(|tool| &tool.spec)
            .collect();
        ClientOffer {
            tools: (!tools.is_empty()).then(|| tools.into_iter().cloned().collect()),
            commands: None,
            request_permission: !matches!(self.handlers.permissions, Permissions::Unwanted),
            request_user_input: self.handlers.user_input.is_some(),
            request_elicitation: false,
            hooks: false,
            observer: false,
        }
    }
}

/// The tools by name.
pub(crate) type Tools = BTreeMap<String, Tool>;
