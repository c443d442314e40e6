//! What a patch is, whichever of the two formats it was written in. Plain data; `envelope.rs` and
//! `unified.rs` make it, `hunks.rs` and `apply_patch.rs` read it.

use loopd_proto::visible::hidden_again;

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    /// As written in the patch.
    pub(super) path: String,
    pub(super) action: Action,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Add {
        contents: String,
    },
    Delete,
    Update {
        move_to: Option<String>,
        hunks: Vec<Hunk>,
    },
}

/// One run of lines that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// The line of the patch where the hunk begins, for messages.
    pub(super) patch_line: usize,
    /// Lines to pass in this order before the place is looked for.
    pub(super) anchors: Vec<String>,
    /// The first old line by its number, as unified diffs give it.
    pub(super) hint: Option<usize>,
    pub(super) lines: Vec<Line>,
    /// The hunk has to match at the end of the file.
    pub(super) at_end: bool,
    /// What the patch says about the final line break after the change.
    pub(super) final_newline: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Keep(String),
    Remove(String),
    Add(String),
}

impl Hunk {
    /// The lines that have to be in the file.
    pub(super) fn old(&self) -> Vec<&str> {
        let lines = self.lines.iter().filter_map(|line| match line {
            Line::Keep(text) | Line::Remove(text) => Some(text.as_str()),
            Line::Add(_) => None,
        });
        lines.collect()
    }
}

/// Returns the hunks with the escapes of hidden characters turned back into them; `None` if there are
/// none.
pub(super) fn with_hidden_characters(hunks: &[Hunk]) -> Option<Vec<Hunk>> {
    let mut hidden = hunks.to_vec();
    let mut changed = false;
    for hunk in &mut hidden {
        let lines = hunk.lines.iter_mut().map(|line| match line {
            Line::Keep(text) | Line::Remove(text) | Line::Add(text) => text,
        });
        for text in lines.chain(&mut hunk.anchors) {
            if let Some(restored) = hidden_again(text) {
                *text = restored;
                changed = true;
            }
        }
    }
    changed.then_some(hidden)
}

/// Why a text is not a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PatchError {
    #[error("it is neither a unified diff nor a patch between *** Begin Patch and *** End Patch")]
    Unknown,
    #[error("it changes no file")]
    Empty,
    #[error("line {line}: {problem}")]
    At { line: usize, problem: String },
}

/// Names a line of the patch, counted from 1.
pub(super) fn at(index: usize, problem: impl Into<String>) -> PatchError {
    PatchError::At {
        line: index + 1,
        problem: problem.into(),
    }
}

/// Reads a patch in either format.
pub(super) fn parse(text: &str) -> Result<Vec<FilePatch>, PatchError> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| !line.trim().is_empty());
    let files = match first.and_then(|first| lines.get(first)) {
        Some(line) if line.trim() == super::envelope::BEGIN => super::envelope::parse(&lines)?,
        Some(_) => super::unified::parse(&lines)?,
        None => return Err(PatchError::Empty),
    };
    if files.is_empty() {
        return Err(PatchError::Empty);
    }
    Ok(files)
}
