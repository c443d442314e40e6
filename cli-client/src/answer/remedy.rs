//! How something that needs a permission can be allowed, and why a person is asked where everything is
//! approved.

use loopd_sdk::proto::visible::for_person;
use loopd_sdk::{AskReason, AskedBecause, PermissionAsked, PermissionRequest, PermissionRule};

/// Says why a person is asked, if approving everything does not cover it.
pub(super) fn reason(asked: &PermissionAsked) -> Option<String> {
    let because = asked.asked_because.as_ref()?;
    let rules = named(&because.rules);
    match because.reason {
        AskReason::AskRule if rules.is_empty() => {
            Some("a rule in settings asks about it".to_owned())
        }
        AskReason::AskRule => Some(format!("a rule in settings asks about it: {rules}")),
        AskReason::Managed => Some("the settings of an app want you to decide".to_owned()),
        AskReason::Hook => {
            let message = for_person(because.hook_message.as_ref()?);
            // A request that has a place for it says so itself.
            let said = super::warning(&asked.permission_request);
            let is_said = said.is_some_and(|said| for_person(said).contains(&message));
            (!is_said).then_some(message)
        }
        // The request says so itself.
        AskReason::MayBeDenied => None,
    }
}

fn named(rules: &[PermissionRule]) -> String {
    let named = |rule: &PermissionRule| match &rule.argument {
        Some(argument) => format!("{}({argument})", rule.kind),
        None => rule.kind.clone(),
    };
    let named: Vec<String> = rules.iter().map(named).collect();
    named.join(", ")
}

/// Says how to go on with something that no option covers.
fn wanted_by(because: &AskedBecause) -> String {
    let rules = for_person(&named(&because.rules));
    let rules = if rules.is_empty() {
        String::new()
    } else {
        format!(" ({rules})")
    };
    match because.reason {
        AskReason::AskRule => format!(
            "a rule in settings asks about it{rules}, and neither --allow-tool nor --yolo answers that: \
             approve it at a terminal, or change the rule"
        ),
        AskReason::MayBeDenied => format!(
            "a rule may deny it{rules}, which is not known before it runs, and neither --allow-tool nor \
             --yolo answers that: approve it at a terminal, or let it name its files in plain words"
        ),
        AskReason::Managed => {
            "the settings of an app want a person to decide: approve it at a terminal".to_owned()
        }
        AskReason::Hook => match &because.hook_message {
            Some(message) => format!(
                "a person has to approve it, at a terminal: {}",
                for_person(message)
            ),
            None => "approve it at a terminal; a hook wants a person to decide".to_owned(),
        },
    }
}

/// Says how the request can be allowed.
pub(super) fn remedy(asked: &PermissionAsked, planning: bool) -> String {
    if let Some(because) = &asked.asked_because {
        return wanted_by(because);
    }
    let request = &asked.permission_request;
    match request {
        PermissionRequest::Shell { .. } if planning => format!(
            "in plan mode commands only look, whatever is allowed: allow it to look with --allow-tool '{}', or \
             leave plan mode with --mode interactive",
            for_person(&rule(request))
        ),
        PermissionRequest::Write { .. }
        | PermissionRequest::Mcp { .. }
        | PermissionRequest::CustomTool { .. }
            if planning =>
        {
            "in plan mode no rule and no option allows it: leave plan mode with --mode interactive"
                .to_owned()
        }
        PermissionRequest::Write {
            can_offer_session_approval: false,
            ..
        }
        | PermissionRequest::Shell {
            writes_protected: Some(true),
            ..
        } => "allow everything with --yolo; no rule covers a protected file".to_owned(),
        PermissionRequest::Hook { .. } => {
            "allow it at a terminal; a hook wants a person to decide".to_owned()
        }
        _ => format!(
            "allow it with --allow-tool '{}', or everything with --yolo",
            for_person(&rule(request))
        ),
    }
}

/// Returns the `--allow-tool` rule that would allow the request.
fn rule(request: &PermissionRequest) -> String {
    match request {
        PermissionRequest::Shell {
            commands,
            can_offer_session_approval: true,
            ..
        } => match commands.as_slice() {
            [command] => format!("shell({})", command.identifier),
            _ => "shell".to_owned(),
        },
        PermissionRequest::Shell { .. } => "shell".to_owned(),
        PermissionRequest::Write { file_name, .. } => format!("write({file_name})"),
        PermissionRequest::Read { path, .. } => format!("read({path})"),
        PermissionRequest::Url { url, .. } => format!("url({url})"),
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => format!("mcp({server_name}/{tool_name})"),
        PermissionRequest::CustomTool { tool_name, .. }
        | PermissionRequest::Hook { tool_name, .. } => format!("custom-tool({tool_name})"),
    }
}
