//! Reports about tool calls.

use loopd_proto::permission::Permissions;
use loopd_proto::time::Timestamp;
use serde_json::Value;

use super::data;
use super::turn::turn;
use crate::command::{Assessed, CallNeed, CallOutcome, Command, CompletionRef};
use crate::tool_call::{Ahead, ToolOrigin, UserQuestion};

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
        origin: ToolOrigin::BuiltIn,
        need,
        ahead: Ahead::Nothing,
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

    /// The tool is a client's.
    pub(crate) fn of_a_client(mut self) -> Self {
        self.origin = ToolOrigin::Client;
        self
    }

    /// The call could use a shell that is opened ahead.
    pub(crate) fn wanting_a_shell(mut self) -> Self {
        self.ahead = Ahead::Shell;
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

/// The call is a question to the user.
pub(crate) fn asks_the_user(call: &str) -> Assessed {
    let question = UserQuestion {
        text: "Which?".to_owned(),
        choices: Some(vec!["left".to_owned(), "right".to_owned()]),
        allow_freeform: true,
    };
    assessed(call, CallNeed::Answer(question))
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
