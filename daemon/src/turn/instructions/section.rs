//! Writes instructions as text, within bounds.

use std::fmt::Write as _;

use crate::discovery::instructions::InstructionFile;
use loopd_kernel::texts::instructions::InstructionText;
use loopd_kernel::tokens;

/// How many bytes of one file are counted and given at most.
const LARGEST_FILE: usize = 256 * 1024;
/// The most files whose names are listed.
const MOST_LISTED: usize = 100;
/// The longest description in a list, in characters.
const LONGEST_DESCRIPTION: usize = 300;

/// How many tokens of one file, and of all files together, the model is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    file: u64,
    all: u64,
}

impl Bounds {
    pub(super) fn of(all: u64) -> Self {
        Self { file: all / 2, all }
    }
}

/// Writes the section of the system message; empty if there are no instructions. Instructions for
/// certain files are only listed if they follow later.
pub(super) fn text(
    organization: Option<&str>,
    files: &[&InstructionFile],
    on_demand: bool,
    bounds: Bounds,
    warnings: &mut Vec<String>,
) -> String {
    let mut text = String::new();
    if let Some(given) = organization.map(str::trim).filter(|it| !it.is_empty()) {
        // Writing to a string cannot fail.
        writeln!(
            text,
            "<instructions source=\"organization\">\n{given}\n</instructions>"
        )
        .ok();
    }
    let (later, now): (Vec<&InstructionFile>, Vec<&InstructionFile>) = files
        .iter()
        .copied()
        .partition(|file| on_demand && file.is_conditional());
    for given in bounded(now, bounds, warnings) {
        text.push_str(&given.block());
    }
    // What an instruction for certain files imports comes with it.
    let listed = later.into_iter().filter(|file| file.imported_by.is_none());
    let lines: Vec<String> = listed.take(MOST_LISTED).map(line).collect();
    if !lines.is_empty() {
        let list = lines.join("\n");
        writeln!(
            text,
            "<instructions_for_certain_files>\nThese files apply when you work on files that match. They are shown \
             to you when you view or change such a file; read them before you create one.\n{list}\n\
             </instructions_for_certain_files>"
        )
        .ok();
    }
    if text.is_empty() {
        return text;
    }
    format!("<custom_instructions>\n{text}</custom_instructions>")
}

fn line(file: &InstructionFile) -> String {
    let globs = file.apply_to.as_deref().unwrap_or_default().join(", ");
    let path = file.path.display();
    let about = file.description.as_deref().unwrap_or_default();
    let about: String = about.chars().take(LONGEST_DESCRIPTION).collect();
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    if about.is_empty() {
        format!("- {path} (for {globs})")
    } else {
        format!("- {path} (for {globs}): {about}")
    }
}

/// Returns the texts of files within bounds, and warns of what is cut or left out.
pub(super) fn bounded<'f>(
    files: impl IntoIterator<Item = &'f InstructionFile>,
    bounds: Bounds,
    warnings: &mut Vec<String>,
) -> Vec<InstructionText> {
    let mut left = bounds.all;
    let mut texts = Vec::new();
    for file in files {
        let path = file.path.display();
        let (shown, tokens) = cut(&file.text, bounds.file.min(left));
        if shown.is_empty() {
            let all = bounds.all;
            warnings.push(format!(
                "{path}: is left out: the instructions have more than {all} tokens together"
            ));
            continue;
        }
        let mut text = shown.to_owned();
        if shown.len() < file.text.len() {
            warnings.push(format!(
                "{path}: is too long: the model is given its first {tokens} tokens only"
            ));
            text.push_str("\n[The rest is left out: there are too many instructions. Read the file if you need it.]");
        }
        left = left.saturating_sub(tokens);
        texts.push(InstructionText {
            path: path.to_string(),
            apply_to: file.apply_to.clone().unwrap_or_default(),
            text,
        });
    }
    texts
}

/// Returns the beginning of a text that has at most so many tokens, up to the end of a line, and how
/// many it has.
fn cut(text: &str, most: u64) -> (&str, u64) {
    let mut shown = up_to(text, LARGEST_FILE);
    let mut tokens = tokens::count(shown);
    // The share is an estimate, so that it may have to be taken again.
    while tokens > most {
        let share = shown.len() as u128 * u128::from(most) / u128::from(tokens.max(1));
        let bytes = usize::try_from(share)
            .unwrap_or(0)
            .min(shown.len().saturating_sub(1));
        let end = up_to(shown, bytes);
        shown = end
            .rfind('\n')
            .and_then(|line| end.get(..line))
            .unwrap_or(end);
        tokens = tokens::count(shown);
        if shown.is_empty() {
            return ("", 0);
        }
    }
    (shown, tokens)
}

fn up_to(text: &str, bytes: usize) -> &str {
    let mut ends = (0..=bytes.min(text.len())).rev();
    ends.find_map(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_a_line_within_its_tokens() {
        let line = "one two three four five six\n";
        let text = line.repeat(200);
        let whole = tokens::count(&text);
        assert_eq!(cut(&text, whole), (text.as_str(), whole));
        let (shown, tokens) = cut(&text, whole / 2);
        assert!(
            tokens <= whole / 2 && tokens > whole / 4,
            "{tokens} of {whole}"
        );
        assert!(shown.ends_with("six"), "{shown}");
        assert_eq!(cut(&text, 0), ("", 0));
        let text = "ü".repeat(5_000);
        let (shown, tokens) = cut(&text, 10);
        assert!(tokens <= 10 && !shown.is_empty(), "{tokens}");
    }
}
