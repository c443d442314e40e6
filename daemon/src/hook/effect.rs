//! What the answer of a hook that is tried would come to in a session, in words.

use super::guard::read_guard;
use super::output::{HookFailure, HookOutput};
use super::prompt;
use super::result::review_effect;
use super::stop;
use crate::discovery::hooks::{HookDefinition, HookKind, OnFailure};
use loopd_kernel::hook::HookVerdict;

/// Returns what a hook would do; `None` if it would change nothing.
pub(super) fn of(
    definition: &HookDefinition,
    result: &Result<HookOutput, HookFailure>,
) -> Option<String> {
    let kind = definition.kind;
    let output = result
        .as_ref()
        .map_err(|failure| failure.cause().to_owned());
    let effect = output.and_then(|output| said(kind, output));
    match effect {
        Ok(effect) => effect,
        Err(cause) if kind.is_guard() && definition.on_failure != Some(OnFailure::Continue) => {
            Some(format!("denies the call, because the hook failed: {cause}"))
        }
        // That it failed is said already.
        Err(_) if result.is_err() => None,
        Err(cause) => Some(format!("none, because its answer cannot be used: {cause}")),
    }
}

fn said(kind: HookKind, output: &HookOutput) -> Result<Option<String>, String> {
    let with = |what: &str, why: &str| match why.trim() {
        "" => Some(format!("{what}, without a reason")),
        why => Some(format!("{what}: {why}")),
    };
    match kind {
        HookKind::PreToolUse | HookKind::PermissionRequest | HookKind::PreMcpToolCall => {
            let answer = read_guard(kind, output)?;
            Ok(match answer.verdict {
                HookVerdict::Deny(denial) => with("denies the call", &denial.reason),
                HookVerdict::Ask(why) => {
                    with("has a person asked", why.as_deref().unwrap_or_default())
                }
                HookVerdict::Allow => Some("says yes where a person would be asked".to_owned()),
                HookVerdict::None => None,
            })
        }
        HookKind::AgentStop | HookKind::SubagentStop => {
            let reason = if output.stops() {
                None
            } else {
                stop::reason(output)?
            };
            let reason =
                reason.and_then(|why| with("keeps the agent from ending; its next input", &why));
            Ok(reason)
        }
        HookKind::UserPromptSubmitted => {
            let end = prompt::read(output, kind, Some("modifiedPrompt"))?;
            let changed = end.changed.map(|_| "changes the prompt".to_owned());
            let blocked = end.blocked;
            Ok(blocked
                .and_then(|why| with("keeps the prompt back", &why))
                .or(changed))
        }
        HookKind::SessionStart | HookKind::SubagentStart => {
            let end = prompt::read(output, kind, None)?;
            Ok(end.blocked.and_then(|why| with("lets nothing begin", &why)))
        }
        HookKind::PostToolUse => review_effect(output),
        HookKind::UserPromptTransformed
        | HookKind::PostToolUseFailure
        | HookKind::PreCompact
        | HookKind::SessionEnd
        | HookKind::ErrorOccurred
        | HookKind::Notification => Ok(None),
    }
}
