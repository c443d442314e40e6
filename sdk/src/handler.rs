//! What the daemon may ask of this process: to decide a permission request, to run a tool, to
//! answer a question. Handlers are async functions of the caller. At most one handler runs for each
//! open question; it is dropped when another client closes the question.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::ask::{PermissionRequested, PlanAction};
use loopd_proto::event::tool::ExternalToolRequested;
use loopd_proto::id::{AgentId, RequestId, SessionId, ToolCallId};
use loopd_proto::params::pending::ExitPlanMode;
use loopd_proto::params::tool::{ClientToolResult, FullResult};
use loopd_proto::params::ui::UserInputResponse;
use loopd_proto::permission::{
    AskedBecause, PermissionDecision, PermissionPrompt, PermissionRequest,
};
use loopd_proto::session::ClientTool;
use serde::Deserialize;
use serde_json::Value;

use crate::config::Tools;
use crate::hooks::Hooks;

type Decide = dyn Fn(PermissionAsked) -> BoxFuture<'static, PermissionDecision> + Send + Sync;
type Answer = dyn Fn(UserInput) -> BoxFuture<'static, UserInputResponse> + Send + Sync;
type Approve = dyn Fn(PlanProposed) -> BoxFuture<'static, ExitPlanMode> + Send + Sync;
type Run = dyn Fn(ToolInvocation) -> BoxFuture<'static, Result<ToolOutput, String>> + Send + Sync;

/// The handlers of one session.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) tools: Tools,
    pub(crate) permissions: PermissionHandling,
    pub(crate) user_input: Option<Arc<Answer>>,
    pub(crate) hooks: Hooks,
    pub(crate) plan: Option<Arc<Approve>>,
}

/// How this client treats permission requests.
#[derive(Clone, Default)]
pub(crate) enum PermissionHandling {
    #[default]
    None,
    LeaveOpen,
    Decide(Arc<Decide>),
}

/// A permission request of a tool.
#[derive(Debug, Clone)]
pub struct PermissionAsked {
    pub request_id: RequestId,
    pub permission_request: PermissionRequest,
    pub prompt_request: Option<PermissionPrompt>,
    /// Why a person has to decide, if approving everything does not cover it.
    pub asked_because: Option<AskedBecause>,
    /// The sub-agent that called the tool; absent for the main agent.
    pub agent_id: Option<AgentId>,
}

impl PermissionAsked {
    pub(crate) fn new(asked: PermissionRequested, agent_id: Option<AgentId>) -> Self {
        Self {
            request_id: asked.request_id,
            permission_request: asked.permission_request,
            prompt_request: asked.prompt_request,
            asked_because: asked.asked_because,
            agent_id,
        }
    }
}

/// A plan for which the model asks to leave plan mode.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanProposed {
    pub(crate) session_id: SessionId,
    pub summary: String,
    /// The plan in full; empty if there is none.
    #[serde(default)]
    pub plan_content: String,
    /// What may follow.
    pub actions: Vec<PlanAction>,
    pub recommended_action: PlanAction,
}

/// A question of the model to the user.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInput {
    pub session_id: SessionId,
    pub question: String,
    #[serde(default)]
    pub choices: Option<Vec<String>>,
    #[serde(default)]
    pub allow_freeform: bool,
}

/// A tool that runs in this process.
#[derive(Clone)]
pub struct Tool {
    pub(crate) spec: ClientTool,
    run: Arc<Run>,
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// One call of a [`Tool`].
#[derive(Debug, Clone)]
pub struct ToolInvocation {
    pub session_id: SessionId,
    pub tool_call_id: ToolCallId,
    /// The arguments from the model; the daemon does not check them against the schema.
    pub arguments: Value,
    pub working_directory: Option<String>,
}

/// The output of a tool, for the model to read.
#[derive(Debug, Clone)]
pub enum ToolOutput {
    Text(String),
    Json(Value),
    /// A result with a type, images and the other fields of the protocol.
    Full(Box<FullResult>),
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<FullResult> for ToolOutput {
    fn from(result: FullResult) -> Self {
        Self::Full(Box::new(result))
    }
}

impl From<ToolOutput> for ClientToolResult {
    fn from(output: ToolOutput) -> Self {
        match output {
            ToolOutput::Text(text) => Self::Text(text),
            ToolOutput::Json(value) => Self::Other(value),
            ToolOutput::Full(full) => Self::Full(full),
        }
    }
}

impl Tool {
    /// Creates a tool; `schema` is the JSON schema of its arguments.
    ///
    /// The text of an error is shown to people only; the model learns only that the tool failed. To
    /// tell the model why, return a [`FullResult`] with the type `failure`.
    pub fn new<F, Fut, O, E>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        run: F,
    ) -> Self
    where
        F: Fn(ToolInvocation) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, E>> + Send + 'static,
        O: Into<ToolOutput>,
        E: fmt::Display,
    {
        let run = move |invocation| {
            let running = run(invocation);
            async move {
                running
                    .await
                    .map(Into::into)
                    .map_err(|error| error.to_string())
            }
            .boxed()
        };
        Self {
            spec: ClientTool {
                name: name.into(),
                description: description.into(),
                parameters: Some(schema),
                overrides_built_in_tool: false,
                skip_permission: false,
                is_terminal: false,
                read_only: false,
                metadata: None,
            },
            run: Arc::new(run),
        }
    }

    /// Says that the tool changes nothing, so that it needs no permission in plan mode.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.read_only = true;
        self
    }

    /// Lets a call that succeeds end the turn; the model does not read its result.
    #[must_use]
    pub fn ending_the_turn(mut self) -> Self {
        self.spec.is_terminal = true;
        self
    }

    /// Makes the tool run without a permission request.
    #[must_use]
    pub fn without_permission(mut self) -> Self {
        self.spec.skip_permission = true;
        self
    }

    /// Makes the tool replace the built-in tool of the same name.
    #[must_use]
    pub fn overriding_built_in(mut self) -> Self {
        self.spec.overrides_built_in_tool = true;
        self
    }
}

impl Handlers {
    /// Runs the requested tool; `None` if this client does not have it.
    pub(crate) fn run(
        &self,
        asked: &ExternalToolRequested,
    ) -> Option<impl Future<Output = Result<ClientToolResult, String>> + Send + use<>> {
        let run = self.tools.get(&asked.tool_name)?.run.clone();
        let invocation = ToolInvocation {
            session_id: asked.session_id.clone(),
            tool_call_id: asked.tool_call_id.clone(),
            arguments: asked.arguments.clone().unwrap_or_default(),
            working_directory: asked.working_directory.clone(),
        };
        // A panic fails this call only.
        let running = AssertUnwindSafe(async move { run(invocation).await }).catch_unwind();
        Some(async move {
            match running.await {
                Ok(outcome) => outcome.map(Into::into),
                Err(_) => Err("the tool panicked".to_owned()),
            }
        })
    }

    /// Decides a permission request; `None` if this client does not decide.
    pub(crate) fn decide(
        &self,
        asked: PermissionAsked,
    ) -> Option<impl Future<Output = PermissionDecision> + Send + use<>> {
        let PermissionHandling::Decide(decide) = &self.permissions else {
            return None;
        };
        let decide = decide.clone();
        let deciding = AssertUnwindSafe(async move { decide(asked).await }).catch_unwind();
        Some(async move {
            // A handler that panics must not allow anything.
            deciding
                .await
                .unwrap_or(PermissionDecision::UserNotAvailable {})
        })
    }
}
