//! Reports about tool calls.

use loopd_proto::event::ask::PlanAction;
use loopd_proto::time::Timestamp;
use serde_json::Value;

use super::data;
use super::turn::turn;
use crate::command::{Assessed, CallNeed, CallOutcome, Command, CompletionRef};
use crate::hook::{Guarded, HookDenial, HookPermission, HookVerdict, StopAnswered};
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
        hooks: HookVerdict::None,
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

    /// The hooks have given this verdict.
    pub(crate) fn after_hooks(mut self, hooks: HookVerdict) -> Self {
        self.hooks = hooks;
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
        recommended: Some(PlanAction::Interactive),
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

/// The hooks have decided about the call.
pub(crate) fn guarded(call: &str, verdict: HookVerdict) -> Guarded {
    Guarded {
        turn: turn(0),
        call: call.into(),
        verdict,
        arguments: None,
        context: Vec::new(),
        ended: Vec::new(),
    }
}

/// A hook denies, with one text for the model and one for people.
pub(crate) fn denies() -> HookVerdict {
    HookVerdict::Deny(HookDenial {
        reason: "no".to_owned(),
        told: "for people".to_owned(),
        stops: false,
    })
}

/// The hooks have answered what the rules would ask a person about the call `a`.
pub(crate) fn hooks_answered(request: Value, verdict: HookVerdict) -> Command {
    Command::HooksAnswered {
        asked: Box::new(HookPermission {
            turn: turn(0),
            call: "a".into(),
            request: data(request),
            origin: ToolOrigin::BuiltIn,
            can_ask: true,
            for_a_person: false,
            asked_by: crate::hook::AskedBy::Nobody,
        }),
        verdict,
        ended: Vec::new(),
    }
}

/// The hooks were told that the loop is about to end.
pub(crate) fn stop_answered(block: Option<&str>) -> Command {
    Command::StopAnswered(StopAnswered {
        turn: turn(0),
        block: block.map(str::to_owned),
        ended: Vec::new(),
    })
}
