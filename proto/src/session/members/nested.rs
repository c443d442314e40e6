//! The members of objects inside of a request. One that is a mistake for one that is known is refused: a list
//! of tools under a name that nobody reads would narrow nothing.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{NOT_KNOWN, Sent, WithoutEffect, asks_for_nothing, read};
use crate::misspelt::meant;

/// How objects are found below a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The member is the object.
    Itself,
    /// The member is a list of objects.
    Items,
    /// The members of this member of it are the objects.
    Values(&'static str),
}

/// What becomes of a member that is not simply used.
#[derive(Debug, Clone, Copy)]
pub enum NestedUse {
    WithoutEffect(fn(&Value) -> bool, &'static str),
    Refused(fn(&Value) -> bool, &'static str),
}

/// The objects below a member of a request.
#[derive(Debug, Clone, Copy)]
pub struct NestedMembers {
    pub member: &'static str,
    pub place: Place,
    pub known: &'static [&'static str],
    pub others: &'static [(&'static str, NestedUse)],
}

const fn plain(
    member: &'static str,
    place: Place,
    known: &'static [&'static str],
) -> NestedMembers {
    NestedMembers {
        member,
        place,
        known,
        others: &[],
    }
}

const PROVIDER: &[&str] = &[
    "apiKey",
    "azure",
    "baseUrl",
    "bearerToken",
    "hasBearerTokenProvider",
    "headers",
    "maxOutputTokens",
    "maxPromptTokens",
    "modelId",
    "name",
    "secretWithheld",
    "type",
    "wireApi",
    "wireModel",
];

fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false))
}

fn is_one_of(value: &Value, words: &[&str]) -> bool {
    is_nothing(value) || value.as_str().is_some_and(|text| words.contains(&text))
}

const OF_PROVIDER: &[(&str, NestedUse)] = &[
    (
        "apiKeyCommand",
        NestedUse::Refused(is_nothing, "no command is run for a key; give it as apiKey"),
    ),
    (
        "modelProvider",
        NestedUse::WithoutEffect(is_nothing, "requests do not depend on who made the model"),
    ),
    (
        "transport",
        NestedUse::WithoutEffect(|value| is_one_of(value, &["http"]), "requests go by HTTP"),
    ),
];

/// The objects whose members are checked.
pub const NESTED: &[NestedMembers] = &[
    plain(
        "autopilot",
        Place::Itself,
        &["continuationEnabled", "loopdUnattended", "maxContinues"],
    ),
    plain("commands", Place::Items, &["description", "name"]),
    NestedMembers {
        member: "customAgents",
        place: Place::Items,
        known: &[
            "description",
            "displayName",
            "hooks",
            "infer",
            "mcpServers",
            "model",
            "name",
            "prompt",
            "reasoningEffort",
            "skills",
            "tools",
        ],
        others: &[(
            "modelPolicy",
            NestedUse::Refused(
                |value| is_one_of(value, &["preferred"]),
                "a model cannot be required here: where it cannot answer, that of the session does",
            ),
        )],
    },
    plain("defaultAgent", Place::Itself, &["excludedTools"]),
    plain(
        "infiniteSessions",
        Place::Itself,
        &[
            "backgroundCompactionThreshold",
            "bufferExhaustionThreshold",
            "enabled",
        ],
    ),
    plain("memory", Place::Itself, &["enabled"]),
    plain(
        "models",
        Place::Items,
        &[
            "capabilities",
            "id",
            "maxContextWindowTokens",
            "maxOutputTokens",
            "maxPromptTokens",
            "modelId",
            "name",
            "provider",
            "wireModel",
        ],
    ),
    NestedMembers {
        member: "provider",
        place: Place::Itself,
        known: PROVIDER,
        others: OF_PROVIDER,
    },
    NestedMembers {
        member: "providers",
        place: Place::Items,
        known: PROVIDER,
        others: OF_PROVIDER,
    },
    plain(
        "subagents",
        Place::Itself,
        &["agents", "disabledSubagents", "maxConcurrency", "maxDepth"],
    ),
    plain(
        "subagents",
        Place::Values("agents"),
        &["contextTier", "effortLevel", "model"],
    ),
    plain(
        "systemMessage",
        Place::Itself,
        &["content", "mode", "sections"],
    ),
    plain(
        "systemMessage",
        Place::Values("sections"),
        &["action", "content"],
    ),
    NestedMembers {
        member: "tools",
        place: Place::Items,
        known: &[
            // Models always see all tools.
            "defer",
            "description",
            "isTerminal",
            "metadata",
            "name",
            "overridesBuiltInTool",
            "parameters",
            "readOnly",
            "skipPermission",
        ],
        others: &[],
    },
];

/// Checks the members of the objects below a member.
pub(super) fn check(
    member: &str,
    value: &RawValue,
    without: &mut Vec<WithoutEffect>,
) -> Result<(), String> {
    for nested in NESTED.iter().filter(|nested| nested.member == member) {
        match nested.place {
            Place::Itself => nested.object(member, value, without)?,
            Place::Items => {
                let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
                for (at, item) in items.into_iter().enumerate() {
                    nested.object(&format!("{member}[{at}]"), item, without)?;
                }
            }
            Place::Values(below) => {
                let sent: Sent<'_> = serde_json::from_str(value.get()).unwrap_or_default();
                let Some(values) = sent.get(below) else {
                    continue;
                };
                let values: Sent<'_> = serde_json::from_str(values.get()).unwrap_or_default();
                for (name, value) in values {
                    nested.object(&format!("{member}.{below}.{name}"), value, without)?;
                }
            }
        }
    }
    Ok(())
}

impl NestedMembers {
    fn object(
        &self,
        place: &str,
        value: &RawValue,
        without: &mut Vec<WithoutEffect>,
    ) -> Result<(), String> {
        // What is no object is refused by whoever reads it.
        let sent: Sent<'_> = serde_json::from_str(value.get()).unwrap_or_default();
        for (name, value) in sent {
            if self.known.contains(&name.as_ref()) {
                continue;
            }
            let value = read(value);
            let mut others = self.others.iter();
            match others.find(|(other, _)| *other == name) {
                Some((_, NestedUse::WithoutEffect(unless, why))) => {
                    if !unless(&value) {
                        let name = format!("{place}.{name}");
                        without.push(WithoutEffect { name, why });
                    }
                }
                Some((_, NestedUse::Refused(unless, why))) => {
                    if !unless(&value) {
                        return Err(format!("{place}.{name}: {why}"));
                    }
                }
                None if asks_for_nothing(&name, &value) => {}
                None => {
                    let known = self.known.iter().copied();
                    let known = known.chain(self.others.iter().map(|(other, _)| *other));
                    if let Some(meant) = meant(&name, known) {
                        return Err(format!(
                            "{place}.{name}: there is no such member; did you mean `{meant}`?"
                        ));
                    }
                    let name = format!("{place}.{name}");
                    without.push(WithoutEffect {
                        name,
                        why: NOT_KNOWN,
                    });
                }
            }
        }
        Ok(())
    }
}
