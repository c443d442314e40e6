//! Summarises the conversation for whoever takes over the session.

use std::fmt::Write;

use loopd_proto::params::history::Handoff;
use loopd_proto::params::session::Of;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::history::Entry;
use loopd_kernel::model::Part;
use loopd_kernel::state::State;

/// How many of the last user messages a summary has.
const MESSAGES: usize = 20;

/// How many characters of each message, and of the last answer, a summary has.
const MESSAGE_CHARS: usize = 500;
const ANSWER_CHARS: usize = 4_000;

pub(super) async fn summarize(context: Context, params: Of) -> Result<Handoff, RpcError> {
    let session = context.session(&params.session_id)?;
    let summary = session.state(summary).await?;
    Ok(Handoff { summary })
}

/// Writes the summary: what the user asked, what was changed and the last answer.
fn summary(state: &State) -> String {
    let asked: Vec<String> = state.history.iter().filter_map(asked).collect();
    if asked.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let name = state.name.as_ref().map(|name| name.text.trim());
    let name = name.and_then(|name| name.lines().next());
    // Writing to a string cannot fail.
    writeln!(text, "# {}\n", name.unwrap_or("Session")).ok();
    writeln!(text, "Directory: `{}`\n\n## Asked\n", state.cwd).ok();
    let left_out = asked.len().saturating_sub(MESSAGES);
    if left_out > 0 {
        writeln!(text, "- ({left_out} earlier messages)").ok();
    }
    for message in asked.iter().skip(left_out) {
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        writeln!(text, "- {}", cut(&line, MESSAGE_CHARS)).ok();
    }
    let files = &state.totals.code_changes.files_modified;
    if !files.is_empty() {
        writeln!(text, "\n## Files changed\n").ok();
        for file in files {
            writeln!(text, "- `{file}`").ok();
        }
    }
    let said = state.history.iter().rev().find_map(|entry| match entry {
        Entry::Assistant(turn) if !turn.text.trim().is_empty() => Some(turn.text.trim()),
        Entry::Assistant(_) | Entry::User(_) | Entry::Result { .. } | Entry::Image { .. } => None,
    });
    if let Some(said) = said {
        writeln!(text, "\n## Last answer\n\n{}", cut(said, ANSWER_CHARS)).ok();
    }
    text
}

/// Returns the text of a user message, without what was put before it for the model.
fn asked(entry: &Entry) -> Option<String> {
    let Entry::User(parts) = entry else {
        return None;
    };
    let text = parts.iter().find_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } | Part::Document { .. } => None,
    })?;
    let own = text.rsplit_once("</current_datetime>");
    let own = own.map_or(text, |(_, own)| own).trim();
    (!own.is_empty()).then(|| own.to_owned())
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}
