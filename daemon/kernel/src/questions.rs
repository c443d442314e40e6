//! The open questions of a session to its clients.
//!
//! A question is open from the stored event that asks it to the stored event that closes it. The
//! log is the only list of questions: [`apply`](crate::apply::apply) opens and closes them. Clients
//! are shown the stored event at the position of the question.

use loopd_proto::event::ask::{AutoModeSwitchRequested, ElicitationRequested, UserInputRequested};
use loopd_proto::event::fact::{Asked, PlanAsked};
use loopd_proto::id::{RequestId, Seq};
use loopd_proto::permission::{AskedBecause, PermissionRequest};

use crate::apply::call_of;
use crate::state::{Stage, Turn};

/// The open questions of one session, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Questions {
    open: Vec<OpenQuestion>,
}

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenQuestion {
    pub request: RequestId,
    /// The position in the log of the event that asks.
    pub seq: Seq,
    pub asks: Asks,
    /// Why a person has to decide about a permission, if approving everything does not cover it.
    pub because: Option<AskedBecause>,
}

/// What a question asks, in as much detail as is needed to find out who can answer it.
#[derive(Debug, Clone, PartialEq)]
pub enum Asks {
    /// A client has to permit a tool call.
    Permission(Box<PermissionRequest>),
    /// A client has to run its tool of this name.
    ClientTool(String),
    /// A person has to answer a question of the model.
    UserInput(Box<UserInputRequested>),
    /// A person has to fill in a form. No tool call waits for it.
    Elicitation(Box<ElicitationRequested>),
    /// The client whose hooks guard the session has to decide about a call.
    Guard,
    /// A person has to approve a plan.
    ExitPlanMode(Box<PlanAsked>),
    /// A person has to say whether another model may go on. The failed model call waits for it.
    AutoModeSwitch(AutoModeSwitchRequested),
}

impl Questions {
    pub fn iter(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.open.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub fn get(&self, request: &RequestId) -> Option<&OpenQuestion> {
        self.iter().find(|question| question.request == *request)
    }

    /// Returns the open forms.
    pub fn forms(&self) -> impl Iterator<Item = &ElicitationRequested> {
        self.iter().filter_map(|question| match &question.asks {
            Asks::Elicitation(form) => Some(&**form),
            Asks::Permission(_)
            | Asks::ClientTool(_)
            | Asks::UserInput(_)
            | Asks::ExitPlanMode(_)
            | Asks::AutoModeSwitch(_)
            | Asks::Guard => None,
        })
    }

    /// Returns the open questions of the model to people.
    pub fn user_inputs(&self) -> impl Iterator<Item = &UserInputRequested> {
        self.iter().filter_map(|question| match &question.asks {
            Asks::UserInput(asked) => Some(&**asked),
            Asks::Permission(_)
            | Asks::ClientTool(_)
            | Asks::Elicitation(_)
            | Asks::ExitPlanMode(_)
            | Asks::AutoModeSwitch(_)
            | Asks::Guard => None,
        })
    }

    /// Returns the plans that wait for approval.
    pub fn plans(&self) -> impl Iterator<Item = &PlanAsked> {
        self.iter().filter_map(|question| match &question.asks {
            Asks::ExitPlanMode(plan) => Some(&**plan),
            Asks::Permission(_)
            | Asks::ClientTool(_)
            | Asks::UserInput(_)
            | Asks::Elicitation(_)
            | Asks::AutoModeSwitch(_)
            | Asks::Guard => None,
        })
    }

    /// Returns the open questions whether another model may go on.
    pub fn switches(&self) -> impl Iterator<Item = &AutoModeSwitchRequested> {
        self.iter().filter_map(|question| match &question.asks {
            Asks::AutoModeSwitch(asked) => Some(asked),
            Asks::Permission(_)
            | Asks::ClientTool(_)
            | Asks::UserInput(_)
            | Asks::Elicitation(_)
            | Asks::ExitPlanMode(_)
            | Asks::Guard => None,
        })
    }

    /// Returns the permission requests that no tool call waits for.
    pub fn parts(&self) -> impl Iterator<Item = (&RequestId, &PermissionRequest)> {
        self.iter().filter_map(|question| {
            let permission = question.asks.permission()?;
            let is_part = call_of(permission).is_none();
            is_part.then_some((&question.request, permission))
        })
    }

    /// Opens a question that the event at this position asks.
    pub(super) fn open(&mut self, request: &RequestId, seq: Seq, asks: Asks) {
        self.close(request);
        self.open.push(OpenQuestion {
            request: request.clone(),
            seq,
            asks,
            because: None,
        });
    }

    /// Adds why a person has to decide about an open question.
    pub(super) fn give_reason(&mut self, request: &RequestId, because: Option<AskedBecause>) {
        let mut open = self.open.iter_mut();
        if let Some(question) = open.find(|question| question.request == *request) {
            question.because = because;
        }
    }

    pub(super) fn close(&mut self, request: &RequestId) {
        self.open.retain(|question| question.request != *request);
    }

    /// Closes the questions that a connection waits for, and no tool call.
    pub(super) fn close_forms(&mut self) {
        let is_part = |asks: &Asks| asks.permission().is_some_and(|it| call_of(it).is_none());
        self.open
            .retain(|question| !question.asks.is_form() && !is_part(&question.asks));
    }

    /// Closes the questions that no tool call and no model call of this turn waits for any more.
    pub(super) fn keep_awaited_by(&mut self, turn: Option<&Turn>) {
        let calls = turn.map(Turn::calls).unwrap_or_default();
        let calling = turn.is_some_and(|turn| matches!(turn.stage, Stage::Calling));
        let awaited = |request: &RequestId| calls.iter().any(|call| call.waits_for(request));
        self.open.retain(|question| match &question.asks {
            Asks::Elicitation(_) => true,
            Asks::Permission(permission) if call_of(permission).is_none() => true,
            Asks::AutoModeSwitch(_) => calling,
            Asks::Permission(_)
            | Asks::ClientTool(_)
            | Asks::UserInput(_)
            | Asks::ExitPlanMode(_)
            | Asks::Guard => awaited(&question.request),
        });
    }
}

impl Asks {
    fn is_form(&self) -> bool {
        match self {
            Self::Elicitation(_) => true,
            Self::Permission(_)
            | Self::ClientTool(_)
            | Self::UserInput(_)
            | Self::ExitPlanMode(_)
            | Self::AutoModeSwitch(_)
            | Self::Guard => false,
        }
    }

    /// Returns the permission that is asked for, if the question is about one.
    pub fn permission(&self) -> Option<&PermissionRequest> {
        match self {
            Self::Permission(permission) => Some(permission),
            Self::ClientTool(_)
            | Self::UserInput(_)
            | Self::Elicitation(_)
            | Self::ExitPlanMode(_)
            | Self::AutoModeSwitch(_)
            | Self::Guard => None,
        }
    }
}

impl From<&Asked> for Asks {
    fn from(asked: &Asked) -> Self {
        match asked {
            Asked::UserInput(asked) => Self::UserInput(Box::new(asked.clone())),
            Asked::Elicitation(form) => Self::Elicitation(Box::new(form.clone())),
            Asked::Guard(_) => Self::Guard,
            Asked::ExitPlanMode(plan) => Self::ExitPlanMode(Box::new(plan.clone())),
            Asked::AutoModeSwitch(asked) => Self::AutoModeSwitch(asked.clone()),
        }
    }
}
