//! The usage of a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::event::session::ModelMetrics;
use crate::session::SessionLimits;
use crate::time::Timestamp;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    pub total_premium_request_cost: f64,
    pub total_user_requests: u64,
    /// The charges of the providers, in billionths of a credit.
    pub total_nano_aiu: u64,
    pub total_api_duration_ms: u64,
    pub session_start_time: Timestamp,
    pub code_changes: CodeChanges,
    pub model_metrics: BTreeMap<String, ModelMetrics>,
    pub current_model: Option<String>,
    pub last_call_input_tokens: u64,
    pub last_call_output_tokens: u64,
    /// Our own member: what the session and all its sub-agents used, in the units of the limits.
    #[serde(default)]
    pub used: LimitUsage,
    /// Our own member: the limits of the session; absent if it has none.
    #[serde(default)]
    pub session_limits: Option<SessionLimits>,
}

/// What is used, in the units of the limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitUsage {
    pub ai_credits: f64,
    /// Input and output tokens.
    pub tokens: u64,
    /// US dollars, as far as the models have prices in `config.toml`.
    pub cost_usd: f64,
    /// Model calls.
    pub turns: u64,
    /// How many of them count with an estimate, because what they used is not known. Those of
    /// sub-agents are known while the session has limits.
    pub estimated_calls: u64,
    /// Seconds at work since the session has a limit of time.
    pub seconds: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeChanges {
    pub lines_added: u64,
    pub lines_removed: u64,
    pub files_modified_count: usize,
    pub files_modified: Vec<String>,
}
