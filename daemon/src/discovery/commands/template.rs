//! The text of a command, cut into what is said, what is run and what is included.
//!
//! The text is cut before arguments are filled in, so that arguments can neither add a command to run
//! nor a file to include.

use std::path::{Path, PathBuf};

use super::arguments::{self, NotFilled, Wanted};
use super::definition::CommandFormat;

/// The most commands that a text may run, and the most files that it may include.
const MOST_PARTS: usize = 20;

/// The text of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    segments: Vec<Segment>,
    format: CommandFormat,
    wanted: Wanted,
    /// Where its shell commands stand, for what is said about them.
    place: Option<FilePlace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FilePlace {
    path: PathBuf,
    /// The text of the whole file.
    text: String,
}

/// A piece of the text. The arguments may be filled in or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Text(String),
    /// A shell command whose output takes its place.
    Shell(String),
    /// A file whose content the text includes, by its path.
    File(String),
}

impl Template {
    /// Cuts a text. The error says what is wrong with it.
    pub(super) fn parse(text: &str, format: CommandFormat) -> Result<Self, String> {
        let segments = match format {
            CommandFormat::Claude | CommandFormat::Opencode => cut(text),
            CommandFormat::Prompt => vec![Segment::Text(text.to_owned())],
        };
        let parts = segments.iter();
        let parts = parts.filter(|segment| !matches!(segment, Segment::Text(_)));
        if parts.count() > MOST_PARTS {
            return Err(format!(
                "runs or includes more than {MOST_PARTS} commands and files; put some of them into one \
                 script or one file"
            ));
        }
        Ok(Self {
            wanted: Wanted::of(text, format),
            segments,
            format,
            place: None,
        })
    }

    /// Says which file the text is from.
    pub(super) fn in_file(mut self, path: &Path, text: &str) -> Self {
        self.place = self.runs_commands().then(|| FilePlace {
            path: path.to_owned(),
            text: text.to_owned(),
        });
        self
    }

    /// Returns whether the text runs shell commands.
    pub fn runs_commands(&self) -> bool {
        let mut segments = self.segments.iter();
        segments.any(|segment| matches!(segment, Segment::Shell(_)))
    }

    /// Returns whether the text has a command whose backticks close on another line. It is not run.
    pub fn has_open_command(&self) -> bool {
        self.segments.iter().any(|segment| match segment {
            Segment::Text(text) if self.format != CommandFormat::Prompt => {
                let mut opened = text.match_indices("!`");
                opened.any(|(at, found)| {
                    let before = text.get(..at).and_then(|before| before.chars().next_back());
                    let begins = before.is_none_or(char::is_whitespace);
                    let after = text.get(at + found.len()..).unwrap_or_default();
                    let command = after.split_once('`').map(|(command, _)| command);
                    begins && command.is_some_and(|command| command.contains('\n'))
                })
            }
            Segment::Text(_) | Segment::Shell(_) | Segment::File(_) => false,
        })
    }

    /// Returns the shell commands of the text, without their arguments filled in.
    pub fn shell_commands(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Shell(command) => Some(command.as_str()),
            Segment::Text(_) | Segment::File(_) => None,
        })
    }

    /// Returns which arguments the text uses.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Fills in the arguments. `folder` is where the session works.
    pub fn fill(&self, input: &str, folder: &str) -> Result<Vec<Segment>, NotFilled> {
        let filled = arguments::Filled::new(&self.wanted, self.format, input, folder)?;
        let mut room = arguments::Room::new();
        let mut segments = Vec::new();
        for segment in &self.segments {
            segments.push(match segment {
                Segment::Text(text) => Segment::Text(filled.fill(text, &mut room)?),
                Segment::Shell(command) => {
                    let command = filled.fill_shell(command, &mut room);
                    Segment::Shell(command.map_err(|why| self.located(why))?)
                }
                Segment::File(path) => Segment::File(filled.fill(path, &mut room)?),
            });
        }
        if let Some(rest) = filled.unused() {
            segments.push(Segment::Text(format!("\n\n{rest}")));
        }
        Ok(segments)
    }
}

impl Template {
    /// Adds to an error in which file and line its command stands.
    fn located(&self, mut why: NotFilled) -> NotFilled {
        if let (NotFilled::NotQuotable(command), Some(place)) = (&mut why, &self.place) {
            let before = place.text.split(command.command()).next();
            let line = before.unwrap_or_default().matches('\n').count() + 1;
            command.in_file(&place.path, line);
        }
        why
    }
}

/// Cuts a text in the format of Claude and opencode: a command in backticks after an exclamation mark,
/// and a path after an at sign. Both count only at the beginning of a word.
fn cut(text: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut said = String::new();
    let mut rest = text;
    let mut before = None;
    while let Some(letter) = rest.chars().next() {
        let begins = before
            .is_none_or(|before: char| !before.is_alphanumeric() && !"_`\\!@$".contains(before));
        let part = begins.then(|| part(rest)).flatten();
        let taken = if let Some((segment, taken)) = part {
            if !said.is_empty() {
                segments.push(Segment::Text(std::mem::take(&mut said)));
            }
            segments.push(segment);
            taken
        } else {
            said.push(letter);
            letter.len_utf8()
        };
        let (done, after) = rest.split_at(taken);
        before = done.chars().next_back();
        rest = after;
    }
    if !said.is_empty() {
        segments.push(Segment::Text(said));
    }
    segments
}

/// Returns the command or the path that the text begins with, and how many bytes it takes.
fn part(text: &str) -> Option<(Segment, usize)> {
    if let Some(after) = text.strip_prefix("!`") {
        let end = after.find(['`', '\n'])?;
        let command = after.get(..end)?;
        let is_closed = after.get(end..)?.starts_with('`');
        let is_command = is_closed && !command.trim().is_empty();
        return is_command.then(|| (Segment::Shell(command.trim().to_owned()), end + 3));
    }
    let after = text.strip_prefix('@')?;
    let is_part = |letter: char| !letter.is_whitespace() && !"`,;()[]{}<>\"'|@".contains(letter);
    let end = after.find(|letter| !is_part(letter)).unwrap_or(after.len());
    let path = after
        .get(..end)?
        .trim_end_matches(['.', ':', '?', '!', '*']);
    let begins = path.chars().next()?;
    let is_path = begins.is_alphanumeric() || "_./~$-".contains(begins);
    is_path.then(|| (Segment::File(path.to_owned()), path.len() + 1))
}
