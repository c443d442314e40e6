//! Methods with which clients run commands.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::{ProcessId, RequestId, SessionId, ToolCallId};

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecParams {
    pub session_id: SessionId,
    pub command: String,
    #[serde(default)]
    pub cwd: Option<String>,
    /// Milliseconds after which the command is stopped.
    #[serde(default)]
    pub timeout: Option<u64>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Executing {
    pub process_id: ProcessId,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KillParams {
    pub session_id: SessionId,
    pub process_id: ProcessId,
    #[serde(default)]
    pub signal: Option<KillSignal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub enum KillSignal {
    #[serde(rename = "SIGTERM")]
    Terminate,
    #[serde(rename = "SIGKILL")]
    Kill,
    #[serde(rename = "SIGINT")]
    Interrupt,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Killed {
    /// Whether the command ran and has ended.
    pub killed: bool,
    /// Why a command that ran has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Notification: a part of the output of a command of `session.shell.exec`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellOutput {
    pub process_id: ProcessId,
    /// Always `stdout`: both streams are merged, in order.
    pub stream: String,
    pub data: String,
}

/// Notification: a command of `session.shell.exec` ended.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellExit {
    pub process_id: ProcessId,
    pub exit_code: i32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRequestedParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub command: String,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRequested {
    pub tool_call_id: ToolCallId,
    pub success: bool,
    pub output: String,
    pub exit_code: Option<i32>,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
}
