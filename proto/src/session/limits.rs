//! The usage limits of a session. They hold for the session and all sub-agents below it together.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use crate::json::group;

/// The usage limits of a session. `maxAiCredits` is a member of the public schema; the others are our
/// own.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionLimits {
    /// Credits of the Copilot API; known only after each model call.
    #[serde(deserialize_with = "not_negative")]
    pub max_ai_credits: Option<f64>,
    /// Input and output tokens.
    pub max_tokens: Option<u64>,
    /// US dollars, by the prices in `config.toml`.
    #[serde(deserialize_with = "not_negative")]
    pub max_cost_usd: Option<f64>,
    /// Model calls.
    pub max_turns: Option<u64>,
    /// Seconds in which the session or its sub-agents work.
    #[serde(deserialize_with = "not_negative")]
    pub timeout_seconds: Option<f64>,
}

/// The members of [`SessionLimits`].
const MEMBERS: [&str; 5] = [
    "maxAiCredits",
    "maxTokens",
    "maxCostUsd",
    "maxTurns",
    "timeoutSeconds",
];

/// The `errorType` of an error that says that a limit is reached.
pub const LIMIT_ERROR: &str = "session_limits";

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    Credits,
    Tokens,
    Cost,
    Turns,
    Time,
}

impl LimitKind {
    const ALL: [Self; 5] = [
        Self::Credits,
        Self::Tokens,
        Self::Cost,
        Self::Turns,
        Self::Time,
    ];

    /// Returns the member of `sessionLimits`.
    pub fn member(self) -> &'static str {
        match self {
            Self::Credits => "maxAiCredits",
            Self::Tokens => "maxTokens",
            Self::Cost => "maxCostUsd",
            Self::Turns => "maxTurns",
            Self::Time => "timeoutSeconds",
        }
    }

    /// Returns the `errorCode` of the error that says that this limit is reached.
    pub fn code(self) -> &'static str {
        match self {
            Self::Credits => "session_limits_exhausted",
            Self::Tokens => "session_limits_tokens",
            Self::Cost => "session_limits_cost",
            Self::Turns => "session_limits_turns",
            Self::Time => "session_limits_time",
        }
    }

    /// Returns the limit that an error says to be reached.
    pub fn of_error(error_type: &str, code: Option<&str>) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| error_type == LIMIT_ERROR && code == Some(kind.code()))
    }
}

fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let number = Option::<f64>::deserialize(deserializer)?;
    if number.is_some_and(|number| !number.is_finite() || number < 0.0) {
        return Err(serde::de::Error::custom("must be a number from 0 on"));
    }
    Ok(number)
}

/// Refuses a limit that is not known, because nobody would keep it.
pub(crate) fn refuse_unknown<E: serde::de::Error>(object: &RawValue) -> Result<(), E> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Limits {
        #[serde(default)]
        session_limits: Option<Map<String, Value>>,
    }
    let limits: Limits = group(object)?;
    for name in limits.session_limits.iter().flat_map(Map::keys) {
        if !MEMBERS.contains(&name.as_str()) {
            return Err(E::custom(format!(
                "sessionLimits.{name}: there is no such limit; the limits are {}",
                MEMBERS.join(", ")
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_names_its_limit_and_nothing_else_does() {
        for kind in LimitKind::ALL {
            assert_eq!(
                LimitKind::of_error(LIMIT_ERROR, Some(kind.code())),
                Some(kind)
            );
            assert_eq!(LimitKind::of_error("query", Some(kind.code())), None);
            assert!(MEMBERS.contains(&kind.member()));
        }
        assert_eq!(LimitKind::of_error(LIMIT_ERROR, None), None);
    }

    #[test]
    fn a_limit_is_written_as_it_was_read() {
        let limits = json!({"maxAiCredits": 1.5, "maxTokens": 7, "maxCostUsd": 0.25, "maxTurns": 3,
            "timeoutSeconds": 60.0});
        let read: SessionLimits = serde_json::from_value(limits.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), limits);
        for wrong in [
            json!({"maxCostUsd": -0.1}),
            json!({"maxTokens": -1}),
            json!({"maxTokens": 1.5}),
            json!({"maxTurns": "3"}),
            json!({"timeoutSeconds": "NaN"}),
        ] {
            serde_json::from_value::<SessionLimits>(wrong).unwrap_err();
        }
    }
}
