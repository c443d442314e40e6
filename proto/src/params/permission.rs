//! Methods about permissions.

use serde::{Deserialize, Serialize};

use crate::id::{RequestId, SessionId};
use crate::permission::{Approval, PermissionDecision, PermissionPrompt, PermissionRule};

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HandleParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub result: PermissionDecision,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pending {
    pub items: Vec<PendingItem>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingItem {
    pub request_id: RequestId,
    pub request: PermissionPrompt,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnabledParams {
    pub session_id: SessionId,
    pub enabled: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequiredParams {
    pub session_id: SessionId,
    pub required: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptShownParams {
    pub session_id: SessionId,
    pub message: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureParams {
    pub session_id: SessionId,
    #[serde(default)]
    pub approve_all_tool_permission_requests: Option<bool>,
    #[serde(default)]
    pub approve_all_read_permission_requests: Option<bool>,
    #[serde(default)]
    pub rules: Option<Rules>,
    #[serde(default)]
    pub paths: Option<PathsConfig>,
    #[serde(default)]
    pub urls: Option<UrlsConfig>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Rules {
    pub approved: Vec<PermissionRule>,
    pub denied: Vec<PermissionRule>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathsConfig {
    #[serde(default)]
    pub unrestricted: Option<bool>,
    #[serde(default)]
    pub additional_directories: Option<Vec<String>>,
    #[serde(default)]
    pub include_temp_directory: Option<bool>,
    #[serde(default)]
    pub workspace_path: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UrlsConfig {
    #[serde(default)]
    pub unrestricted: Option<bool>,
    #[serde(default)]
    pub initial_allowed: Option<Vec<String>>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModifyRulesParams {
    pub session_id: SessionId,
    pub scope: RuleScope,
    #[serde(default)]
    pub add: Vec<PermissionRule>,
    #[serde(default)]
    pub remove: Vec<PermissionRule>,
    #[serde(default)]
    pub remove_all: bool,
    /// Our own member: rules that deny, beside those that the session has.
    #[serde(default, rename = "loopdDeny", skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<PermissionRule>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleScope {
    Session,
    Location,
}

#[derive(Debug, Clone, Serialize)]
pub struct Paths {
    pub directories: Vec<String>,
    pub primary: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathParams {
    pub session_id: SessionId,
    pub path: String,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Allowed {
    pub allowed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocationParams {
    pub session_id: SessionId,
    pub working_directory: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    pub location_key: String,
    pub location_type: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocationApplied {
    pub location_key: String,
    pub location_type: String,
    pub changed: bool,
    pub applied_rule_count: usize,
    pub applied_directory_count: usize,
    pub applied_rules: Vec<PermissionRule>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddApprovalParams {
    pub session_id: SessionId,
    pub location_key: String,
    pub approval: Approval,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Trusted {
    pub trusted: bool,
}

/// Whether people are asked before tools run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// People are asked, as the rules say.
    Manual,
    /// A model checks each request first.
    Assisted,
    /// Everything is allowed.
    AllowAll,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct ModeNow {
    pub mode: ApprovalMode,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetModeParams {
    pub session_id: SessionId,
    pub mode: ApprovalMode,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct ModeSet {
    pub success: bool,
    pub mode: ApprovalMode,
}
