//! The text of a command, cut into what is said, what is run and what is included.
//!
//! The text is cut before arguments are filled in, so that arguments can neither add a command to run
//! nor a file to include.

use loopd_kernel::policy::shell;

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
        })
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
        self.segments.iter().filter_map(shell_command)
    }

    /// Returns whether arguments were put into one of its commands.
    fn takes_arguments(&self, filled: &[Segment]) -> bool {
        let own = self.shell_commands();
        own.ne(filled.iter().filter_map(shell_command))
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
                Segment::Shell(command) => Segment::Shell(filled.fill_shell(command, &mut room)?),
                Segment::File(path) => Segment::File(filled.fill(path, &mut room)?),
            });
        }
        if self.takes_arguments(&segments) {
            let lines: Vec<&str> = segments.iter().filter_map(shell_command).collect();
            if lines.len() > 1 && shell::run_what_they_write(&lines.join("\n")) {
                return Err(NotFilled::RunsWritten);
            }
        }
        if let Some(rest) = filled.unused() {
            segments.push(Segment::Text(format!("\n\n{rest}")));
        }
        Ok(segments)
    }
}

fn shell_command(segment: &Segment) -> Option<&str> {
    match segment {
        Segment::Shell(command) => Some(command),
        Segment::Text(_) | Segment::File(_) => None,
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
