//! What models read of instructions that follow when a file was used.

use std::fmt::Write as _;

use crate::history::Entry;
use crate::model::Part;
use crate::state::State;
use crate::texts::compaction;

/// How a text with instructions that follow begins.
const BEGIN: &str = "<instructions_that_apply_now>\n";
const END: &str = "</instructions_that_apply_now>";

/// The instructions of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionText {
    pub path: String,
    /// The patterns of the files that they are for; none if they are for all near them.
    pub apply_to: Vec<String>,
    pub text: String,
}

impl InstructionText {
    /// Returns the text with the file that it comes from.
    pub fn block(&self) -> String {
        let mut block = mark(&self.path);
        // Writing to a string cannot fail.
        if !self.apply_to.is_empty() {
            write!(block, " applies_to=\"{}\"", self.apply_to.join(", ")).ok();
        }
        writeln!(block, ">\n{}\n</instructions>", self.text).ok();
        block
    }
}

fn mark(path: &str) -> String {
    format!("<instructions file=\"{path}\"")
}

/// Returns the message that gives a model instructions.
pub fn following(files: &[InstructionText]) -> String {
    let blocks: String = files.iter().map(InstructionText::block).collect();
    format!(
        "{BEGIN}These instructions of the user or the project apply to files that you have just used:\n{blocks}{END}"
    )
}

/// Returns the texts of the conversation that give instructions, oldest first.
fn given(state: &State) -> impl Iterator<Item = &str> {
    let entries = state.history.iter().filter_map(|entry| match entry {
        Entry::User(parts) => match parts.first() {
            Some(Part::Text(text)) => Some(text.as_str()),
            Some(Part::Image { .. } | Part::Document { .. }) | None => None,
        },
        Entry::Assistant(_) | Entry::Result { .. } | Entry::Image { .. } => None,
    });
    let waiting = state.added_context.iter().map(String::as_str);
    entries.chain(waiting).filter_map(|text| {
        // After a compaction they are the first part of what stands for the earlier messages.
        let text = match text.strip_prefix(compaction::BEGIN) {
            Some(rest) => rest.trim_start(),
            None => text,
        };
        let given = text.strip_prefix(BEGIN)?;
        Some(given.split_once(END).map_or(given, |(given, _)| given))
    })
}

/// Returns whether the conversation has the instructions of a file.
pub fn is_given(state: &State, path: &str) -> bool {
    let mark = mark(path);
    given(state).any(|text| text.contains(&mark))
}

/// Returns the files whose instructions are in the conversation, oldest first. Whoever takes messages
/// out of the conversation reads these files again and gives their texts anew.
pub fn given_files(state: &State) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for text in given(state) {
        let marks = text.split("<instructions file=\"").skip(1);
        for path in marks.filter_map(|it| it.split_once('"').map(|(path, _)| path)) {
            if !files.iter().any(|known| known == path) {
                files.push(path.to_owned());
            }
        }
    }
    files
}
