//! What is typed into a program that may run it as commands, compared with deny rules.
//!
//! Rules can be compared only with a line whose text is known: text and {enter}. A key that edits
//! the line or recalls an older one makes another line of it.

use loopd_proto::permission::{PermissionRequest, PermissionRule, Permissions};

use super::canonical;

/// The identifiers of requests that type into a shell.
const TYPED: [&str; 2] = ["write_bash", "write_powershell"];

/// Keys that stop a program or its line and type nothing.
const STOPPING: [&str; 3] = ["ctrl-c", "ctrl-z", "ctrl-\\"];

/// The longest unfinished line that is kept, in bytes. A longer one is not known.
const MAX_LINE: usize = 64 * 1024;

/// A part of input: text, or the name of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputPart<'t> {
    Text(&'t str),
    Key(&'t str),
}

/// Reads input. `{name}` is a key if letters, digits and hyphens stand in the braces; every other
/// `{` is text. `{{name}` is the text `{name}`.
pub fn parts(input: &str) -> Vec<InputPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = input;
    while let Some(at) = rest.find('{') {
        let (before, from_brace) = rest.split_at(at);
        parts.push(InputPart::Text(before));
        let after = from_brace.get(1..).unwrap_or_default();
        if let Some(name) = after.strip_prefix('{').and_then(word) {
            parts.push(InputPart::Text(
                after.get(..name.len() + 2).unwrap_or_default(),
            ));
            rest = after.get(name.len() + 2..).unwrap_or_default();
        } else if let Some(name) = word(after) {
            parts.push(InputPart::Key(name));
            rest = after.get(name.len() + 1..).unwrap_or_default();
        } else {
            parts.push(InputPart::Text("{"));
            rest = after;
        }
    }
    parts.push(InputPart::Text(rest));
    parts
}

/// The word before the next `}`, if it can be the name of a key.
fn word(text: &str) -> Option<&str> {
    let (word, _) = text.split_once('}')?;
    let is_modified = |prefix| {
        let rest: Option<&str> = word.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.chars().count() == 1)
    };
    let is_name = !word.is_empty()
        && word
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '-');
    (is_name || is_modified("alt-") || is_modified("ctrl-")).then_some(word)
}

/// The line that was typed into a program and not yet ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnfinishedLine {
    /// The text of the line, which may be empty. A program may ignore an interrupt and keep the
    /// line, so both are known: what was typed since the last line, and since the last interrupt.
    Text {
        since_line: String,
        since_interrupt: String,
    },
    /// Keys edited the line, so its text is not known.
    Unknown,
}

impl Default for UnfinishedLine {
    fn default() -> Self {
        Self::of(String::new())
    }
}

impl UnfinishedLine {
    fn of(line: String) -> Self {
        Self::Text {
            since_interrupt: line.clone(),
            since_line: line,
        }
    }

    /// Returns the line after this input.
    #[must_use]
    pub(crate) fn after(self, input: &str) -> Self {
        if stops_only(input) {
            return match self {
                Self::Text { since_line, .. } => Self::Text {
                    since_line,
                    since_interrupt: String::new(),
                },
                Self::Unknown => Self::default(),
            };
        }
        let mut line = self;
        for part in parts(input) {
            line = match (part, line) {
                (InputPart::Key("enter"), line) => line.and("\n"),
                (InputPart::Key("space"), line) => line.and(" "),
                (InputPart::Key(_), _) => Self::Unknown,
                (InputPart::Text(text), line) => line.and(text),
            };
        }
        line
    }

    /// Returns what the line may be, unless it is empty or not known.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = match self {
            Self::Text {
                since_line,
                since_interrupt,
            } => vec![since_line.clone(), since_interrupt.clone()],
            Self::Unknown => Vec::new(),
        };
        texts.dedup();
        texts.retain(|text| !text.is_empty());
        texts
    }

    /// Returns what may stand on the line, the empty text included; `None` if that is not known.
    pub(crate) fn candidates(&self) -> Option<Vec<String>> {
        let Self::Text {
            since_line,
            since_interrupt,
        } = self
        else {
            return None;
        };
        let mut lines = vec![since_line.clone(), since_interrupt.clone()];
        lines.dedup();
        Some(lines)
    }

    /// Returns the line with more text at its end.
    fn and(self, text: &str) -> Self {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let joined = match self {
            Self::Text {
                since_line,
                since_interrupt,
            } => unfinished(since_line + &text).zip(unfinished(since_interrupt + &text)),
            Self::Unknown => text.split_once('\n').and_then(|(_, after)| {
                let after = unfinished(after.to_owned())?;
                Some((after.clone(), after))
            }),
        };
        match joined {
            Some((since_line, since_interrupt)) => Self::Text {
                since_line,
                since_interrupt,
            },
            None => Self::Unknown,
        }
    }
}

/// Returns the last line of a text with the lines that go on with it, or `None` if it cannot be
/// compared.
fn unfinished(mut text: String) -> Option<String> {
    let mut end = text.len();
    while let Some(at) = text.get(..end).and_then(|before| before.rfind('\n')) {
        let before = text.get(..at).unwrap_or_default();
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        if backslashes % 2 == 0 {
            text = text.split_off(at + 1);
            break;
        }
        // The next line goes on with this one.
        end = at;
    }
    (text.len() <= MAX_LINE && !text.chars().any(is_control)).then_some(text)
}

/// Whether a request types into a program.
pub(super) fn is_typed(request: &PermissionRequest) -> bool {
    let PermissionRequest::Shell { commands, .. } = request else {
        return false;
    };
    commands
        .first()
        .is_some_and(|first| TYPED.contains(&first.identifier.as_str()))
}

/// Whether text is typed without the end of its line. It is not known yet what the line becomes.
pub(super) fn is_part(input: &str) -> bool {
    let is_text = |part: &InputPart<'_>| matches!(part, InputPart::Text(text) if !text.is_empty());
    parts(input).iter().any(is_text) && !input.ends_with("{enter}") && !input.ends_with('\n')
}

/// Returns the deny rules that are about what commands do.
pub(super) fn rules_in_force(permissions: &Permissions) -> impl Iterator<Item = &PermissionRule> {
    let is_concerned =
        |rule: &&PermissionRule| matches!(canonical(&rule.kind), "shell" | "read" | "write");
    permissions.denied.iter().filter(is_concerned)
}

/// Whether deny rules are in force that what is typed has to be compared with.
pub(crate) fn is_compared(permissions: &Permissions) -> bool {
    let managed = permissions.managed.iter();
    let mut managed = managed.flat_map(|managed| &managed.deny);
    rules_in_force(permissions).next().is_some()
        || managed.any(|rule| matches!(canonical(&rule.kind), "shell" | "read" | "write"))
}

/// Returns the requests that rules are compared with in place of a typed one: the input alone, and
/// the input with the unfinished line before it. `None` if rules cannot be compared with it.
pub(super) fn as_lines(request: &PermissionRequest) -> Option<Vec<PermissionRequest>> {
    let PermissionRequest::Shell {
        full_command_text,
        typed_before,
        ..
    } = request
    else {
        return Some(vec![request.clone()]);
    };
    let text = plain_text(full_command_text, typed_before)?;
    let with_text = |text: String| {
        let mut line = request.clone();
        if let PermissionRequest::Shell {
            full_command_text, ..
        } = &mut line
        {
            *full_command_text = text;
        }
        line
    };
    // A key that stops the program sends no line.
    let before = typed_before
        .iter()
        .filter(|_| !stops_only(full_command_text));
    let whole = before.map(|before| with_text(format!("{before}{text}")));
    let whole: Vec<PermissionRequest> = whole.collect();
    Some(std::iter::once(with_text(text)).chain(whole).collect())
}

/// Returns the text that this input types after what the line may be, or `None` if rules cannot be
/// compared with it.
pub fn plain_text(input: &str, before: &[String]) -> Option<String> {
    if stops_only(input) || (input == "{ctrl-d}" && before.is_empty()) {
        return Some(String::new());
    }
    let mut text = String::new();
    for part in parts(input) {
        match part {
            InputPart::Text(more) => text.push_str(more),
            InputPart::Key("enter") => text.push('\n'),
            InputPart::Key("space") => text.push(' '),
            InputPart::Key(_) => return None,
        }
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_recalling =
        recalls(&text) || before.iter().any(|line| recalls(&format!("{line}{text}")));
    (!text.chars().any(is_control) && !is_recalling).then_some(text)
}

/// Whether input has only keys that stop the program or its line.
pub(crate) fn stops_only(input: &str) -> bool {
    let mut parts = parts(input).into_iter();
    parts.all(|part| match part {
        InputPart::Text(text) => text.is_empty(),
        InputPart::Key(key) => STOPPING.contains(&key),
    })
}

fn is_control(character: char) -> bool {
    character.is_control() && character != '\n'
}

/// Whether a shell may put older lines into this text: `!!`, `!x`, `^old^new`.
fn recalls(text: &str) -> bool {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let follows = |next: &char| next.is_alphanumeric() || "!-?$#^*:{".contains(*next);
        if character == '!' && characters.peek().is_some_and(follows) {
            return true;
        }
    }
    text.lines().any(|line| line.trim_start().starts_with('^'))
}

#[cfg(test)]
mod tests;
