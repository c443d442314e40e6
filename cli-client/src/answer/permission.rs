//! Reads what a person answers to a permission question.

use loopd_sdk::PermissionDecision;

/// What a person is told whose answer is not understood.
const UNCLEAR: &str =
    "that is no answer: type y, or n, or n and the reason, which the agent is told";
const UNCLEAR_SESSION: &str =
    "that is no answer: type y, a, or n, or n and the reason, which the agent is told";
const ONLY_ONCE: &str = "this can only be allowed once: type y, or n, or n and the reason";

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
