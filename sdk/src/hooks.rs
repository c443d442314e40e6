//! Hooks that run in this process: async functions that the daemon asks or tells when something
//! happens in a session or in any agent below it.
//!
//! A guard ([`Hooks::on_pre_tool_use`], [`Hooks::on_permission_request`]) that panics denies the call.
//! While no client answers the hooks of a session that was opened with them, its tool calls wait.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::id::SessionId;
use loopd_proto::permission::PermissionRequest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

type Handler = dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync;

/// The hooks of one session.
#[derive(Clone, Default)]
pub struct Hooks {
    handlers: BTreeMap<&'static str, Arc<Handler>>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.handlers.keys()).finish()
    }
}

/// What a hook is told: where and when something happened, and what.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookInput<T> {
    /// The session in which it happened; that of a sub-agent for what happens in one.
    pub session_id: SessionId,
    /// Milliseconds since 1970.
    pub timestamp: i64,
    pub cwd: String,
    /// The sub-agent in which it happened; absent for the main agent.
    #[serde(default)]
    pub agent_id: Option<String>,
    #[serde(default)]
    pub agent_name: Option<String>,
    #[serde(flatten)]
    pub event: T,
}

/// A tool is about to be called.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreToolUse {
    pub tool_name: String,
    #[serde(default)]
    pub tool_args: Value,
}

/// The rules would ask a person about a call.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionWanted {
    pub tool_name: String,
    #[serde(default)]
    pub tool_args: Value,
    pub permission_request: PermissionRequest,
}

/// A tool call has succeeded.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostToolUse {
    pub tool_name: String,
    #[serde(default)]
    pub tool_args: Value,
    pub tool_result: HookToolResult,
}

/// A tool call has failed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PostToolUseFailure {
    pub tool_name: String,
    #[serde(default)]
    pub tool_args: Value,
    pub error: String,
}

/// A person sends a prompt.
#[derive(Debug, Clone, Deserialize)]
pub struct UserPromptSubmitted {
    pub prompt: String,
}

/// A prompt was prepared for the model.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserPromptTransformed {
    pub prompt: String,
    pub transformed_prompt: String,
}

/// A session begins its work, or goes on after a resume.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStart {
    /// `new`, `resume` or `startup`.
    pub source: String,
    #[serde(default)]
    pub initial_prompt: Option<String>,
}

/// A session ends.
#[derive(Debug, Clone, Deserialize)]
pub struct SessionEnd {
    pub reason: String,
    #[serde(default)]
    pub error: Option<String>,
}

/// The loop is about to end.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStop {
    pub stop_reason: String,
    /// Whether a hook has kept this run from ending before.
    #[serde(rename = "stop_hook_active", default)]
    pub stop_hook_active: bool,
    /// How many times in a row hooks have done so.
    #[serde(default)]
    pub stop_blocks: u32,
    /// What the agent answered.
    #[serde(default)]
    pub response: String,
    #[serde(default)]
    pub transcript_path: Option<String>,
}

/// A sub-agent begins.
#[derive(Debug, Clone, Deserialize)]
pub struct SubagentStart {
    #[serde(default)]
    pub prompt: String,
}

/// A model call has failed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorOccurred {
    pub error: String,
    pub error_context: String,
    pub recoverable: bool,
}

/// People are notified of something.
#[derive(Debug, Clone, Deserialize)]
pub struct Notified {
    pub notification_type: String,
    #[serde(default)]
    pub title: Option<String>,
    pub message: String,
}

/// The result of a tool call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookToolResult {
    /// `success` or `failure`.
    pub result_type: String,
    pub text_result_for_llm: String,
}

/// The verdict of a guard about a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolVerdict {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_args: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

impl ToolVerdict {
    /// Leaves the decision to the rules and to people.
    pub fn no_opinion() -> Self {
        Self::default()
    }

    /// Answers what the rules would ask a person. A rule that denies still denies.
    pub fn allow() -> Self {
        Self {
            permission_decision: Some("allow"),
            ..Self::default()
        }
    }

    /// Denies the call; the model reads why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self {
            permission_decision: Some("deny"),
            permission_decision_reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Has a person asked, whatever the rules allow.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self {
            permission_decision: Some("ask"),
            permission_decision_reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Changes the arguments that the call runs with.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Value) -> Self {
        self.modified_args = Some(arguments);
        self
    }

    /// Tells the model something beside the result.
    #[must_use]
    pub fn with_context(mut self, text: impl Into<String>) -> Self {
        self.additional_context = Some(text.into());
        self
    }
}

/// The answer of a hook in the place of a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PermissionVerdict {
    #[serde(skip_serializing_if = "Option::is_none")]
    behavior: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl PermissionVerdict {
    /// Lets a person decide.
    pub fn no_opinion() -> Self {
        Self::default()
    }

    pub fn allow() -> Self {
        Self {
            behavior: Some("allow"),
            message: None,
        }
    }

    /// Denies; the model reads why.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self {
            behavior: Some("deny"),
            message: Some(reason.into()),
        }
    }
}

/// What a hook makes of a result.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultChange {
    /// The result that the model reads instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_result: Option<HookToolResult>,
    /// A text that the model reads after the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
    /// Keeps the output from the model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppress_output: bool,
}

/// What a hook tells the model.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_context: Option<String>,
}

impl AddedContext {
    pub fn nothing() -> Self {
        Self::default()
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self {
            additional_context: Some(text.into()),
        }
    }
}

/// What a hook makes of a prompt.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl PromptChange {
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Sends another prompt instead.
    pub fn replace(prompt: impl Into<String>) -> Self {
        Self {
            modified_prompt: Some(prompt.into()),
            ..Self::default()
        }
    }

    /// Tells the model something before the prompt.
    #[must_use]
    pub fn with_context(mut self, text: impl Into<String>) -> Self {
        self.additional_context = Some(text.into());
        self
    }

    /// Does not let the prompt through.
    pub fn block(reason: impl Into<String>) -> Self {
        Self {
            decision: Some("block"),
            reason: Some(reason.into()),
            ..Self::default()
        }
    }
}

/// What a hook makes of a prompt that is ready for the model.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TransformedPromptChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_transformed_prompt: Option<String>,
}

/// Whether the loop may end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StopVerdict {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl StopVerdict {
    pub fn stop() -> Self {
        Self::default()
    }

    /// Lets the agent go on; `reason` is its next input.
    pub fn block(reason: impl Into<String>) -> Self {
        Self {
            decision: Some("block"),
            reason: Some(reason.into()),
        }
    }
}

/// What is done about a failed model call.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorVerdict {
    #[serde(skip_serializing_if = "Option::is_none")]
    error_handling: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_count: Option<u32>,
    /// A text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_notification: Option<String>,
}

impl ErrorVerdict {
    pub fn as_usual() -> Self {
        Self::default()
    }

    /// Makes the call again, at most so many times; the daemon allows five.
    pub fn retry(times: u32) -> Self {
        Self {
            error_handling: Some("retry"),
            retry_count: Some(times),
            ..Self::default()
        }
    }
}

/// Declares a method per kind of hook.
macro_rules! hooks {
    ($($(#[$doc:meta])* $method:ident $name:literal $input:ty => $output:ty;)*) => {
        impl Hooks {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $method<F, Fut>(self, handler: F) -> Self
                where
                    F: Fn(HookInput<$input>) -> Fut + Send + Sync + 'static,
                    Fut: Future<Output = $output> + Send + 'static,
                {
                    self.with($name, handler)
                }
            )*
        }
    };
}

hooks! {
    /// Decides about tool calls before they start.
    on_pre_tool_use "preToolUse" PreToolUse => ToolVerdict;
    /// Answers what the rules would ask a person.
    on_permission_request "permissionRequest" PermissionWanted => PermissionVerdict;
    /// Reads the results of calls that succeeded.
    on_post_tool_use "postToolUse" PostToolUse => ResultChange;
    /// Reads the errors of calls that failed.
    on_post_tool_use_failure "postToolUseFailure" PostToolUseFailure => AddedContext;
    /// Reads, changes or blocks what people send.
    on_user_prompt_submitted "userPromptSubmitted" UserPromptSubmitted => PromptChange;
    /// Changes what the model gets of a prompt.
    on_user_prompt_transformed "userPromptTransformed" UserPromptTransformed => TransformedPromptChange;
    /// Is told when a session begins.
    on_session_start "sessionStart" SessionStart => AddedContext;
    /// Is told when a session ends.
    on_session_end "sessionEnd" SessionEnd => ();
    /// Decides whether the main agent may stop.
    on_agent_stop "agentStop" AgentStop => StopVerdict;
    /// Is told when a sub-agent begins.
    on_subagent_start "subagentStart" SubagentStart => AddedContext;
    /// Decides whether a sub-agent may stop.
    on_subagent_stop "subagentStop" AgentStop => StopVerdict;
    /// Decides what is done about a failed model call.
    on_error_occurred "errorOccurred" ErrorOccurred => ErrorVerdict;
    /// Is told what people are notified of.
    on_notification "notification" Notified => AddedContext;
}

impl Hooks {
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    fn with<I, O, F, Fut>(mut self, name: &'static str, handler: F) -> Self
    where
        I: DeserializeOwned + Send + 'static,
        O: Serialize,
        F: Fn(HookInput<I>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = O> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let run = move |input: Value| {
            let handler = handler.clone();
            async move {
                let input = serde_json::from_value(input);
                let input: HookInput<I> = input.map_err(|error| error.to_string())?;
                // A panic fails this hook only; the daemon denies the call if it is a guard.
                let running = AssertUnwindSafe(async move { handler(input).await }).catch_unwind();
                let output = running.await.map_err(|_| "the hook panicked".to_owned())?;
                serde_json::to_value(output).map_err(|error| error.to_string())
            }
            .boxed()
        };
        self.handlers.insert(name, Arc::new(run));
        self
    }

    /// Runs the hook of this kind; `None` if there is none.
    pub(crate) fn run(
        &self,
        kind: &str,
        input: Value,
    ) -> Option<BoxFuture<'static, Result<Value, String>>> {
        self.handlers.get(kind).map(|handler| handler(input))
    }
}
