//! The lines about sub-agents in a conversation with the main agent: when each one starts and ends,
//! and its tool calls. The answer of a sub-agent goes to the agent that started it and is not shown.

use std::time::Duration;

use loopd_sdk::proto::event::task::Execution;
use loopd_sdk::{AgentId, Body, Durable, Ephemeral};

use super::line::{hook_line, shorten, summary};
use crate::amount::{counted, tokens, took};
use crate::terminal::Style;

/// Describes an event of a sub-agent in one line; `None` if it is not shown.
pub(super) fn line(agent: &AgentId, body: &Body) -> Option<(Style, String)> {
    if let Some(lifecycle_line) = lifecycle_line(agent, body) {
        return Some(lifecycle_line);
    }
    let (style, what) = match body {
        Body::Durable(Durable::ToolStart(start)) => (Style::Dim, format!("• {}", summary(start))),
        Body::Durable(Durable::ToolComplete(done)) => {
            let error = done.error.as_ref()?;
            let first = error.message.lines().next().unwrap_or_default();
            (Style::Dim, format!("  failed: {}", shorten(first)))
        }
        Body::Ephemeral(Ephemeral::TurnRetry(retry)) => {
            let why = retry.reason.as_deref().unwrap_or("the model call failed");
            (Style::Dim, format!("trying again: {}", shorten(why)))
        }
        Body::Ephemeral(Ephemeral::HookProgress(progress)) if progress.temporary != Some(true) => {
            (Style::Dim, hook_line(&progress.message))
        }
        Body::Durable(_) | Body::Ephemeral(_) | Body::Unknown { .. } => return None,
    };
    Some((style, format!("  {agent} {what}")))
}

/// Describes the start or the end of a sub-agent in one line.
pub(crate) fn lifecycle_line(agent: &AgentId, body: &Body) -> Option<(Style, String)> {
    let Body::Durable(event) = body else {
        return None;
    };
    match event {
        Durable::SubagentStarted(started) => {
            let kind = &started.agent_name;
            let beside = match started.execution_mode {
                Some(Execution::Background) => " in the background",
                Some(Execution::Sync) | None => "",
            };
            let what = shorten(&started.agent_description.replace('\n', " "));
            let line = format!("▸ {agent} ({kind}) started{beside}: {what}");
            Some((Style::Dim, line))
        }
        Durable::SubagentCompleted(done) => {
            let how = match done.cancelled {
                Some(true) => "cancelled",
                Some(false) | None => "completed",
            };
            let took = amounts(done.total_tool_calls, done.total_tokens, done.duration_ms);
            let kind = &done.agent_name;
            Some((Style::Dim, format!("▸ {agent} ({kind}) {how}{took}")))
        }
        Durable::SubagentFailed(failed) => {
            let took = amounts(
                failed.total_tool_calls,
                failed.total_tokens,
                failed.duration_ms,
            );
            let (kind, why) = (&failed.agent_name, shorten(&failed.error));
            let line = format!("▸ {agent} ({kind}) failed{took}: {why}");
            Some((Style::Bad, line))
        }
        _ => None,
    }
}

fn amounts(calls: Option<u64>, used: Option<u64>, milliseconds: Option<u64>) -> String {
    let calls = calls.map(|calls| {
        let calls = usize::try_from(calls).unwrap_or(usize::MAX);
        counted(calls, "tool call", "tool calls")
    });
    let used = used.map(|used| format!("{} tokens", tokens(used)));
    let time = milliseconds.map(|time| took(Duration::from_millis(time)));
    [calls, used, time]
        .into_iter()
        .flatten()
        .fold(String::new(), |text, part| format!("{text}, {part}"))
}
