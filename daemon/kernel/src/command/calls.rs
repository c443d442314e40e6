//! How tool calls end.

use loopd_proto::event::skill::SkillInvoked;
use loopd_proto::event::tool::ToolResult;
use loopd_proto::id::TaskId;
use loopd_proto::permission::PermissionRequest;
use loopd_proto::time::Timestamp;
use serde_json::Value;

use crate::hook::HookVerdict;
use crate::model::ToolCall;
use crate::policy::planning::Planning;
use crate::state::TurnKey;
use crate::texts;

/// How a tool call ended, in the terms of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    pub status: CallStatusReport,
    /// The text for the model and, on success, for people.
    pub result: ToolResult,
    pub telemetry: Option<serde_json::Map<String, Value>>,
    /// The tasks whose completion the model learns from this result.
    pub delivered: Vec<CompletionRef>,
    /// The skill that the call loads.
    pub skill: Option<Box<SkillInvoked>>,
    /// A hook that saw the result stops the agent: which one, and why.
    pub stops: Option<String>,
}

/// The completion of a task: which task, and when it ended or became idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionRef {
    pub task: TaskId,
    pub at: Timestamp,
}

/// Success, or a failure with its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStatusReport {
    Success,
    Failure { code: String },
}

impl CallOutcome {
    pub fn success(text: impl Into<String>) -> Self {
        Self {
            status: CallStatusReport::Success,
            result: ToolResult {
                content: text.into(),
                ..ToolResult::default()
            },
            telemetry: None,
            delivered: Vec::new(),
            skill: None,
            stops: None,
        }
    }

    /// Makes the outcome of a call that an abort interrupted, with what the tool had until then.
    pub fn interrupted(left: impl Into<String>) -> Self {
        Self::failure(texts::INTERRUPTED_CODE, left)
    }

    pub fn failure(code: &str, text: impl Into<String>) -> Self {
        Self {
            status: CallStatusReport::Failure {
                code: code.to_owned(),
            },
            result: ToolResult {
                content: text.into(),
                ..ToolResult::default()
            },
            telemetry: None,
            delivered: Vec::new(),
            skill: None,
            stops: None,
        }
    }
}

/// A call whose MCP server was not there when it was assessed.
#[derive(Debug)]
pub struct AssessAgain {
    pub turn: TurnKey,
    pub call: ToolCall,
    /// What the hooks said about the call.
    pub hooks: HookVerdict,
}

/// A call that was permitted and is about to begin, maybe after a wait.
#[derive(Debug)]
pub struct GrantCheck {
    pub tool: String,
    /// What was permitted.
    pub request: PermissionRequest,
    /// Whether the session only planned when the call was permitted: what it runs is confined then.
    pub planned: Planning,
}
