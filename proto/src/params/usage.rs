//! The usage of a session.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::event::session::ModelMetrics;
use crate::time::Timestamp;

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
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
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CodeChanges {
    pub lines_added: u64,
    pub lines_removed: u64,
    pub files_modified_count: usize,
    pub files_modified: Vec<String>,
}
