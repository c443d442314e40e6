//! How work may end: every effect has several ways to report.

use loopd_kernel::command::{
    Assessed, CallNeed, CallOutcome, CallStatusReport, Command, Effect, ModelFailure, ModelReplied,
};
use loopd_kernel::model::{AssistantTurn, ModelReply, ToolCall};
use loopd_kernel::state::TurnKey;
use loopd_kernel::texts;
use loopd_kernel::tool_call::{Ahead, ToolOrigin, UserQuestion};
use loopd_proto::event::tool::ToolResult;
use loopd_proto::id::ToolCallId;
use loopd_proto::permission::{PermissionDecision, PermissionRequest};
use serde_json::{Value, json};

use super::World;

impl World {
    /// One piece of work reports; sometimes it reports again later.
    pub(super) fn report(&mut self, which: u8, how: u8) {
        if self.work.is_empty() {
            return;
        }
        // Mostly what was started last: turns have to get somewhere.
        let newest = self.work.len() - 1;
        let chosen = if which.is_multiple_of(4) {
            usize::from(which) % self.work.len()
        } else {
            newest
        };
        let command = command(&self.work[chosen], how);
        if how & 0x80 == 0 {
            self.work.remove(chosen);
        }
        if let Some(command) = command {
            self.give(command);
        }
    }
}

/// What an effect comes to; none for effects that do not report.
pub(super) fn command(effect: &Effect, how: u8) -> Option<Command> {
    Some(match effect {
        Effect::Prepare { messages } if how % 16 == 5 => Command::PrepareFailed {
            messages: messages.iter().map(|message| message.id.clone()).collect(),
            failure: failure(),
        },
        Effect::Prepare { messages } => World::prepared(messages),
        Effect::CallModel(turn) if how % 16 == 6 => Command::ModelFailed {
            turn: turn.clone(),
            failure: failure(),
        },
        Effect::CallModel(turn) if how % 4 == 1 => {
            says(turn.clone(), if how & 16 == 0 { "words" } else { "" })
        }
        Effect::CallModel(turn) => calls(turn.clone(), how),
        Effect::Assess { turn, call } => Command::Assessed(Assessed {
            turn: turn.clone(),
            call: call.id.clone(),
            origin: if how & 16 == 0 {
                ToolOrigin::BuiltIn
            } else {
                ToolOrigin::Client
            },
            need: need(call, how),
            ahead: Ahead::Shell,
            can_ask: how & 32 == 0,
            bypass: how & 64 != 0,
            inherited: None,
        }),
        Effect::Run { turn, call, .. } => Command::ToolFinished {
            turn: turn.clone(),
            call: call.id.clone(),
            outcome: outcome(how),
        },
        Effect::StartGrace(turn) => Command::GraceOver { turn: turn.clone() },
        Effect::OpenShellAhead
        | Effect::CancelTurn
        | Effect::AskClients(_)
        | Effect::Withdraw(_)
        | Effect::Resolve { .. }
        | Effect::GrantAbove(_)
        | Effect::CancelAgents
        | Effect::Remember(..) => return None,
    })
}

fn replied(turn: TurnKey, text: &str, calls: Vec<ToolCall>) -> Command {
    Command::ModelReplied(Box::new(ModelReplied {
        turn,
        message: "message".into(),
        model: "model".to_owned(),
        reply: ModelReply {
            turn: AssistantTurn {
                text: text.to_owned(),
                reasoning: None,
                calls,
            },
            ..ModelReply::default()
        },
        duration_ms: 1,
        first_token_ms: None,
        endpoint: None,
        tool_count: 1,
        initiator: "user",
    }))
}

pub(super) fn says(turn: TurnKey, text: &str) -> Command {
    replied(turn, text, Vec::new())
}

/// Up to three calls whose ids repeat across turns, and sometimes within one.
fn calls(turn: TurnKey, how: u8) -> Command {
    let arguments = [
        json!({"command": "x"}),
        Value::Null,
        json!("not an object"),
        json!({"n": 1.5}),
    ];
    let calls = (0..=how % 3).map(|number| {
        let id = if how.is_multiple_of(5) { 0 } else { number };
        ToolCall {
            id: ToolCallId::from(format!("call-{}-{id}", how % 2)),
            name: "tool".to_owned(),
            arguments: arguments[usize::from(how / 8 + number) % arguments.len()].clone(),
        }
    });
    replied(
        turn,
        if how & 16 == 0 { "" } else { "calling" },
        calls.collect(),
    )
}

fn need(call: &ToolCall, how: u8) -> CallNeed {
    match how % 6 {
        0 => CallNeed::Refused(CallOutcome::failure("failure", "no such tool")),
        1 => CallNeed::Nothing,
        2 => CallNeed::Answer(UserQuestion {
            text: "which?".to_owned(),
            choices: None,
            allow_freeform: true,
        }),
        _ => CallNeed::Permission(PermissionRequest::CustomTool {
            tool_call_id: None,
            tool_name: call.name.clone(),
            tool_description: String::new(),
            args: Some(call.arguments.clone()),
        }),
    }
}

pub(super) fn outcome(how: u8) -> CallOutcome {
    match how % 6 {
        0 => CallOutcome::failure("failure", "it broke"),
        1 => CallOutcome::failure(texts::REJECTED_CODE, "a person said no"),
        2 => CallOutcome {
            status: CallStatusReport::Success,
            result: serde_json::from_value(json!({"content": "a picture", "binaryResultsForLlm":
                [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}))
            .unwrap(),
            telemetry: None,
            delivered: Vec::new(),
        },
        _ => CallOutcome {
            status: CallStatusReport::Success,
            result: ToolResult {
                content: if how & 8 == 0 {
                    String::new()
                } else {
                    "a result".to_owned()
                },
                detailed_content: Some("for people".to_owned()),
                ..ToolResult::default()
            },
            telemetry: None,
            delivered: Vec::new(),
        },
    }
}

pub(super) fn decision(how: u8) -> PermissionDecision {
    match how % 5 {
        0 => PermissionDecision::ApproveForSession {
            approval: None,
            domain: None,
        },
        1 => PermissionDecision::Reject { feedback: None },
        2 => PermissionDecision::UserNotAvailable {},
        3 => PermissionDecision::Cancelled { reason: None },
        _ => PermissionDecision::ApproveOnce {},
    }
}

fn failure() -> ModelFailure {
    ModelFailure {
        kind: "network".to_owned(),
        code: None,
        message: "gone".to_owned(),
        status: None,
        provider_call_id: None,
        model: None,
    }
}
