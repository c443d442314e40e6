//! MCP servers: those of a session, and those of the user's own configuration.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::event::mcp::{McpSource, McpStatus, McpTransport, ServerMetadata};
use crate::id::{RequestId, SessionId};
use crate::session::EnvValueMode;

/// Names a server of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerParams {
    pub session_id: SessionId,
    pub server_name: String,
}

/// The servers of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerList {
    pub servers: Vec<ListedServer>,
    pub host: HostState,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedServer {
    pub name: String,
    pub status: McpStatus,
    pub source: Option<McpSource>,
    pub source_plugin: Option<String>,
    pub display_name: Option<String>,
    pub error: Option<String>,
    pub server_metadata: Option<ServerMetadata>,
    pub transport: Option<McpTransport>,
    /// Our own member: how many lines of its output were no messages.
    #[serde(rename = "loopdNoise")]
    pub noise: Option<u64>,
    /// Our own member: what is wrong with tools that are left out.
    #[serde(rename = "loopdProblems")]
    pub problems: Option<Vec<String>>,
}

/// The servers of a session, by what became of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostState {
    pub mcp3p_enabled: bool,
    pub disabled_servers: Vec<String>,
    pub filtered_servers: Vec<String>,
    pub clients: Vec<String>,
    pub pending_connections: Vec<String>,
    pub failed_servers: BTreeMap<String, ServerFailure>,
    pub needs_auth_servers: BTreeMap<String, NeedsAuth>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFailure {
    pub message: String,
    /// Milliseconds since 1970.
    pub timestamp: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedsAuth {
    pub timestamp: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerTools {
    pub tools: Vec<ListedTool>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListedTool {
    pub name: String,
    pub description: Option<String>,
    pub ui: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Running {
    pub running: bool,
}

/// Starts a server, with another configuration if one is given.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StartParams {
    pub session_id: SessionId,
    pub server_name: String,
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvValueModeParams {
    pub session_id: SessionId,
    pub mode: EnvValueMode,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EnvValueModeSet {
    pub mode: EnvValueMode,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Removed {
    pub removed: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MovedToBackground {
    pub moved_to_background: bool,
}

/// The log of a server: what it wrote beside the protocol.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerLogLines {
    pub lines: Vec<String>,
    /// How many lines before these were dropped.
    pub dropped: u64,
}

/// What came of trying a server.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerTested {
    /// Why it cannot be used; absent if it is connected.
    pub error: Option<String>,
    pub tools: Vec<ListedTool>,
    /// What is wrong with tools that are left out.
    pub problems: Vec<String>,
    /// What it wrote beside the protocol.
    pub log: Vec<String>,
    /// How long it took until it was connected or had failed.
    pub duration_ms: u64,
}

/// The servers of the user's configuration, as they are written there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConfigList {
    pub servers: Map<String, Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConfigEntryParams {
    pub name: String,
    pub config: Map<String, Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConfigNameParams {
    pub name: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConfigNamesParams {
    pub names: Vec<String>,
}

/// Names a resource of a server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceParams {
    pub session_id: SessionId,
    pub server_name: String,
    pub uri: String,
}

/// Asks for one page of a list.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageParams {
    pub session_id: SessionId,
    pub server_name: String,
    #[serde(default)]
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppToolsParams {
    pub session_id: SessionId,
    pub server_name: String,
    pub origin_server_name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppCallParams {
    pub session_id: SessionId,
    pub server_name: String,
    pub tool_name: String,
    #[serde(default)]
    pub arguments: Option<Map<String, Value>>,
    pub origin_server_name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppContextParams {
    pub session_id: SessionId,
    pub context: Map<String, Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AppContext {
    pub context: Map<String, Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AppTools {
    pub tools: Vec<Value>,
}

/// Whether user interfaces of tools can be shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AppDiagnosis {
    pub capability: AppCapability,
    pub server: AppServer,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppCapability {
    pub session_has_mcp_apps: bool,
    pub feature_flag_enabled: bool,
    pub advertised: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppServer {
    pub connected: bool,
    pub tool_count: usize,
    pub tools_with_ui_meta: usize,
    pub sample_tool_names: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingParams {
    pub session_id: SessionId,
    pub request_id: String,
    pub server_name: String,
    pub mcp_request_id: Value,
    pub request: Map<String, Value>,
}

/// How the model answered for a server.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SamplingResult {
    pub action: SamplingAction,
    pub result: Option<Value>,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplingAction {
    Success,
    Failure,
    Cancelled,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelSamplingParams {
    pub session_id: SessionId,
    pub request_id: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SamplingCancelled {
    pub cancelled: bool,
}

/// Starts a login at a server.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginParams {
    pub session_id: SessionId,
    pub server_name: String,
    #[serde(default)]
    pub force_reauth: bool,
    #[serde(default)]
    pub client_name: Option<String>,
    #[serde(default)]
    pub callback_success_message: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginStarted {
    pub authorization_url: Option<String>,
}

/// Asks how a login ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoginWaitParams {
    /// The address that the login was begun with.
    pub authorization_url: String,
}

/// How far a login is.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoginEnded {
    pub status: LoginStatus,
    /// Why it failed, or what is wrong although it did not.
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LoginStatus {
    Waiting,
    LoggedIn,
    Failed,
    /// There is no such login, or another one has taken its place.
    Unknown,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggedOut {
    /// Whether there was a login.
    pub removed: bool,
}

/// Answers a server's wish for a token.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OauthAnswerParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub result: OauthAnswer,
}

#[derive(Clone, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum OauthAnswer {
    Token {
        access_token: String,
        #[serde(default)]
        token_type: Option<String>,
        #[serde(default)]
        expires_in: Option<u64>,
    },
    Cancelled {},
}

impl std::fmt::Debug for OauthAnswer {
    /// Never shows the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Token { .. } => "Token",
            Self::Cancelled {} => "Cancelled",
        })
    }
}
