//! One line for an event, for a tool call and for a mode.

use loopd_sdk::proto::event::compaction::{CompactionComplete, CompactionTrigger};
use loopd_sdk::proto::event::tool::ToolStart;
use loopd_sdk::proto::visible::for_person;
use loopd_sdk::{Body, Durable, Event, Mode};
use serde_json::Value;

use super::agents;

/// How many characters of a line are shown.
const LINE_CHARS: usize = 160;

/// Says what a mode means.
pub(crate) fn mode_line(mode: Mode) -> &'static str {
    match mode {
        Mode::Interactive => "interactive mode",
        Mode::Plan => "plan mode: nothing is changed until a plan is approved",
        Mode::Autopilot => "autopilot mode: the agent decides by itself and goes on",
    }
}

/// Says how room was made in the context. Who asked for a compaction is told by the command.
pub(crate) fn compaction_line(complete: &CompactionComplete) -> Option<String> {
    if complete.trigger == Some(CompactionTrigger::Manual) {
        return None;
    }
    if !complete.success {
        let why = complete.error.as_deref().unwrap_or("no reason is known");
        return Some(format!("the conversation was not compacted: {why}"));
    }
    let tokens = |tokens: Option<u64>| tokens.unwrap_or(0);
    Some(format!(
        "the conversation was compacted: {} tokens before, {} now",
        tokens(complete.pre_compaction_tokens),
        tokens(complete.post_compaction_tokens)
    ))
}

/// What is said when the conversation was cleared.
pub(crate) const CLEARED: &str = "the conversation was cleared";

/// Returns what a hook says that it does now.
pub(crate) fn hook_line(message: &str) -> String {
    shorten(&format!("hook: {}", for_person(message).replace('\n', " ")))
}

/// Describes a tool call in one line: its name and its most informative argument.
pub(crate) fn summary(start: &ToolStart) -> String {
    const TELLING: [&str; 7] = [
        "command", "path", "pattern", "question", "url", "query", "name",
    ];
    let arguments = start.arguments.as_ref();
    let telling = arguments.and_then(|arguments| {
        TELLING
            .iter()
            .find_map(|name| arguments.get(name).and_then(Value::as_str))
    });
    let name = &start.tool_name;
    match (telling, arguments) {
        (Some(telling), _) => shorten(&format!(
            "{name}  {}",
            for_person(telling).replace('\n', " ⏎ ")
        )),
        (None, Some(arguments)) => shorten(&format!("{name}  {arguments}")),
        (None, None) => name.clone(),
    }
}

pub(super) fn shorten(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Describes an event in one line.
pub(crate) fn line(event: &Event) -> String {
    let text = match &event.body {
        Body::Durable(Durable::UserMessage(message)) => message.content.clone(),
        Body::Durable(Durable::AssistantMessage(message)) => message.content.clone(),
        Body::Durable(Durable::ToolStart(start)) => summary(start),
        Body::Durable(Durable::ToolComplete(done)) => match &done.error {
            Some(error) => format!("failed: {}", error.message),
            None => done
                .result
                .as_ref()
                .map_or_else(String::new, |result| result.content.clone()),
        },
        Body::Durable(Durable::PermissionRequested(asked)) => {
            crate::answer::describe(&asked.permission_request)
        }
        Body::Durable(Durable::SessionError(failure)) => failure.message.clone(),
        Body::Durable(Durable::SessionInfo(info)) => info.message.clone(),
        Body::Durable(Durable::SessionWarning(warning)) => warning.message.clone(),
        Body::Durable(Durable::Abort(abort)) => {
            let by = abort.aborted_by.as_ref().and_then(|by| by.name.as_ref());
            by.map_or_else(String::new, |by| format!("by {by}"))
        }
        Body::Durable(Durable::TaskComplete(said)) => {
            let parts = [said.summary.as_deref(), said.reason.as_deref()];
            parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
        Body::Durable(Durable::AutopilotStopped(stopped)) => stopped.reason.name().to_owned(),
        Body::Durable(Durable::SessionStart(start)) => {
            let context = start.context.as_ref();
            context.map_or_else(String::new, |context| context.cwd.clone())
        }
        Body::Durable(Durable::CompactionComplete(complete)) => {
            compaction_line(complete).unwrap_or_default()
        }
        Body::Durable(Durable::ModelChange(change)) => change.new_model.clone(),
        Body::Durable(Durable::ModeChanged(change)) => mode_line(change.new_mode).to_owned(),
        body => match &event.head.agent_id {
            Some(agent) => agents::lifecycle_line(agent, body)
                .map(|(_, line)| line)
                .unwrap_or_default(),
            None => String::new(),
        },
    };
    let text = match &event.head.agent_id {
        Some(agent) if !text.is_empty() && !event.body.kind().starts_with("subagent.") => {
            format!("[{agent}] {text}")
        }
        _ => text,
    };
    let text = shorten(&for_person(&text).replace('\n', " ⏎ "));
    let line = format!("{}  {:<26} {text}", event.head.timestamp, event.body.kind());
    line.trim_end().to_owned()
}
