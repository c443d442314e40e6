//! Summarises the session for whoever takes over.

use std::fmt::Write;

use loopd_proto::params::history::Handoff;
use loopd_proto::params::session::Of;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::beside::BesideQuestion;
use loopd_kernel::history::Entry;
use loopd_kernel::model::Part;
use loopd_kernel::state::State;
use loopd_kernel::texts;

/// How many of the last user messages a summary has.
const MESSAGES: usize = 20;

/// How many characters of each message, and of the last answer, a summary has.
const MESSAGE_CHARS: usize = 500;
const ANSWER_CHARS: usize = 4_000;

/// Asks the model for what matters, and writes what the log knows around it. If the model cannot be asked,
/// the summary says so and has the last answer instead. A session without messages has no summary.
pub(super) async fn summarize(context: Context, params: Of) -> Result<Handoff, RpcError> {
    let session = context.session(&params.session_id)?;
    let Some(known) = session.state(Known::of).await? else {
        return Ok(Handoff {
            summary: String::new(),
            problem: None,
        });
    };
    if known.last_answer.is_none() {
        return Ok(Handoff {
            summary: known.write(None),
            problem: None,
        });
    }
    let said = session.ask_beside(BesideQuestion::Handoff).await?;
    let summary = known.write(Some(&said));
    Ok(Handoff {
        summary,
        problem: said.err(),
    })
}

/// What the log knows without a model.
struct Known {
    title: String,
    cwd: String,
    asked: Vec<String>,
    files: Vec<String>,
    todos: String,
    last_answer: Option<String>,
}

impl Known {
    /// `None` if nobody has asked anything.
    fn of(state: &State) -> Option<Self> {
        let asked: Vec<String> = state.history.iter().filter_map(asked).collect();
        if asked.is_empty() {
            return None;
        }
        let name = state.name.as_ref().map(|name| name.text.trim());
        let name = name.and_then(|name| name.lines().next());
        let said = state.history.iter().rev().find_map(|entry| match entry {
            Entry::Assistant(turn) if !turn.text.trim().is_empty() => Some(turn.text.trim()),
            Entry::Assistant(_) | Entry::User(_) | Entry::Result { .. } | Entry::Image { .. } => {
                None
            }
        });
        Some(Self {
            title: name.unwrap_or("Session").to_owned(),
            cwd: state.cwd.clone(),
            asked,
            files: state.totals.code_changes.files_modified.clone(),
            todos: texts::compaction::todos(state),
            last_answer: said.map(|said| cut(said, ANSWER_CHARS)),
        })
    }

    /// Writes the summary. `said` is what the model answered, or why it could not.
    fn write(&self, said: Option<&Result<String, String>>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        writeln!(text, "# {}\n\nDirectory: `{}`\n", self.title, self.cwd).ok();
        match said {
            Some(Ok(said)) => {
                writeln!(text, "{said}\n").ok();
            }
            Some(Err(why)) => {
                writeln!(
                    text,
                    "(The model could not be asked for a summary: {why}. What follows is from the log.)\n"
                )
                .ok();
            }
            None => {}
        }
        writeln!(text, "## Asked\n").ok();
        let left_out = self.asked.len().saturating_sub(MESSAGES);
        if left_out > 0 {
            writeln!(text, "- ({left_out} earlier messages)").ok();
        }
        for message in self.asked.iter().skip(left_out) {
            let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
            writeln!(text, "- {}", cut(&line, MESSAGE_CHARS)).ok();
        }
        if !self.todos.is_empty() {
            writeln!(text, "\n## Todos\n\n{}", self.todos).ok();
        }
        if !self.files.is_empty() {
            writeln!(text, "\n## Files changed\n").ok();
            for file in &self.files {
                writeln!(text, "- `{file}`").ok();
            }
        }
        if let (Some(answer), false) = (&self.last_answer, matches!(said, Some(Ok(_)))) {
            writeln!(text, "\n## Last answer\n\n{answer}").ok();
        }
        text
    }
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
