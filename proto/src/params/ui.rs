//! Methods that ask the users of a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::event::ask::ElicitationAction;
use crate::id::{RequestId, SessionId};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationParams {
    pub session_id: SessionId,
    pub message: String,
    pub requested_schema: Value,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ElicitationResult {
    pub action: ElicitationAction,
    pub content: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandleElicitationParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub result: ElicitationResult,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandleUserInputParams {
    pub session_id: SessionId,
    pub request_id: RequestId,
    pub response: UserInputResponse,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInputResponse {
    pub answer: String,
    #[serde(default)]
    pub was_freeform: bool,
}
