//! Events about what a session may use and has used, and about waits for the limits of providers.

use serde::{Deserialize, Serialize};

use crate::id::{RequestId, TaskId};
use crate::params::pending::LimitsExhausted;
use crate::session::SessionLimits;
use crate::time::Timestamp;

/// The limits of the session changed; `None` removes them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsChanged {
    pub session_limits: Option<SessionLimits>,
}

/// The credits are used up. A client may answer with
/// `session.ui.handlePendingSessionLimitsExhausted`; the run goes on if that grants more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsExhaustedRequested {
    pub request_id: RequestId,
    pub max_ai_credits: f64,
    pub used_ai_credits: f64,
}

/// The question about used up credits has its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitsExhaustedCompleted {
    pub request_id: RequestId,
    pub response: LimitsExhausted,
}

/// A model call of a sub-agent has ended. The session at the top stores it while it has limits, so
/// that its own log says what the whole tree has used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSpent {
    /// The task of the session at the top that the sub-agent works for.
    pub id: TaskId,
    /// Input and output tokens.
    pub tokens: u64,
    /// The cost in billionths of a US dollar, by the prices of that moment.
    #[serde(default)]
    pub nano_usd: u64,
    /// What the provider charged, in billionths of a credit.
    #[serde(default)]
    pub nano_credits: u64,
    /// Whether the tokens are estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// The turn waits until the provider of its model takes requests again. The next model call comes
/// then, also after a restart of the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderWait {
    pub until: Timestamp,
    /// The `errorType` of the refusal: `rate_limit` or `quota`.
    pub error_type: String,
}
