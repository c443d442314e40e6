//! Reads what a person answers to a permission question.

use loopd_sdk::proto::permission::Approval;
use loopd_sdk::{PermissionAsked, PermissionDecision, PermissionRequest};

use super::{always_covers, can_hold_for_session, remedy, request_line, warning};
use crate::chat::PermissionText;

/// What a person is told whose answer is not understood.
const UNCLEAR: &str =
    "that is no answer: type y, or n, or n and the reason, which the agent is told";
const UNCLEAR_SESSION: &str =
    "that is no answer: type y, a, or n, or n and the reason, which the agent is told";
const ONLY_ONCE: &str = "this can only be allowed once: type y, or n, or n and the reason";

/// Returns what is shown of a request: the exact command, the diff or the arguments.
pub(super) fn text(asked: &PermissionAsked) -> PermissionText {
    let request = &asked.permission_request;
    let because = asked.asked_because.as_ref();
    let only_this = because.map(|because| because.session_approval);
    let for_session = only_this.unwrap_or_else(|| can_hold_for_session(request));
    let agent = asked.agent_id.as_ref();
    let agent = agent.map_or_else(String::new, |agent| format!("agent {}: ", agent.as_str()));
    let (title, exact, diff) = match request {
        PermissionRequest::Shell {
            full_command_text, ..
        } => (
            format!("{agent}run this command?"),
            Some(full_command_text.clone()),
            None,
        ),
        PermissionRequest::Write { diff, .. } => {
            (request_line(asked) + "?", None, Some(diff.clone()))
        }
        PermissionRequest::Mcp { args, .. } | PermissionRequest::CustomTool { args, .. } => {
            let args = args.as_ref().map(|args| format!("{args:#}"));
            (request_line(asked) + "?", args, None)
        }
        PermissionRequest::Hook { tool_args, .. } => {
            let args = tool_args.as_ref().map(|args| format!("{args:#}"));
            (request_line(asked) + "?", args, None)
        }
        PermissionRequest::Read { .. } | PermissionRequest::Url { .. } => {
            (request_line(asked) + "?", None, None)
        }
    };
    PermissionText {
        title: loopd_sdk::proto::visible::for_person(&title),
        exact,
        diff,
        warning: warning(request).map(str::to_owned),
        reason: remedy::reason(asked),
        for_session: match (for_session, only_this) {
            (true, Some(_)) => Some("in this session, exactly this"),
            (true, None) => Some("in this session"),
            (false, _) => None,
        },
        covers: always_covers(request).filter(|_| for_session && only_this.is_none()),
        here: lasting(request).filter(|_| for_session && only_this.is_none()),
    }
}

/// Returns the narrowest lasting approval that covers a request again.
fn lasting(request: &PermissionRequest) -> Option<Approval> {
    match request {
        PermissionRequest::Shell { commands, .. } => Some(Approval::Commands {
            command_identifiers: commands.iter().map(|it| it.identifier.clone()).collect(),
        }),
        PermissionRequest::Write { .. } => Some(Approval::Write {}),
        PermissionRequest::Read { .. } => Some(Approval::Read {}),
        PermissionRequest::Mcp {
            server_name,
            tool_name,
            ..
        } => Some(Approval::Mcp {
            server_name: server_name.clone(),
            tool_name: Some(tool_name.clone()),
        }),
        PermissionRequest::CustomTool { tool_name, .. } => Some(Approval::CustomTool {
            tool_name: tool_name.clone(),
        }),
        PermissionRequest::Url { .. } | PermissionRequest::Hook { .. } => None,
    }
}

/// Reads a line: a yes, an "always", or a no, which may have a reason after it. Fails with what is
/// wrong with the line; a yes with more words is none, because they may take it back.
pub(super) fn read(line: &str, for_session: bool) -> Result<PermissionDecision, &'static str> {
    let line = line.trim();
    let end = line.find(|c: char| !c.is_alphanumeric());
    let (word, rest) = line
        .split_at_checked(end.unwrap_or(line.len()))
        .unwrap_or((line, ""));
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || ",:;.-–—!".contains(c));
    match (word.to_lowercase().as_str(), rest) {
        ("y" | "yes", "") => Ok(PermissionDecision::ApproveOnce {}),
        ("a" | "always", "") if for_session => Ok(PermissionDecision::ApproveForSession {
            approval: None,
            domain: None,
        }),
        ("a" | "always", "") => Err(ONLY_ONCE),
        ("n" | "no", reason) => Ok(PermissionDecision::Reject {
            feedback: (!reason.is_empty()).then(|| reason.to_owned()),
        }),
        _ if for_session => Err(UNCLEAR_SESSION),
        _ => Err(UNCLEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_may_have_a_reason_and_a_yes_may_not() {
        let reject = |reason: Option<&str>| PermissionDecision::Reject {
            feedback: reason.map(str::to_owned),
        };
        let table = [
            ("y", Ok(PermissionDecision::ApproveOnce {})),
            (" YES ", Ok(PermissionDecision::ApproveOnce {})),
            ("yes!", Ok(PermissionDecision::ApproveOnce {})),
            ("n", Ok(reject(None))),
            ("No.", Ok(reject(None))),
            ("no use cp instead", Ok(reject(Some("use cp instead")))),
            ("n, it is not ours", Ok(reject(Some("it is not ours")))),
            ("no - a: b", Ok(reject(Some("a: b")))),
            ("yes but not twice", Err(UNCLEAR_SESSION)),
            ("nothing", Err(UNCLEAR_SESSION)),
            ("never", Err(UNCLEAR_SESSION)),
            ("", Err(UNCLEAR_SESSION)),
            ("what?", Err(UNCLEAR_SESSION)),
        ];
        for (line, expected) in table {
            assert_eq!(read(line, true), expected, "{line:?}");
        }
        assert_eq!(read("a", false), Err(ONLY_ONCE));
        assert_eq!(read("ja", false), Err(UNCLEAR));
    }
}
