//! Answers of clients to questions of the daemon, and direct handlers for some of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

pub use crate::event::ask::{AutoModeSwitch, PlanAction};
use crate::id::{RequestId, SessionId};

/// The answer of the client's model to a sampling request of an MCP server.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SamplingParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    /// Absent if the client refuses.
    #[serde(default)]
    pub response: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoModeSwitchParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub response: AutoModeSwitch,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitPlanModeParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub response: ExitPlanMode,
}

/// A person's answer to a plan.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExitPlanMode {
    pub approved: bool,
    #[serde(default)]
    pub selected_action: Option<PlanAction>,
    #[serde(default)]
    pub auto_approve_edits: bool,
    #[serde(default)]
    pub feedback: Option<String>,
    #[serde(default)]
    pub defer_implementation: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsExhaustedParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub response: LimitsExhausted,
}

/// What to do about a limit that is used up.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsExhausted {
    pub action: LimitAction,
    #[serde(default)]
    pub additional_ai_credits: Option<f64>,
    #[serde(default)]
    pub max_ai_credits: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitAction {
    Add,
    Set,
    Unset,
    Cancel,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadersRefreshParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub result: HeadersRefresh,
}

/// Fresh headers for a server that refused the old ones, if there are any.
#[derive(Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum HeadersRefresh {
    Headers { headers: BTreeMap<String, String> },
    None {},
}

impl std::fmt::Debug for HeadersRefresh {
    /// Names the headers only: their values are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Headers { headers } => f.debug_set().entries(headers.keys()).finish(),
            Self::None {} => f.write_str("None"),
        }
    }
}

/// The id of a registered handler.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handle {
    pub handle: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandleParams {
    pub session_id: SessionId,
    pub handle: String,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Unregistered {
    pub unregistered: bool,
}
