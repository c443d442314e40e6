//! Messages in the queue, and the turn that works on them.

use std::collections::BTreeMap;

use loopd_proto::event::fact::{ClientRef, CountedTokens};
use serde_json::json;

use super::data;
use crate::command::{
    AbortRequest, AbortWaiting, Command, CommandRunner, ModelFailure, ModelReplied, Prepared,
    PreparedMessage, QueuedLine, Send, SendPlace,
};
use crate::model::{AssistantTurn, Finish, ModelReply, ToolCall, Usage};
use crate::state::TurnKey;

pub(crate) fn turn(number: u32) -> TurnKey {
    TurnKey {
        interaction: "i".into(),
        number,
    }
}

/// A client sends a message. Its text is `hello` unless a test sets another.
pub(crate) fn send(id: &str) -> Send {
    Send {
        id: Some(id.into()),
        prompt: "hello".to_owned(),
        display_prompt: None,
        attachments: Vec::new(),
        agent_mode: None,
        required_tool: None,
        request_headers: BTreeMap::new(),
        source: None,
        place: SendPlace::Enqueue,
        sender: None,
        scope: None,
    }
}

/// A client with this id and the name `app`.
pub(crate) fn client(id: &str) -> ClientRef {
    ClientRef {
        id: id.to_owned(),
        name: Some("app".to_owned()),
    }
}

impl Send {
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.prompt = text.to_owned();
        self
    }

    pub(crate) fn without_id(mut self) -> Self {
        self.id = None;
        self
    }

    pub(crate) fn immediately(mut self) -> Self {
        self.place = SendPlace::Immediate;
        self
    }

    pub(crate) fn at(mut self, position: u32) -> Self {
        self.place = SendPlace::At(position);
        self
    }

    pub(crate) fn first(mut self) -> Self {
        self.place = SendPlace::Prepend;
        self
    }

    pub(crate) fn with_file(mut self, path: &str) -> Self {
        let file = json!({ "type": "file", "path": path });
        self.attachments.push(data(file));
        self
    }
}

pub(crate) fn slash_command(text: &str) -> Command {
    Command::EnqueueCommand(QueuedLine {
        command: text.to_owned(),
        runner: CommandRunner::Clients,
        sender: None,
        display_text: None,
    })
}

/// A client ran a slash command, and the queue continues.
pub(crate) fn command_handled(request: &str) -> Command {
    Command::CommandHandled {
        request: request.into(),
        stop: false,
        error: None,
    }
}

/// A client ran a slash command, and the queue stops.
pub(crate) fn command_stopped(request: &str) -> Command {
    Command::CommandHandled {
        request: request.into(),
        stop: true,
        error: None,
    }
}

/// A client could not run a slash command.
pub(crate) fn command_failed(request: &str) -> Command {
    Command::CommandHandled {
        request: request.into(),
        stop: false,
        error: Some("no disk space".to_owned()),
    }
}

pub(crate) fn clients_left() -> Command {
    Command::ClientsLeft
}

pub(crate) fn clear_queue() -> Command {
    Command::ClearQueue
}

pub(crate) fn remove_last() -> Command {
    Command::RemoveLastQueued
}

/// Messages are prepared, for the current model and system message of the session.
pub(crate) fn prepared(ids: &[&str]) -> Command {
    prepared_for("gpt", "system", ids)
}

pub(crate) fn prepared_for(model: &str, system: &str, ids: &[&str]) -> Command {
    let ready = |id: &&str| PreparedMessage {
        id: (*id).into(),
        text: "hello!".to_owned(),
        attachments: None,
    };
    Command::Prepared(Prepared {
        messages: ids.iter().map(ready).collect(),
        model: model.to_owned(),
        reasoning_effort: None,
        system: system.to_owned(),
        blocked: Vec::new(),
        context: Vec::new(),
        ended: Vec::new(),
        skills: Vec::new(),
        preloaded: Vec::new(),
    })
}

pub(crate) fn prepare_failed(ids: &[&str]) -> Command {
    Command::PrepareFailed {
        messages: ids.iter().map(|id| (*id).into()).collect(),
        failure: failure(),
    }
}

fn failure() -> ModelFailure {
    ModelFailure {
        kind: "query".to_owned(),
        code: Some("down".to_owned()),
        message: "no answer".to_owned(),
        status: Some(500),
        provider_call_id: None,
        model: Some("gpt".to_owned()),
        retry_after_seconds: None,
    }
}

/// The model answered with text only.
pub(crate) fn replied(number: u32) -> Command {
    reply(number, "hi", &[], Finish::Stop)
}

/// The model answered, but not to the end.
pub(crate) fn replied_cut(number: u32, finish: Finish) -> Command {
    reply(number, "hi", &[], finish)
}

/// The model asked for calls with these ids.
pub(crate) fn replied_with_calls(number: u32, calls: &[&str]) -> Command {
    reply(number, "", calls, Finish::ToolCalls)
}

fn reply(number: u32, text: &str, calls: &[&str], finish: Finish) -> Command {
    let call = |id: &&str| ToolCall {
        id: (*id).into(),
        name: "edit".to_owned(),
        arguments: json!({}),
    };
    Command::ModelReplied(Box::new(ModelReplied {
        turn: turn(number),
        message: "reply".into(),
        model: "gpt".to_owned(),
        reply: ModelReply {
            turn: AssistantTurn {
                text: text.to_owned(),
                reasoning: None,
                calls: calls.iter().map(call).collect(),
            },
            usage: Usage::default(),
            finish,
            api_call_id: None,
            provider_call_id: None,
        },
        duration_ms: 10,
        first_token_ms: None,
        endpoint: None,
        tool_count: 1,
        initiator: "user",
        nano_usd: 0,
        counted: CountedTokens::default(),
        reported: None,
    }))
}

/// The model call failed because of a rate limit.
pub(crate) fn rate_limited(number: u32, code: &str) -> Command {
    Command::ModelFailed {
        lost: None,
        turn: turn(number),
        failure: ModelFailure {
            kind: "rate_limit".to_owned(),
            code: Some(code.to_owned()),
            status: Some(429),
            retry_after_seconds: Some(1),
            ..failure()
        },
    }
}

pub(crate) fn model_failed(number: u32) -> Command {
    Command::ModelFailed {
        lost: None,
        turn: turn(number),
        failure: failure(),
    }
}

/// The daemon itself stops the turn.
pub(crate) fn abort() -> Command {
    Command::Abort(AbortRequest::OF_DAEMON)
}

/// A client stops the turn and drops what it queued itself.
pub(crate) fn abort_by(id: &str) -> Command {
    Command::Abort(AbortRequest {
        by: Some(client(id)),
        waiting: AbortWaiting::RemoveOwn,
        ..AbortRequest::OF_DAEMON
    })
}

/// A client stops the turn and keeps what waits.
pub(crate) fn interrupt_keeping(id: &str) -> Command {
    Command::Abort(AbortRequest {
        by: Some(client(id)),
        waiting: AbortWaiting::Keep,
        ..AbortRequest::OF_DAEMON
    })
}

/// A client stops the turn if it belongs to a message.
pub(crate) fn interrupt_only(message: &str) -> Command {
    Command::Abort(AbortRequest {
        by: Some(client("a")),
        waiting: AbortWaiting::RemoveOwn,
        only: Some(message.into()),
        ..AbortRequest::OF_DAEMON
    })
}

pub(crate) fn move_item(id: &str, to: u32) -> Command {
    let id = id.into();
    Command::MoveQueued { id, to }
}

pub(crate) fn edit_item(id: &str, prompt: &str) -> Command {
    Command::EditQueued {
        id: id.into(),
        prompt: prompt.to_owned(),
        display_prompt: None,
    }
}

pub(crate) fn remove_item(id: &str) -> Command {
    Command::RemoveQueued(id.into())
}

pub(crate) fn steer_item(id: &str) -> Command {
    Command::SteerQueued(id.into())
}

pub(crate) fn withdraw(id: &str, expected: &str) -> Command {
    Command::WithdrawMessage {
        id: id.into(),
        expected: expected.to_owned(),
    }
}

pub(crate) fn grace_over(number: u32) -> Command {
    Command::GraceOver { turn: turn(number) }
}
