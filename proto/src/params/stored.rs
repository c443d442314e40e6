//! Methods about stored sessions, live or not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::session::{ListFilter, Metadata};
use crate::id::SessionId;

/// Which sessions are listed; this daemon has local ones only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    #[default]
    Local,
    Remote,
    All,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListStoredParams {
    pub source: Option<Source>,
    /// How many sessions, beginning with the most recently changed, are described in full.
    pub metadata_limit: Option<usize>,
    pub filter: Option<ListFilter>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct PrefixParams {
    pub prefix: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskParams {
    pub task_id: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ContextParams {
    pub context: Option<ListFilter>,
}

/// The size of each session in bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sizes {
    pub sizes: BTreeMap<SessionId, u64>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IdsParams {
    pub session_ids: Vec<SessionId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InUse {
    pub in_use: Vec<SessionId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Freed {
    pub freed_bytes: BTreeMap<SessionId, u64>,
}

/// Descriptions of sessions: partial as parameters, complete as a result.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct Described {
    pub sessions: Vec<Metadata>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PruneParams {
    pub older_than_days: u32,
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub include_named: bool,
    #[serde(default)]
    pub exclude_session_ids: Option<Vec<SessionId>>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pruned {
    pub deleted: Vec<SessionId>,
    pub candidates: Vec<SessionId>,
    pub skipped: Vec<SessionId>,
    pub freed_bytes: u64,
    pub dry_run: bool,
}
