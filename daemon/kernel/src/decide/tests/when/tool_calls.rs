//! Reports about tool calls.

use loopd_proto::event::ask::PlanAction;
use loopd_proto::time::Timestamp;
use serde_json::Value;

use super::data;
use super::turn::turn;
use crate::command::{Assessed, CallNeed, CallOutcome, Command, CompletionRef};
use crate::tool_call::{Ahead, PlanProposal, ToolOrigin, UserQuestion};

/// The call `a` needs no permission.
pub(crate) fn needs_nothing(call: &str) -> Assessed {
    assessed(call, CallNeed::Nothing)
}

/// The call needs this permission.
pub(crate) fn needs(call: &str, request: Value) -> Assessed {
    assessed(call, CallNeed::Permission(data(request)))
}

/// The call is refused.
pub(crate) fn refuses(call: &str) -> Assessed {
    assessed(call, CallNeed::Refused(failed("invalid")))
}

fn assessed(call: &str, need: CallNeed) -> Assessed {
    Assessed {
        turn: turn(0),
        call: call.into(),
        origin: ToolOrigin::BuiltIn,
        need,
        claim: crate::policy::planning::ToolClaim::Nothing,
        ahead: Ahead::Nothing,
        can_ask: true,
    }
}

impl Assessed {
    pub(crate) fn of_turn(mut self, number: u32) -> Self {
        self.turn = turn(number);
        self
    }

    /// The tool belongs to a client.
    pub(crate) fn of_a_client(mut self) -> Self {
        self.origin = ToolOrigin::Client;
        self
    }

    /// The call could use a shell that is opened ahead.
    pub(crate) fn wanting_a_shell(mut self) -> Self {
        self.ahead = Ahead::Shell;
        self
    }

    /// No attached client answers permission questions.
    pub(crate) fn with_nobody_to_ask(mut self) -> Self {
        self.can_ask = false;
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

/// The call asks to leave plan mode.
pub(crate) fn proposes_a_plan(call: &str) -> Assessed {
    let proposal = PlanProposal {
        summary: "Short".to_owned(),
        content: "Long".to_owned(),
        is_new: true,
        actions: vec![PlanAction::Interactive, PlanAction::ExitOnly],
        recommended: PlanAction::Interactive,
    };
    assessed(call, CallNeed::Approval(proposal))
}

/// A person answers a plan.
pub(crate) fn answer_plan(request: &str, answer: serde_json::Value) -> Command {
    Command::AnswerExitPlanMode {
        request: request.into(),
        answer: super::data(answer),
        edited: None,
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

/// A result that reports how a task ended or became idle at this second.
pub(crate) fn ok_telling_of(task: &str, second: i64) -> CallOutcome {
    let mut outcome = ok();
    outcome.delivered.push(CompletionRef {
        task: task.into(),
        at: Timestamp(second * 1_000),
    });
    outcome
}

/// A failure with one text for people and another one for the model.
pub(crate) fn failed_in_other_words() -> CallOutcome {
    let mut outcome = failed("broken");
    outcome.result.detailed_content = Some("for people".to_owned());
    outcome
}
