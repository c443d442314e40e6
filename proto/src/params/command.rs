//! Methods about slash commands.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{MessageId, RequestId, SessionId};
use crate::params::discovery::FileProblem;
use crate::run_scope::{RunLimits, RunScope};
use crate::session::Mode;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListParams {
    pub session_id: SessionId,
    #[serde(default = "yes")]
    pub include_builtins: bool,
    #[serde(default = "yes")]
    pub include_client_commands: bool,
    /// Whether to list the commands of files.
    #[serde(default = "yes")]
    pub include_skills: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Commands {
    pub commands: Vec<CommandInfo>,
    /// Our own member: the files of commands that cannot be used, or not as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FileProblem>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandInfo {
    pub name: String,
    /// Other names that the command answers to.
    pub aliases: Option<Vec<String>>,
    pub description: String,
    pub kind: CommandKind,
    pub input: Option<CommandInput>,
    #[serde(default)]
    pub allow_during_agent_execution: bool,
    /// Our own member: whose file it is, `project` or `user`.
    pub source: Option<String>,
    /// Our own member: the file of the command.
    pub path: Option<String>,
    /// Our own member: why the command does not run, for example for want of trust.
    pub unavailable: Option<String>,
}

/// Who runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandKind {
    Builtin,
    Client,
    /// A command of a file. The public schema has one kind for these and for skills.
    Skill,
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
    /// Our own member: the caller sends the message of an `agent-prompt` together with its `runScope`.
    /// Without it the daemon sends such a message itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_scope: bool,
    /// Our own member: how much a command may take that runs in a sub-agent or starts a fleet. The limits of a
    /// message are sent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<RunLimits>,
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
    Text {
        text: String,
        markdown: bool,
        /// Our own member: why the text is not complete; absent if it is.
        incomplete: Option<String>,
        /// Our own member: the work that the command has begun and that goes on.
        begun: Option<BegunWork>,
    },
    /// A message that the caller sends next.
    AgentPrompt {
        prompt: String,
        display_prompt: String,
        mode: Option<Mode>,
        /// What people should know before the message is sent.
        notice: Option<String>,
        /// Our own member: what the message sets for its run only.
        run_scope: Option<Box<RunScope>>,
    },
    /// The command has nothing to show.
    Completed {
        message: Option<String>,
        /// Our own member: the message that the daemon has sent for the command.
        message_id: Option<MessageId>,
        /// Our own member: the work that the command has begun and that goes on.
        begun: Option<BegunWork>,
    },
}

/// Work that a command begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BegunWork {
    Fleet,
    /// An agent in the background.
    Agent,
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
