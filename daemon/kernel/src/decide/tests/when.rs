//! Commands, named by what happened. A report is about the turn `i` with its number.

mod answers;
mod life;
mod settings;
mod skills;
mod tasks;
mod tool_calls;
mod turn;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::answers::*;
pub(crate) use self::life::*;
pub(crate) use self::settings::*;
pub(crate) use self::skills::*;
pub(crate) use self::tasks::*;
pub(crate) use self::tool_calls::*;
pub(crate) use self::turn::*;
use super::given::idle;
use crate::command::{
    AgentChoice, AgentPick, AgentSources, Assessed, Command, Create, Resume, Send,
};
use crate::hook::Guarded;

/// Data in the form that clients send and logs hold.
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
pub(super) fn data<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

impl From<Create> for Command {
    fn from(create: Create) -> Self {
        Self::Create(Box::new(create))
    }
}

impl From<Resume> for Command {
    fn from(resume: Resume) -> Self {
        Self::Resume(Box::new(resume))
    }
}

impl From<Send> for Command {
    fn from(send: Send) -> Self {
        Self::Send(send)
    }
}

impl From<Guarded> for Command {
    fn from(guarded: Guarded) -> Self {
        Self::Guarded(Box::new(guarded))
    }
}

impl From<Assessed> for Command {
    fn from(assessed: Assessed) -> Self {
        Self::Assessed(Box::new(assessed))
    }
}

fn agent(name: &str) -> AgentChoice {
    AgentChoice {
        name: name.to_owned(),
        display_name: name.to_owned(),
        tools: None,
        stance: loopd_proto::event::agent::Stance::default(),
        effort: None,
        model: None,
    }
}

/// An agent that was chosen while the session was like a new one.
fn pick(name: &str) -> Box<AgentPick> {
    Box::new(AgentPick {
        choice: agent(name),
        among: AgentSources::of(&idle().state()),
    })
}
