//! What hooks say about a session, and where the loop has to ask them.

use loopd_proto::event::hook::HookEnd;
use loopd_proto::id::ToolCallId;
use loopd_proto::permission::PermissionRequest;
use serde_json::Value;

use crate::command::CallOutcome;
use crate::guards::ClientGuards;
use crate::model::ToolCall;
use crate::state::TurnKey;
use crate::texts;
use crate::tool_call::ToolOrigin;

/// The kind of the failure of a message that hooks do not let through.
pub const PROMPT_BLOCKED: &str = "hook_blocked";

/// The kind of the warning that hooks kept the loop from ending too often in a row, so that it ends.
pub const STOP_LIMIT: &str = "stop_hook_limit";

/// The kind of the warning that a hook which saw the result of a call stops the agent.
pub const STOPPED: &str = "hook_stopped";

/// The verdict of hooks about a tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HookVerdict {
    /// No hook has an opinion.
    #[default]
    None,
    /// A hook answers what the rules would ask a person.
    Allow,
    /// A person has to decide, whatever the rules allow. The text says why.
    Ask(Option<String>),
    Deny(HookDenial),
}

/// Why hooks deny a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookDenial {
    /// The text for the model.
    pub reason: String,
    /// The text for people, which names the hook and how to go on.
    pub told: String,
    /// Whether the agent stops here, as it does when a person rejects a call.
    pub stops: bool,
}

impl HookDenial {
    /// A denial for which the model and people are told the same.
    pub fn new(reason: &str) -> Self {
        Self {
            reason: reason.to_owned(),
            told: reason.to_owned(),
            stops: false,
        }
    }

    /// Returns the result of the call.
    pub(crate) fn outcome(self) -> CallOutcome {
        let code = if self.stops {
            texts::REJECTED_CODE
        } else {
            "denied"
        };
        let mut outcome = CallOutcome::failure(code, self.reason);
        outcome.result.detailed_content = Some(self.told);
        outcome
    }
}

impl HookVerdict {
    /// Combines the verdicts of two hooks: the stricter one wins. All reasons are kept.
    #[must_use]
    pub fn meet(self, other: Self) -> Self {
        match (self, other) {
            (Self::Deny(one), Self::Deny(other)) => Self::Deny(HookDenial {
                reason: joined(one.reason, &other.reason),
                told: joined(one.told, &other.told),
                stops: one.stops || other.stops,
            }),
            (Self::Deny(denial), _) | (_, Self::Deny(denial)) => Self::Deny(denial),
            (Self::Ask(Some(one)), Self::Ask(Some(other))) => Self::Ask(Some(joined(one, &other))),
            (Self::Ask(one), Self::Ask(other)) => Self::Ask(one.or(other)),
            (Self::Ask(why), _) | (_, Self::Ask(why)) => Self::Ask(why),
            (Self::Allow, _) | (_, Self::Allow) => Self::Allow,
            (Self::None, Self::None) => Self::None,
        }
    }
}

fn joined(mut one: String, other: &str) -> String {
    if one != other {
        one.push('\n');
        one.push_str(other);
    }
    one
}

/// Where the loop has to ask hooks.
#[derive(Clone, Copy)]
pub struct HookNeeds<'a> {
    /// Returns whether hooks decide about a call before it starts.
    pub guard: &'a dyn Fn(&ToolCall) -> bool,
    /// Returns whether hooks are asked before a person is.
    pub permission: &'a dyn Fn(&ToolCall) -> bool,
    /// Returns whether hooks see prompts before a model does.
    pub prompts: &'a dyn Fn() -> bool,
    /// Whether hooks are told that the loop is about to end.
    pub stop: bool,
    /// How many times in a row hooks may keep the loop from ending.
    pub most_stop_blocks: u32,
    /// Returns the clients that answer hooks now.
    pub answering: &'a dyn Fn() -> ClientGuards,
}

impl HookNeeds<'_> {
    /// There are no hooks.
    pub const NONE: Self = HookNeeds {
        guard: &|_| false,
        permission: &|_| false,
        prompts: &|| false,
        stop: false,
        most_stop_blocks: 0,
        answering: &ClientGuards::default,
    };
}

/// What hooks decided about a call before it starts.
#[derive(Debug)]
pub struct Guarded {
    pub turn: TurnKey,
    pub call: ToolCallId,
    pub verdict: HookVerdict,
    /// The arguments that run, if hooks changed them.
    pub arguments: Option<Value>,
    /// What the model is told after the results of the turn.
    pub context: Vec<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

/// What the rules would ask a person, for hooks to answer first.
#[derive(Debug, Clone)]
pub struct HookPermission {
    pub turn: TurnKey,
    pub call: ToolCallId,
    pub request: PermissionRequest,
    pub origin: ToolOrigin,
    /// Whether a person can be asked if no hook decides.
    pub can_ask: bool,
    /// Whether a person has to decide: hooks may only deny.
    pub for_a_person: bool,
    pub asked_by: AskedBy,
}

/// Who wants a person to be asked, besides rules about the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AskedBy {
    #[default]
    Nobody,
    /// A rule of settings about the tool.
    ToolRule,
    /// A hook; the text names it and says why.
    Hook(Option<String>),
}

impl AskedBy {
    /// Adds that another hook wants a person to decide.
    #[must_use]
    pub(crate) fn and_hook(self, why: Option<String>) -> Self {
        let HookVerdict::Ask(why) = (match self {
            Self::Hook(own) => HookVerdict::Ask(own).meet(HookVerdict::Ask(why)),
            Self::Nobody | Self::ToolRule => HookVerdict::Ask(why),
        }) else {
            return Self::Hook(None);
        };
        Self::Hook(why)
    }
}

/// What hooks said when the loop was about to end.
#[derive(Debug)]
pub struct StopAnswered {
    pub turn: TurnKey,
    /// What the model has to do before the loop may end.
    pub block: Option<String>,
    /// The hooks that changed something.
    pub ended: Vec<HookEnd>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deny(text: &str) -> HookVerdict {
        HookVerdict::Deny(HookDenial {
            reason: text.to_owned(),
            told: text.to_owned(),
            stops: false,
        })
    }

    #[test]
    fn the_strictest_verdict_wins_and_all_reasons_are_kept() {
        use HookVerdict as V;
        let ask = |text: &str| V::Ask(Some(text.to_owned()));
        let table = [
            (V::None, V::None, V::None),
            (V::None, V::Allow, V::Allow),
            (V::Allow, ask("why"), ask("why")),
            (V::None, V::Ask(None), V::Ask(None)),
            (V::Ask(None), ask("why"), ask("why")),
            (ask("why"), deny("no"), deny("no")),
            (V::Allow, deny("no"), deny("no")),
        ];
        for (one, other, both) in table {
            assert_eq!(one.clone().meet(other.clone()), both);
            assert_eq!(other.meet(one), both, "the order does not matter");
        }
        assert_eq!(deny("a").meet(deny("b")), deny("a\nb"));
        assert_eq!(deny("a").meet(deny("a")), deny("a"));
        assert_eq!(ask("a").meet(ask("b")), ask("a\nb"));
    }
}
