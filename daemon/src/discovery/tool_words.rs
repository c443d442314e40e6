//! The names of tools in front matter, as people write them.

use loopd_kernel::policy::tool_list::{BUILT_IN, may_name_a_tool};
use serde::Deserialize;

/// A list of tools: words with commas or spaces between them, or a list.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected the names of tools, as words or as a list"
)]
pub(super) enum ToolWords {
    One(String),
    Many(Vec<String>),
}

impl ToolWords {
    /// Returns the names. `Bash(git add:*)` is one word.
    pub(super) fn list(self) -> Vec<String> {
        match self {
            Self::Many(words) => words,
            Self::One(text) => split(&text),
        }
    }
}

/// Returns the words that name no built-in tool, under none of its names.
pub(super) fn unknown(words: &[String]) -> Vec<String> {
    let unknown = words
        .iter()
        .filter(|word| !may_name_a_tool(word, |name| BUILT_IN.contains(&name)));
    unknown.cloned().collect()
}

/// Says that names in a list of tools are none of ours; `None` if there are none.
pub fn not_built_in<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!(
            "{one} is no built-in tool; it counts only where a client or an MCP server brings it"
        )),
        several => Some(format!(
            "{} are no built-in tools; they count only where a client or an MCP server brings them",
            several.join(", ")
        )),
    }
}

/// Returns whether a word takes a tool out of a list, as `!Bash` does in other programs. No list here can
/// do that.
pub(super) fn takes_out(word: &str) -> bool {
    word.trim().starts_with(['!', '-', '~', '^'])
}

fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut words = vec![String::new()];
    let has_commas = text.contains(',');
    for letter in text.chars() {
        depth = match letter {
            '(' => depth + 1,
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        let ends = depth == 0 && (letter == ',' || (!has_commas && letter.is_whitespace()));
        match words.last_mut() {
            Some(word) if !ends => word.push(letter),
            _ => words.push(String::new()),
        }
    }
    let words = words.iter().map(|word| word.trim().to_owned());
    words.filter(|word| !word.is_empty()).collect()
}
