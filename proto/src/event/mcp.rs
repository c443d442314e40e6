//! What clients are told about MCP servers. Nothing of it is stored: servers start anew with a session.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::id::RequestId;

/// The status of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum McpStatus {
    Connected,
    Failed,
    NeedsAuth,
    /// It starts, or will when it is needed.
    Pending,
    Disabled,
    Stopped,
    #[serde(rename = "not_configured")]
    NotConfigured,
}

/// Where a server comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpSource {
    User,
    Workspace,
    Plugin,
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpTransport {
    Stdio,
    Http,
    Sse,
}

/// What a server tells models about its use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerMetadata {
    pub instructions: Option<String>,
}

/// The servers of a session were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersLoaded {
    pub servers: Vec<LoadedServer>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadedServer {
    pub name: String,
    pub status: McpStatus,
    pub source: Option<McpSource>,
    pub display_name: Option<String>,
    pub error: Option<String>,
    pub server_metadata: Option<ServerMetadata>,
    pub transport: Option<McpTransport>,
    pub plugin_name: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusChanged {
    pub server_name: String,
    pub status: McpStatus,
    pub error: Option<String>,
}

/// The tools, resources or prompts of a server are others than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListChanged {
    pub server_name: String,
}

/// A server wants a token.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OauthRequired {
    pub request_id: RequestId,
    pub server_name: String,
    pub server_url: String,
    pub static_client_config: Option<StaticClient>,
    pub www_authenticate_params: Option<WwwAuthenticate>,
    pub http_response: Option<OauthHttpResponse>,
    /// What the server publishes about its login, as text.
    pub resource_metadata: Option<String>,
    pub reason: OauthReason,
}

/// What the configuration says about the client that logs in. Its secret is never told.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaticClient {
    pub client_id: String,
    pub public_client: Option<bool>,
    pub grant_type: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WwwAuthenticate {
    pub resource_metadata_url: Option<String>,
    pub scope: Option<String>,
    pub error: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OauthHttpResponse {
    pub status_code: u16,
    pub headers: Vec<HeaderEntry>,
    pub body: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderEntry {
    pub name: String,
    pub value: String,
}

/// Why a token is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OauthReason {
    Initial,
    Refresh,
    Reauth,
    Upscope,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OauthCompleted {
    pub request_id: RequestId,
    pub outcome: OauthOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OauthOutcome {
    Token,
    Cancelled,
}

/// The user interface of a tool called a tool.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppToolCalled {
    pub server_name: String,
    pub tool_name: String,
    pub arguments: Option<Map<String, Value>>,
    pub success: bool,
    pub duration_ms: u64,
    pub result: Option<Value>,
    pub error: Option<AppCallError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppCallError {
    pub message: String,
}
