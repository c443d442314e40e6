//! The options that limit what a session may use, and what is said of it.

use clap::Args as Group;
use loopd_sdk::{LimitKind, Metrics, SessionId, SessionLimits};

/// The limits of the command line.
#[derive(Debug, Clone, Default, Group)]
pub(crate) struct LimitOptions {
    /// Stop when the session and its agents have cost so many US dollars, by the prices in config.toml.
    ///
    /// This and --budget-tokens hold for the session: what it has used before counts, too.
    #[arg(long, global = true, value_name = "DOLLARS", value_parser = amount)]
    budget_usd: Option<f64>,

    /// Stop when the session and its agents have used so many tokens.
    #[arg(long, global = true, value_name = "N")]
    budget_tokens: Option<u64>,
}

impl LimitOptions {
    /// Returns the first of these options that is given.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--budget-usd", self.budget_usd.is_some()),
            ("--budget-tokens", self.budget_tokens.is_some()),
        ];
        given.into_iter().find(|(_, is)| *is).map(|(name, _)| name)
    }

    /// Returns the limits for the session; `None` if the command line has none.
    pub(crate) fn limits(&self) -> Option<SessionLimits> {
        let limits = SessionLimits {
            max_tokens: self.budget_tokens,
            max_cost_usd: self.budget_usd,
            ..SessionLimits::default()
        };
        (limits != SessionLimits::default()).then_some(limits)
    }
}

/// Says how a session goes on that has reached a limit, in the words of the command line. `told` is the
/// message of the daemon, whose first sentence says what is used.
pub(crate) fn reached(kind: LimitKind, told: &str, session: &SessionId) -> String {
    let option = match kind {
        LimitKind::Tokens => "--budget-tokens",
        LimitKind::Cost => "--budget-usd",
        LimitKind::Credits | LimitKind::Turns | LimitKind::Time => return told.to_owned(),
    };
    let used = told.split_inclusive(". ").next().unwrap_or(told);
    format!(
        "{}. To go on, give it a higher {option}, as in: loop resume {session} {option} …",
        used.trim_end_matches(['.', ' '])
    )
}

fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
        Ok(_) | Err(_) => Err(format!("`{text}` is not a number from 0 on")),
    }
}

/// Says what a session has used, and what is left, a line for each unit.
pub(crate) fn report(metrics: &Metrics) -> String {
    let used = &metrics.used;
    let limits = metrics.session_limits.unwrap_or_default();
    let line = |used: String, unit: &str, left: Option<String>| match left {
        Some(left) => format!("{used:>12} {unit}, {left} left\n"),
        None => format!("{used:>12} {unit}\n"),
    };
    let mut text = line(
        used.tokens.to_string(),
        "tokens",
        limits
            .max_tokens
            .map(|max| max.saturating_sub(used.tokens).to_string()),
    );
    text += &line(
        used.turns.to_string(),
        "model calls",
        limits
            .max_turns
            .map(|max| max.saturating_sub(used.turns).to_string()),
    );
    if used.estimated_calls > 0 {
        text += &line(
            used.estimated_calls.to_string(),
            "of these calls with estimated tokens: their providers did not say what they used",
            None,
        );
    }
    let amounts = [
        ("US dollars", used.cost_usd, limits.max_cost_usd, 4),
        ("AI credits", used.ai_credits, limits.max_ai_credits, 2),
        ("seconds", used.seconds, limits.timeout_seconds, 1),
    ];
    for (unit, used, max, digits) in amounts {
        if used > 0.0 || max.is_some() {
            let left = max.map(|max| format!("{:.digits$}", (max - used).max(0.0)));
            text += &line(format!("{used:.digits$}"), unit, left);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_amounts_are_refused() {
        assert_eq!(amount("0.5"), Ok(0.5));
        for wrong in ["-1", "NaN", "inf", "", "1,5", "much"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_is_told_with_its_option() {
        let told =
            "The session has used 5 of the 4 tokens it may use. To go on, resume it with more.";
        let session = SessionId::from("abc");
        assert_eq!(
            reached(LimitKind::Tokens, told, &session),
            "The session has used 5 of the 4 tokens it may use. To go on, give it a higher --budget-tokens, as in: \
             loop resume abc --budget-tokens …"
        );
        let cost =
            "The session has used 1.51 of the 1.00 US dollars it may use. To go on, resume it.";
        assert!(
            reached(LimitKind::Cost, cost, &session)
                .starts_with("The session has used 1.51 of the 1.00 US")
        );
        assert_eq!(reached(LimitKind::Turns, told, &session), told);
    }

    #[test]
    fn without_an_option_there_are_no_limits() {
        assert_eq!(LimitOptions::default().limits(), None);
        let options = LimitOptions {
            budget_tokens: Some(3),
            ..LimitOptions::default()
        };
        assert_eq!(options.limits().and_then(|it| it.max_tokens), Some(3));
    }
}
