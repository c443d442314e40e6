//! The members that answers of hooks may have, by the event. What an answer says in other words is told to
//! people; what decides or takes something out must not be lost by that.

use loopd_proto::misspelt::{nearest, plain};
use loopd_proto::visible::visible;
use serde_json::Value;

use super::output::HookOutput;
use crate::discovery::hooks::HookKind;

/// What a member has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Flag,
    Text,
    Number,
    /// Whoever reads the member checks it.
    Checked,
    /// The formats know the member, and nothing here does what it asks for.
    WithoutEffect,
}

type Member = (&'static str, Form);

/// What every answer may have.
const COMMON: [Member; 8] = [
    ("continue", Form::Flag),
    ("stopReason", Form::Text),
    ("suppressOutput", Form::Flag),
    ("systemMessage", Form::Text),
    ("hookSpecificOutput", Form::Checked),
    ("hookEventName", Form::Text),
    ("terminalSequence", Form::WithoutEffect),
    ("async", Form::WithoutEffect),
];

const CONTEXT: Member = ("additionalContext", Form::Text);
const BLOCK: [Member; 2] = [("decision", Form::Checked), ("reason", Form::Text)];
const PERMISSION: [Member; 2] = [
    ("permissionDecision", Form::Checked),
    ("permissionDecisionReason", Form::Text),
];

/// The members that take something out of a result.
pub(super) const REDACTING: [&str; 4] = [
    "modifiedResult",
    "updatedToolOutput",
    "updatedMCPToolOutput",
    "suppressOutput",
];

/// The members that decide about a call or change it.
const DECIDING: [&str; 7] = [
    "permissionDecision",
    "decision",
    "behavior",
    "modifiedArgs",
    "updatedInput",
    "continue",
    "metaToUse",
];

/// Words in the names of members that seem to hold another result.
const LIKE_RESULTS: [&str; 6] = ["result", "output", "redact", "mask", "censor", "sanit"];

/// What the answers to one event may have beside the common members.
fn own(kind: HookKind) -> Vec<Member> {
    let groups: &[&[Member]] = match kind {
        HookKind::PreToolUse => &[
            &PERMISSION,
            &BLOCK,
            &[CONTEXT],
            &[
                ("modifiedArgs", Form::Checked),
                ("updatedInput", Form::Checked),
                ("interrupt", Form::Flag),
                ("message", Form::Text),
                ("updatedPermissions", Form::WithoutEffect),
            ],
        ],
        HookKind::PermissionRequest => &[
            &PERMISSION,
            &BLOCK,
            &[
                ("behavior", Form::Checked),
                ("message", Form::Text),
                ("interrupt", Form::Flag),
                ("modifiedArgs", Form::Checked),
                ("updatedInput", Form::Checked),
                ("updatedPermissions", Form::WithoutEffect),
                ("additionalContext", Form::WithoutEffect),
            ],
        ],
        HookKind::PreMcpToolCall => &[&PERMISSION, &BLOCK, &[("metaToUse", Form::Checked)]],
        HookKind::PostToolUse => &[
            &BLOCK,
            &[CONTEXT],
            &[
                ("modifiedResult", Form::Checked),
                ("updatedToolOutput", Form::Checked),
                ("updatedMCPToolOutput", Form::Checked),
                ("classifierContext", Form::WithoutEffect),
            ],
        ],
        HookKind::PostToolUseFailure | HookKind::Notification | HookKind::SubagentStart => {
            &[&[CONTEXT]]
        }
        HookKind::UserPromptSubmitted => &[
            &BLOCK,
            &[CONTEXT],
            &[
                ("modifiedPrompt", Form::Checked),
                // The prompt is in no message about the block.
                ("suppressOriginalPrompt", Form::Flag),
                ("sessionTitle", Form::WithoutEffect),
            ],
        ],
        HookKind::UserPromptTransformed => &[&[("modifiedTransformedPrompt", Form::Checked)]],
        HookKind::SessionStart => &[
            &[CONTEXT],
            &[
                ("modifiedConfig", Form::Checked),
                ("initialUserMessage", Form::WithoutEffect),
                ("sessionTitle", Form::WithoutEffect),
                ("watchPaths", Form::WithoutEffect),
                ("reloadSkills", Form::WithoutEffect),
            ],
        ],
        HookKind::SessionEnd => &[&[
            ("cleanupActions", Form::WithoutEffect),
            ("sessionSummary", Form::WithoutEffect),
        ]],
        HookKind::AgentStop | HookKind::SubagentStop => &[
            &BLOCK,
            &[
                ("modifiedResponse", Form::Checked),
                ("additionalContext", Form::WithoutEffect),
            ],
        ],
        HookKind::PreCompact => &[&BLOCK, &[CONTEXT]],
        HookKind::ErrorOccurred => &[&[
            ("errorHandling", Form::Checked),
            ("retryCount", Form::Number),
            ("userNotification", Form::Checked),
        ]],
    };
    groups.concat()
}

/// Whether an answer may end what goes on with `continue: false`.
fn may_stop(kind: HookKind) -> bool {
    match kind {
        HookKind::PreToolUse
        | HookKind::PermissionRequest
        | HookKind::PreMcpToolCall
        | HookKind::PostToolUse
        | HookKind::PostToolUseFailure
        | HookKind::UserPromptSubmitted
        | HookKind::SessionStart
        | HookKind::SubagentStart
        | HookKind::AgentStop
        | HookKind::SubagentStop
        | HookKind::PreCompact => true,
        HookKind::UserPromptTransformed
        | HookKind::SessionEnd
        | HookKind::ErrorOccurred
        | HookKind::Notification => false,
    }
}

/// A member of an answer that does not do what it seems to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OddMember {
    name: String,
    why: Oddity,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Oddity {
    Unknown {
        nearest: Option<&'static str>,
    },
    /// It does not hold what it has to; the text says what that is.
    WrongForm {
        wanted: &'static str,
        found: String,
    },
    WithoutEffect,
}

impl OddMember {
    /// Says what is wrong with the answer.
    pub(super) fn told(&self) -> String {
        let name = visible(&self.name);
        match &self.why {
            Oddity::Unknown { nearest: None } => {
                format!("its answer has the member `{name}`, which says nothing to loopd here")
            }
            Oddity::Unknown {
                nearest: Some(nearest),
            } => format!(
                "its answer has the member `{name}`, which says nothing to loopd here; the nearest that does \
                 is `{nearest}`"
            ),
            Oddity::WrongForm { wanted, found } => {
                format!(
                    "the member `{name}` of its answer is not {wanted} but {}",
                    visible(found)
                )
            }
            Oddity::WithoutEffect => {
                format!("the member `{name}` of its answer has no effect here")
            }
        }
    }

    /// Whether the member seems to be one of these.
    fn seems_one_of(&self, names: &[&str]) -> bool {
        match &self.why {
            Oddity::Unknown { nearest } => nearest.is_some_and(|nearest| names.contains(&nearest)),
            Oddity::WrongForm { .. } => names.contains(&self.name.as_str()),
            Oddity::WithoutEffect => false,
        }
    }

    /// Whether the member seems to decide about a call or to change it.
    pub(super) fn seems_to_decide(&self) -> bool {
        self.seems_one_of(&DECIDING)
    }

    /// Whether the member seems to take something out of a result.
    pub(super) fn seems_to_redact(&self) -> bool {
        let is_like_a_result = || {
            let name = plain(&self.name);
            LIKE_RESULTS.iter().any(|word| name.contains(word))
        };
        self.seems_one_of(&REDACTING)
            || (matches!(self.why, Oddity::Unknown { .. }) && is_like_a_result())
    }

    /// Whether the member says no in words that are not known for this event.
    pub(super) fn says_no(&self, output: &HookOutput) -> bool {
        const NO: [&str; 6] = ["deny", "denied", "block", "blocked", "no", "false"];
        const ASKS_FOR_NO: [&str; 4] = ["block", "blocked", "deny", "denied"];
        if !matches!(self.why, Oddity::Unknown { .. } | Oddity::WrongForm { .. }) {
            return false;
        }
        let name = plain(&self.name);
        let asks_for_no = ASKS_FOR_NO.contains(&name.as_str());
        let decides = asks_for_no
            || [
                "decision",
                "permission",
                "behavior",
                "behaviour",
                "continue",
                "allow",
                "approve",
            ]
            .iter()
            .any(|word| name.contains(word));
        let mut values = output.all(&self.name);
        decides
            && values.any(|value| match value {
                Value::Bool(set) => *set == asks_for_no,
                Value::String(text) => NO.contains(&plain(text).as_str()),
                _ => false,
            })
    }
}

/// Returns what an answer says that does not do what it seems to ask for.
pub(super) fn odd_members(kind: HookKind, output: &HookOutput) -> Vec<OddMember> {
    if output.members.is_empty() {
        return Vec::new();
    }
    let mut known = own(kind);
    known.extend(COMMON);
    let mut odd: Vec<OddMember> = Vec::new();
    let members = output.levels().flatten();
    for (name, value) in members.filter(|(_, value)| !value.is_null()) {
        let why = match known.iter().find(|(known, _)| known == name) {
            None => Some(Oddity::Unknown {
                nearest: nearest(name, known.iter().map(|(known, _)| *known)),
            }),
            Some((_, form)) => misfit(kind, name, *form, value),
        };
        let why = why.map(|why| OddMember {
            name: name.clone(),
            why,
        });
        odd.extend(why.filter(|it| !odd.contains(it)));
    }
    odd
}

/// Returns what is wrong with the value of a known member.
fn misfit(kind: HookKind, name: &str, form: Form, value: &Value) -> Option<Oddity> {
    let wrong = |wanted| {
        let found: String = value.to_string().chars().take(120).collect();
        Some(Oddity::WrongForm { wanted, found })
    };
    match form {
        Form::Flag if !value.is_boolean() => wrong("true or false"),
        Form::Text if !value.is_string() => wrong("a text"),
        Form::Number if !value.is_u64() => wrong("a whole number"),
        Form::Flag if name == "continue" && *value == Value::Bool(false) && !may_stop(kind) => {
            Some(Oddity::WithoutEffect)
        }
        Form::Flag | Form::Text | Form::Number | Form::Checked => None,
        Form::WithoutEffect => Some(Oddity::WithoutEffect),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn odd(kind: HookKind, answer: Value) -> Vec<String> {
        let output = HookOutput::of(Some(answer)).unwrap_or_default();
        let odd = odd_members(kind, &output);
        odd.iter().map(OddMember::told).collect()
    }

    #[test]
    fn what_the_formats_define_is_not_odd() {
        let table = [
            (
                HookKind::PreToolUse,
                json!({"continue": true, "hookSpecificOutput": {"hookEventName": "PreToolUse",
                    "permissionDecision": "allow", "permissionDecisionReason": "x", "updatedInput": {}}}),
            ),
            (
                HookKind::PermissionRequest,
                json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest",
                    "decision": {"behavior": "deny", "message": "no", "interrupt": true}}}),
            ),
            (
                HookKind::PostToolUse,
                json!({"suppressOutput": false, "systemMessage": "m", "decision": "block", "reason": "r",
                    "hookSpecificOutput": {"additionalContext": "c", "updatedMCPToolOutput": [1]}}),
            ),
            (
                HookKind::UserPromptSubmitted,
                json!({"modifiedPrompt": "p", "hookSpecificOutput": {"suppressOriginalPrompt": true}}),
            ),
            (
                HookKind::AgentStop,
                json!({"decision": "block", "reason": "more", "stopReason": "s"}),
            ),
            (
                HookKind::ErrorOccurred,
                json!({"errorHandling": "retry", "retryCount": 2}),
            ),
            (
                HookKind::Notification,
                json!({"additionalContext": "c", "reason": null}),
            ),
        ];
        for (kind, answer) in table {
            assert_eq!(
                odd(kind, answer.clone()),
                Vec::<String>::new(),
                "{kind} {answer}"
            );
        }
    }

    #[test]
    fn what_is_not_understood_is_told_with_the_nearest_name() {
        let table = [
            (
                HookKind::PostToolUse,
                json!({"modifedResult": {}}),
                "`modifiedResult`",
            ),
            (
                HookKind::PostToolUse,
                json!({"suppress_output": true}),
                "`suppressOutput`",
            ),
            (
                HookKind::PostToolUse,
                json!({"suppressOutput": "yes"}),
                "`suppressOutput` of its answer is not true or false but \"yes\"",
            ),
            (
                HookKind::UserPromptSubmitted,
                json!({"permissionDecision": "deny"}),
                "`permissionDecision`, which says nothing to loopd here; the nearest that does is `decision`",
            ),
            (
                HookKind::SessionStart,
                json!({"watchPaths": []}),
                "`watchPaths` of its answer has no effect",
            ),
            (
                HookKind::Notification,
                json!({"continue": false}),
                "`continue` of its answer has no effect",
            ),
            (
                HookKind::AgentStop,
                json!({"additional_context": 1}),
                "`additionalContext`",
            ),
            (
                HookKind::SessionStart,
                json!({"additionalContext": 1}),
                "is not a text but 1",
            ),
        ];
        for (kind, answer, expected) in table {
            let told = odd(kind, answer.clone());
            assert_eq!(told.len(), 1, "{kind} {answer} {told:?}");
            assert!(told.concat().contains(expected), "{kind} {answer} {told:?}");
        }
    }

    #[test]
    fn a_wish_to_take_something_out_is_recognised() {
        let seems = |answer: Value| {
            let output = HookOutput::of(Some(answer)).unwrap_or_default();
            let odd = odd_members(HookKind::PostToolUse, &output);
            odd.iter().any(OddMember::seems_to_redact)
        };
        for redacts in [
            json!({"modifedResult": {"textResultForLlm": "x"}}),
            json!({"updatedToolOuput": "x"}),
            json!({"toolOutput": "x"}),
            json!({"redacted": "x"}),
            json!({"suppressOutput": "yes"}),
            json!({"hookSpecificOutput": {"updated_tool_output": "x"}}),
        ] {
            assert!(seems(redacts.clone()), "{redacts}");
        }
        for not in [
            json!({"colour": "red"}),
            json!({"additionalContext": 1}),
            json!({"contineu": false}),
        ] {
            assert!(!seems(not.clone()), "{not}");
        }
    }
}
