//! Methods about slash commands.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{RequestId, SessionId};
use crate::session::Mode;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    pub session_id: SessionId,
    #[serde(default = "yes")]
    pub include_builtins: bool,
    #[serde(default = "yes")]
    pub include_client_commands: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Commands {
    pub commands: Vec<CommandInfo>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandInfo {
    pub name: String,
    pub description: String,
    pub kind: CommandKind,
    pub input: Option<CommandInput>,
    #[serde(default)]
    pub allow_during_agent_execution: bool,
}

/// Who runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandKind {
    Builtin,
    Client,
}

/// The argument of a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandInput {
    pub hint: Cow<'static, str>,
    pub required: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvokeParams {
    pub session_id: SessionId,
    pub name: String,
    #[serde(default)]
    pub input: String,
}

/// The result of a command.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Invoked {
    /// A text to show.
    Text { text: String, markdown: bool },
    /// A message that the caller sends next.
    AgentPrompt {
        prompt: String,
        display_prompt: String,
        mode: Mode,
    },
    /// The command has nothing to show.
    Completed { message: Option<String> },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecuteParams {
    pub session_id: SessionId,
    pub command_name: String,
    pub args: String,
}

/// The error of a command; absent if it succeeded.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
pub struct Executed {
    pub error: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandlePendingParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    #[serde(default)]
    pub error: Option<String>,
}

/// The reply to a client's report about its command.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    /// Always true, as clients of the official SDKs expect it.
    pub success: bool,
    /// Our own member: false if nobody waited for the command, for example because its id is unknown.
    pub waited_for: Option<bool>,
}
