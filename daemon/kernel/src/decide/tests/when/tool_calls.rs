//! Reports about tool calls.

use loopd_proto::permission::Permissions;
use loopd_proto::time::Timestamp;
use serde_json::Value;

use super::data;
use super::turn::turn;
use crate::command::{Assessed, CallNeed, CallOutcome, Command, CompletionRef};

/// The call `a` needs nobody's permission.
pub(crate) fn needs_nothing(call: &str) -> Assessed {
    assessed(call, CallNeed::Nothing)
}

/// The call can be made only with this permission.
pub(crate) fn needs(call: &str, request: Value) -> Assessed {
    assessed(call, CallNeed::Permission(data(request)))
}

/// The call cannot be made at all.
pub(crate) fn refuses(call: &str) -> Assessed {
    assessed(call, CallNeed::Refused(failed("invalid")))
}

fn assessed(call: &str, need: CallNeed) -> Assessed {
    Assessed {
        turn: turn(0),
        call: call.into(),
        need,
        can_ask: true,
        bypass: false,
        inherited: None,
    }
}

impl Assessed {
    pub(crate) fn of_turn(mut self, number: u32) -> Self {
        self.turn = turn(number);
        self
    }

    /// Who is attached answers no questions.
    pub(crate) fn with_nobody_to_ask(mut self) -> Self {
        self.can_ask = false;
        self
    }

    /// The launch allows everything.
    pub(crate) fn allowing_all(mut self) -> Self {
        self.bypass = true;
        self
    }

    /// A sub-agent may do what its parents may.
    pub(crate) fn inheriting(mut self, permissions: Value) -> Self {
        self.inherited = Some(Box::new(data::<Permissions>(permissions)));
        self
    }
}

pub(crate) fn call_client(number: u32, call: &str) -> Command {
    Command::CallClient {
        turn: turn(number),
        call: call.into(),
    }
}

pub(crate) fn ask_user(number: u32, call: &str) -> Command {
    Command::AskUser {
        turn: turn(number),
        call: call.into(),
        question: "Which?".to_owned(),
        choices: Some(vec!["left".to_owned(), "right".to_owned()]),
        allow_freeform: true,
    }
}

pub(crate) fn finished(number: u32, call: &str, outcome: CallOutcome) -> Command {
    Command::ToolFinished {
        turn: turn(number),
        call: call.into(),
        outcome,
    }
}

pub(crate) fn ok() -> CallOutcome {
    CallOutcome::success("ok")
}

pub(crate) fn failed(code: &str) -> CallOutcome {
    CallOutcome::failure(code, "it failed")
}

/// A result that tells what a task came to at this second.
pub(crate) fn ok_telling_of(task: &str, second: i64) -> CallOutcome {
    let mut outcome = ok();
    outcome.delivered.push(CompletionRef {
        task: task.into(),
        at: Timestamp(second * 1_000),
    });
    outcome
}

/// A failure that people read in other words than the model.
pub(crate) fn failed_in_other_words() -> CallOutcome {
    let mut outcome = failed("broken");
    outcome.result.detailed_content = Some("for people".to_owned());
    outcome
}
