//! What one hook gave back: a JSON object, nothing, or a failure.

use serde_json::{Map, Value};

use super::vocabulary::OddMember;
use crate::discovery::hooks::repeated_member;
use loopd_kernel::guards::ClientGuards;

/// What a hook gave back.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HookOutput {
    /// The members of its answer; empty if it has nothing to say.
    pub members: Map<String, Value>,
    /// A command ended with exit code 2, which means no. The text is why.
    pub refused: Option<String>,
    /// A command printed this text, and no JSON.
    pub text: Option<String>,
    /// What of the answer does not do what it seems to ask for.
    pub odd: Vec<OddMember>,
}

impl HookOutput {
    pub(super) fn of(value: Option<Value>) -> Result<Self, HookFailure> {
        match value {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(Value::Object(members)) => Ok(Self {
                members,
                ..Self::default()
            }),
            Some(other) => Err(HookFailure::nonsense(&other.to_string())),
        }
    }

    /// Reads the answer that a command or an address gave. An answer with a member twice is nonsense:
    /// it may mean either.
    pub(super) fn read(text: &str) -> Result<Self, HookFailure> {
        let value: Value = serde_json::from_str(text).map_err(|_| HookFailure::nonsense(text))?;
        if let Some(name) = repeated_member(text) {
            return Err(HookFailure::failed(format!(
                "its answer has the member `{}` twice",
                loopd_proto::visible::visible(&name)
            )));
        }
        if value.is_null() {
            return Err(HookFailure::nonsense(text));
        }
        let output = Self::of(Some(value))?;
        match output.unsaid_decision() {
            None => Ok(output),
            Some(name) => Err(HookFailure::failed(format!(
                "its answer has `{name}` without a value; leave the member out to have no objection"
            ))),
        }
    }

    /// Returns the name of a decision that is null: a script may have lost what it wanted to say.
    fn unsaid_decision(&self) -> Option<&'static str> {
        let decisions = ["permissionDecision", "decision", "behavior"];
        decisions.into_iter().find(|name| {
            self.levels()
                .any(|level| level.get(*name) == Some(&Value::Null))
        })
    }

    /// Returns the answer as events show it.
    pub(super) fn shown(&self) -> Option<Value> {
        let mut members = self.members.clone();
        if let Some(refused) = &self.refused {
            members.insert("refused".to_owned(), refused.clone().into());
        }
        (!members.is_empty()).then_some(Value::Object(members))
    }
}

/// Why there is no answer of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookFailure {
    /// Clients that have to answer are not there.
    Absent(ClientGuards),
    Failed(String),
    /// The hook is not what its folder was trusted with. `onFailure` of its file does not count then.
    Changed(String),
}

impl HookFailure {
    pub(super) fn failed(cause: impl Into<String>) -> Self {
        Self::Failed(cause.into())
    }

    /// The answer is no JSON object.
    pub(super) fn nonsense(printed: &str) -> Self {
        let shown: String = printed.trim().chars().take(120).collect();
        Self::Failed(format!(
            "its answer is not one JSON object but begins with `{}`",
            loopd_proto::visible::visible(&shown)
        ))
    }

    pub(super) fn cause(&self) -> &str {
        match self {
            Self::Absent(_) => "the client that answers this hook is not there",
            Self::Failed(cause) | Self::Changed(cause) => cause,
        }
    }
}
