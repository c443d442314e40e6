//! Answers of clients.

use loopd_proto::event::ask::{ElicitationAction, ElicitationRequested};
use loopd_proto::permission::{Approval, PermissionDecision};
use serde_json::{Value, json};

use super::data;
use crate::command::{CallOutcome, Command, LastingApproval, PartAsked};
use crate::hook::HookVerdict;

/// A client answers with this JSON from the wire.
pub(crate) fn permit(request: &str, decision: Value) -> Command {
    Command::AnswerPermission {
        request: request.into(),
        decision: data::<PermissionDecision>(decision),
    }
}

/// A part of a slash command needs this permission.
pub(crate) fn wants_part(request: &str, permission: Value) -> PartAsked {
    PartAsked {
        request: request.into(),
        tool: "bash".to_owned(),
        permission: data(permission),
        claim: crate::policy::planning::ToolClaim::Nothing,
        can_ask: true,
        hooks: HookVerdict::None,
    }
}

impl PartAsked {
    /// No client answers permission requests.
    pub(crate) fn of_nobody(mut self) -> Self {
        self.can_ask = false;
        self
    }

    /// The hooks have given this verdict.
    pub(crate) fn judged(mut self, hooks: HookVerdict) -> Self {
        self.hooks = hooks;
        self
    }
}

impl From<PartAsked> for Command {
    fn from(asked: PartAsked) -> Self {
        Self::AskForPart(Box::new(asked))
    }
}

pub(crate) fn answer_tool(request: &str, outcome: CallOutcome) -> Command {
    Command::AnswerTool {
        request: request.into(),
        outcome,
    }
}

/// A person chose one of the answers.
pub(crate) fn choose(request: &str, answer: &str) -> Command {
    Command::AnswerUserInput {
        request: request.into(),
        answer: answer.to_owned(),
        freeform: false,
    }
}

/// A person answered in their own words.
pub(crate) fn reply_freely(request: &str, answer: &str) -> Command {
    Command::AnswerUserInput {
        request: request.into(),
        answer: answer.to_owned(),
        freeform: true,
    }
}

pub(crate) fn elicit(request: &str) -> Command {
    Command::Elicit(Box::new(ElicitationRequested {
        request_id: request.into(),
        message: "Fill in".to_owned(),
        mode: None,
        requested_schema: Some(json!({ "type": "object" })),
        tool_call_id: None,
        elicitation_source: None,
        url: None,
    }))
}

pub(crate) fn fill_in(request: &str, content: Value) -> Command {
    Command::AnswerElicitation {
        request: request.into(),
        action: ElicitationAction::Accept,
        content: Some(content),
    }
}

pub(crate) fn decline(request: &str) -> Command {
    Command::AnswerElicitation {
        request: request.into(),
        action: ElicitationAction::Decline,
        content: None,
    }
}

/// A client gave a lasting approval when a sub-agent asked.
pub(crate) fn grant(approval: Value, domain: Option<&str>) -> Command {
    Command::Grant(LastingApproval {
        approval: data::<Option<Approval>>(approval),
        domain: domain.map(str::to_owned),
        confirmed: None,
    })
}
