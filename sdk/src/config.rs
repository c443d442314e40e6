//! What a session is opened with: its options, and the handlers of this client.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use loopd_proto::id::SessionId;
use loopd_proto::params::pending::ExitPlanMode;
use loopd_proto::params::ui::UserInputResponse;
use loopd_proto::permission::PermissionDecision;
use loopd_proto::session::{ClientOffer, SessionLimits, SessionOptions};

use crate::handler::{
    Handlers, PermissionAsked, PermissionHandling, PlanProposed, Tool, UserInput,
};
use crate::hooks::Hooks;

/// The options of a session, and the handlers that this client offers to it.
#[derive(Clone, Default)]
pub struct SessionConfig {
    /// The options that are stored with the session.
    pub options: SessionOptions,
    /// The id of a new session; generated when absent.
    pub session_id: Option<SessionId>,
    pub(crate) handlers: Handlers,
}

impl SessionConfig {
    /// Creates the default configuration, with streaming on.
    pub fn new() -> Self {
        Self {
            options: SessionOptions {
                streaming: Some(true),
                ..SessionOptions::default()
            },
            ..Self::default()
        }
    }

    /// Sets the model.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.options.model = Some(model.into());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn working_directory(mut self, directory: impl Into<String>) -> Self {
        self.options.working_directory = Some(directory.into());
        self
    }

    /// Limits what the session and all its sub-agents may use together.
    ///
    /// A turn that reaches a limit fails; [`Error::limit_reached`](crate::Error::limit_reached) says
    /// which.
    #[must_use]
    pub fn limits(mut self, limits: SessionLimits) -> Self {
        self.options.session_limits = Some(limits);
        self
    }

    /// Sets the name of this client.
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

    /// Sets the function that decides permission requests of the session and its sub-agents.
    ///
    /// The future is dropped when another client decides first.
    #[must_use]
    pub fn on_permission<F, Fut>(mut self, decide: F) -> Self
    where
        F: Fn(PermissionAsked) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = PermissionDecision> + Send + 'static,
    {
        let decide = Arc::new(move |asked| decide(asked).boxed());
        self.handlers.permissions = PermissionHandling::Decide(decide);
        self
    }

    /// Leaves permission requests open for another client.
    ///
    /// With neither this nor [`SessionConfig::on_permission`], the daemon denies every request of
    /// a session that only this client has joined.
    #[must_use]
    pub fn leave_permissions_open(mut self) -> Self {
        self.handlers.permissions = PermissionHandling::LeaveOpen;
        self
    }

    /// Sets the function that answers questions of the model to the user.
    ///
    /// The future is dropped when another client answers first.
    #[must_use]
    pub fn on_user_input<F, Fut>(mut self, answer: F) -> Self
    where
        F: Fn(UserInput) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = UserInputResponse> + Send + 'static,
    {
        self.handlers.user_input = Some(Arc::new(move |asked| answer(asked).boxed()));
        self
    }

    /// Sets the hooks of this process for the session and all agents below it.
    #[must_use]
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.handlers.hooks = hooks;
        self
    }

    /// Sets the function that answers whether plan mode may end.
    ///
    /// Without it the model cannot ask. The future is dropped when another client answers first.
    #[must_use]
    pub fn on_plan<F, Fut>(mut self, approve: F) -> Self
    where
        F: Fn(PlanProposed) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ExitPlanMode> + Send + 'static,
    {
        self.handlers.plan = Some(Arc::new(move |plan| approve(plan).boxed()));
        self
    }

    /// Returns what the daemon has to know about the handlers.
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
            request_permission: !matches!(self.handlers.permissions, PermissionHandling::None),
            request_user_input: self.handlers.user_input.is_some(),
            request_exit_plan_mode: self.handlers.plan.is_some(),
            request_auto_mode_switch: false,
            request_elicitation: false,
            hooks: !self.handlers.hooks.is_empty(),
            request_mcp_apps: false,
            has_skill_provider: false,
            observer: false,
        }
    }
}

/// The client's tools, by name.
pub(crate) type Tools = BTreeMap<String, Tool>;
