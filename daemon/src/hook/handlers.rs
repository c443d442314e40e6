//! The hooks in force in a session: those of files and those of clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::input::HookInput;
use crate::client::Client;
use crate::discovery::hooks::{HookDefinition, HookKind, MatchSubject, claude_names};

/// The hooks in force in a session. A sub-agent has those of its parents and its own.
#[derive(Clone, Default)]
pub struct Hooks {
    /// The clients at the top that answer hooks.
    pub clients: Vec<Arc<dyn Client>>,
    /// Whether a client's hooks guard the session, be the client there or not.
    pub guarded_by_client: bool,
    /// The hooks of files, those of whoever owns the machine first.
    pub files: Vec<Arc<FileHook>>,
}

/// A hook of a file, and whether it ran.
#[derive(Debug)]
pub struct FileHook {
    pub definition: HookDefinition,
    ran: AtomicBool,
}

impl FileHook {
    pub fn new(definition: HookDefinition) -> Self {
        Self {
            definition,
            ran: AtomicBool::new(false),
        }
    }

    /// Returns whether the hook may run now. A hook that runs once in a session is taken by this.
    pub(super) fn take(&self) -> bool {
        !self.definition.once || !self.ran.swap(true, Ordering::Relaxed)
    }

    /// Names the hook for people: its file and line.
    pub fn name(&self) -> String {
        format!(
            "{}:{}",
            self.definition.file.display(),
            self.definition.line
        )
    }

    /// Whether the hook may have something to say about a subject of this kind.
    fn is_for(&self, kind: HookKind, subject: Option<&str>) -> bool {
        let matcher = &self.definition.matcher;
        self.definition.kind == kind
            && subject.is_none_or(|subject| match kind.subject() {
                Some(MatchSubject::Tool) => matcher.matches_tool(subject),
                Some(_) => matcher.matches(subject),
                None => true,
            })
    }

    /// Whether the condition of the hook holds for the arguments of a call.
    fn covers(&self, input: &HookInput) -> bool {
        let (Some(condition), Some(tool)) = (&self.definition.condition, &input.subject) else {
            return true;
        };
        let is_tool =
            condition.tool == *tool || claude_names(tool).contains(&condition.tool.as_str());
        let main = input.arguments().and_then(|arguments| {
            let mut names = MAIN_ARGUMENTS.iter();
            names.find_map(|name| arguments.get(*name)?.as_str())
        });
        is_tool
            && condition
                .pattern
                .as_ref()
                .is_none_or(|pattern| fits(pattern, main.unwrap_or_default()))
    }
}

/// The arguments of tools that conditions are compared with.
const MAIN_ARGUMENTS: [&str; 5] = ["command", "path", "file_path", "url", "pattern"];

/// Whether a text fits a pattern, in which a star stands for any text. `git:*` is `git` and all that
/// begins with `git `.
fn fits(pattern: &str, text: &str) -> bool {
    if let Some(prefix) = pattern.strip_suffix(":*") {
        let rest = text.strip_prefix(prefix);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    }
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    true
}

impl Hooks {
    /// Returns whether any hook of this kind is asked about the subject.
    pub fn has(&self, kind: HookKind, subject: Option<&str>) -> bool {
        !self.clients.is_empty()
            || (self.guarded_by_client && kind.is_guard())
            || self.files.iter().any(|hook| hook.is_for(kind, subject))
    }

    /// Returns whether a client has to be asked that is not there.
    pub fn lacks_guard(&self) -> bool {
        self.guarded_by_client && self.clients.is_empty()
    }

    pub(super) fn files_for<'a>(
        &'a self,
        input: &'a HookInput,
    ) -> impl Iterator<Item = &'a Arc<FileHook>> {
        let subject = input.subject.as_deref();
        let hooks = self.files.iter();
        hooks.filter(move |hook| hook.is_for(input.kind, subject) && hook.covers(input))
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_text() {
        let table = [
            ("git status", "git status", true),
            ("git status", "git status -s", false),
            ("git *", "git push", true),
            ("git *", "gitk", false),
            ("git:*", "git", true),
            ("git:*", "git push", true),
            ("git:*", "gitk", false),
            ("*.env", "/work/.env", true),
            ("*secret*", "a secret file", true),
            ("*secret*", "nothing", false),
            ("*", "", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
        ];
        for (pattern, text, wanted) in table {
            assert_eq!(fits(pattern, text), wanted, "{pattern} {text}");
        }
    }
}
