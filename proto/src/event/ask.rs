//! Questions to the clients, and how they were closed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::id::{RequestId, ToolCallId};
use crate::permission::{
    AskedBecause, DecisionSource, PermissionOutcome, PermissionPrompt, PermissionRequest,
};

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequested {
    pub request_id: RequestId,
    pub permission_request: PermissionRequest,
    pub prompt_request: Option<PermissionPrompt>,
    /// A hook has answered; no client has to.
    #[serde(default)]
    pub resolved_by_hook: Option<bool>,
    /// Why a person has to decide, if approving everything does not cover it.
    #[serde(default)]
    pub asked_because: Option<AskedBecause>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionCompleted {
    pub request_id: RequestId,
    pub tool_call_id: Option<ToolCallId>,
    pub result: PermissionOutcome,
    /// Who decided, if that was not a client.
    #[serde(default)]
    pub decision_source: Option<DecisionSource>,
}

/// A question is closed; another event has the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Completed {
    pub request_id: RequestId,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInputRequested {
    pub request_id: RequestId,
    pub question: String,
    pub choices: Option<Vec<String>>,
    pub allow_freeform: Option<bool>,
    pub tool_call_id: Option<ToolCallId>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInputCompleted {
    pub request_id: RequestId,
    pub answer: Option<String>,
    pub was_freeform: Option<bool>,
}

/// What follows an approved plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanAction {
    /// Plan mode ends, and nothing begins.
    ExitOnly,
    Interactive,
    Autopilot,
    AutopilotFleet,
}

/// The model asks to leave plan mode.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitPlanModeRequested {
    pub request_id: RequestId,
    pub summary: String,
    pub plan_content: String,
    pub actions: Vec<PlanAction>,
    pub recommended_action: PlanAction,
    pub model: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitPlanModeCompleted {
    pub request_id: RequestId,
    pub approved: Option<bool>,
    pub selected_action: Option<PlanAction>,
    pub auto_approve_edits: Option<bool>,
    pub feedback: Option<String>,
}

/// Whether another model may answer after a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoModeSwitch {
    Yes,
    YesAlways,
    No,
}

/// A rate limit of the user was reached; another model could go on.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoModeSwitchRequested {
    pub request_id: RequestId,
    pub error_code: Option<String>,
    pub retry_after_seconds: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoModeSwitchCompleted {
    pub request_id: RequestId,
    pub response: AutoModeSwitch,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationRequested {
    pub request_id: RequestId,
    pub message: String,
    pub mode: Option<String>,
    #[serde(default, deserialize_with = "crate::json::present")]
    pub requested_schema: Option<Value>,
    /// The call that the question belongs to.
    #[serde(default)]
    pub tool_call_id: Option<ToolCallId>,
    /// The MCP server that asks.
    #[serde(default)]
    pub elicitation_source: Option<String>,
    /// The page to visit, in place of a form.
    #[serde(default)]
    pub url: Option<String>,
}

/// What a person did with a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationCompleted {
    pub request_id: RequestId,
    pub action: Option<ElicitationAction>,
    pub content: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandsChanged {
    pub commands: Vec<CommandName>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandName {
    pub name: String,
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandQueued {
    pub request_id: RequestId,
    pub command: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecute {
    pub request_id: RequestId,
    pub command: String,
    pub command_name: String,
    pub args: String,
}
