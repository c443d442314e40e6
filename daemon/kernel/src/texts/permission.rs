//! Sentences about permissions: why something is denied or asked about, and how to go on.

use loopd_proto::permission::{AskReason, AskedBecause, PermissionRule};

/// The result of a call that needs a permission if nobody can be asked.
pub(crate) const COULD_NOT_ASK: &str =
    "Permission denied and could not request permission from user";

/// Returns the result of a call that needs a permission if nobody can be asked, with the reason if
/// approving everything would not cover it.
pub(crate) fn could_not_ask(because: Option<&AskedBecause>) -> String {
    let Some(because) = because else {
        return COULD_NOT_ASK.to_owned();
    };
    let rules = named(&because.rules);
    let why = match because.reason {
        AskReason::AskRule if rules.is_empty() => {
            "A rule in settings wants a person to approve this; approving everything does not cover it. \
             Do without it, or let a person approve it."
                .to_owned()
        }
        AskReason::AskRule => format!(
            "A rule in settings wants a person to approve this ({rules}); approving everything does not \
             cover it. Do without it, or let a person approve it."
        ),
        AskReason::MayBeDenied if rules.is_empty() => format!("{UNDECIDED} {PLAINLY}"),
        AskReason::MayBeDenied => format!("{UNDECIDED} The rule is {rules}. {PLAINLY}"),
        AskReason::Managed => "The settings of the app want a person to approve this.".to_owned(),
        AskReason::Hook => match &because.hook_message {
            Some(message) => format!("A person has to approve this. {message}"),
            None => "A hook wants a person to approve this.".to_owned(),
        },
    };
    format!("{COULD_NOT_ASK}. {why}")
}

const UNDECIDED: &str = "A rule may deny what this reaches, which is not known before it runs.";

const PLAINLY: &str = "Name the files in plain words and leave out what the rule denies; the tools `grep` \
                       and `glob` leave it out by themselves.";

/// Returns what people are told with a command that they are asked about.
pub(crate) fn warning_about(because: &AskedBecause) -> Option<String> {
    let rules = named(&because.rules);
    match because.reason {
        AskReason::MayBeDenied if rules.is_empty() => Some(UNDECIDED.to_owned()),
        AskReason::MayBeDenied => Some(format!("{UNDECIDED} The rule is {rules}.")),
        AskReason::AskRule | AskReason::Managed | AskReason::Hook => None,
    }
}

pub fn denied_by_rules(rules: &[PermissionRule]) -> String {
    let plural = if rules.len() > 1 { "s" } else { "" };
    format!("Permission denied by the rule{plural} {}.", named(rules))
}

/// What people are told of a call that a rule about its tool wants them to approve.
pub(crate) fn asked_by_tool_rule(tool: &str) -> String {
    format!("A rule in settings asks about every call of `{tool}`.")
}

fn named(rules: &[PermissionRule]) -> String {
    let named = |rule: &PermissionRule| match &rule.argument {
        Some(argument) => format!("{}({argument})", rule.kind),
        None => rule.kind.clone(),
    };
    let named: Vec<String> = rules.iter().map(named).collect();
    named.join(", ")
}
