//! Reads a file of hooks: ours, Copilot's and Claude's formats.
//!
//! All three have an object `hooks` of lists by kind. A list of Copilot's format holds hooks; one of
//! Claude's format holds groups of a matcher and its hooks. A list may hold both.

use std::path::Path;

use serde_json::value::RawValue;

use super::definition::{HookDefinition, HookOrigin};
use super::entry;
use super::kind::{HookKind, PayloadForm, UnknownKind};
use super::members::{FileText, Members};
use crate::discovery::Problem;

/// The maximum number of hooks in one file.
const MOST_HOOKS: usize = 500;

/// What a file is for. It decides how far a mistake reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookFile {
    /// A file of hooks only: a mistake drops its entry.
    Own,
    /// Settings with a block of hooks: a mistake drops the block.
    Settings,
}

/// What a file says.
#[derive(Debug, Default)]
pub struct HookFileContent {
    pub hooks: Vec<HookDefinition>,
    pub problems: Vec<Problem>,
    /// The settings turn off the hooks of all files but those of the machine's owner.
    pub all_disabled: bool,
}

/// Reads the text of a file.
pub fn parse(path: &Path, text: &str, file: HookFile, origin: HookOrigin) -> HookFileContent {
    let mut content = HookFileContent::default();
    let original = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Comments become blanks.
    let mut json = original.to_owned();
    if let Err(error) = json_strip_comments::strip(&mut json) {
        let what = format!("is not valid JSON: {error}");
        content.problems.push(Problem::new(path, what));
        return content;
    }
    let mut reader = Reader {
        path,
        text: FileText {
            original,
            json: &json,
        },
        origin,
        dropped: false,
        content,
    };
    if let Err(problem) = reader.read(file) {
        reader.content.hooks.clear();
        reader.content.problems.push(problem);
    } else if file == HookFile::Settings && reader.dropped {
        reader.content.hooks.clear();
        let what = "none of its hooks is used, because settings with a mistake in one hook are not \
                    used in part; a file of hooks only is";
        reader.content.problems.push(Problem::new(path, what));
    }
    reader.content
}

struct Reader<'a> {
    path: &'a Path,
    text: FileText<'a>,
    origin: HookOrigin,
    /// An entry had a mistake.
    dropped: bool,
    content: HookFileContent,
}

/// What the entries of one list have in common.
struct List<'a> {
    kind: HookKind,
    form: PayloadForm,
    matcher: Option<&'a str>,
}

impl<'a> Reader<'a> {
    /// Reads the whole file. An error means that none of it can be used.
    fn read(&mut self, file: HookFile) -> Result<(), Problem> {
        let members = Members::read(self.text.json).map_err(|error| {
            let line = self.text.line_of_error(&error);
            let what = format!("is not valid JSON: {}", entry::without_place(&error));
            Problem::at(self.path, line, what)
        })?;
        if let Some(version) = members.get("version").filter(|_| file == HookFile::Own)
            && version.get() != "1"
        {
            let what = format!("has version {}; only version 1 is known", version.get());
            return Err(self.problem(version, what));
        }
        let disabled = match members
            .get("disableAllHooks")
            .map(|value| (value, value.get()))
        {
            None | Some((_, "false" | "null")) => false,
            Some((_, "true")) => true,
            Some((value, _)) => {
                return Err(self.problem(value, "`disableAllHooks` has to be true or false"));
            }
        };
        if disabled {
            self.content.all_disabled = file == HookFile::Settings;
            return Ok(());
        }
        let blocks = members.0.iter().filter(|(name, _)| name == "hooks");
        for (_, block) in blocks {
            if block.get() == "null" {
                continue;
            }
            let kinds = Members::read(block.get()).map_err(|_| {
                self.problem(
                    block,
                    "`hooks` has to be an object of lists by kind of hook",
                )
            })?;
            for (name, list) in &kinds.0 {
                self.list(name, list)?;
            }
        }
        Ok(())
    }

    /// Reads the hooks of one kind.
    fn list(&mut self, name: &str, list: &'a RawValue) -> Result<(), Problem> {
        let items: Vec<&RawValue> = serde_json::from_str(list.get())
            .map_err(|_| self.problem(list, format!("`{name}` has to be a list of hooks")))?;
        let (kind, form) = match HookKind::named(name) {
            Ok(found) => found,
            Err(unknown) => {
                self.drop(list, describe_unknown(name, &unknown));
                return Ok(());
            }
        };
        let list = List {
            kind,
            form,
            matcher: None,
        };
        for item in items {
            self.item(&list, item)?;
        }
        Ok(())
    }

    /// Reads a hook, or a group of a matcher and its hooks.
    fn item(&mut self, list: &List<'_>, item: &'a RawValue) -> Result<(), Problem> {
        let Ok(members) = Members::read(item.get()) else {
            self.drop(item, "a hook has to be an object");
            return Ok(());
        };
        let Some(group) = members.get("hooks").filter(|_| list.matcher.is_none()) else {
            return self.entry(list, item, &members);
        };
        let Ok(hooks) = serde_json::from_str::<Vec<&RawValue>>(group.get()) else {
            self.drop(group, "`hooks` of a group has to be a list of hooks");
            return Ok(());
        };
        let matcher = match members
            .get("matcher")
            .map(|value| serde_json::from_str(value.get()))
        {
            None => String::new(),
            Some(Ok(matcher)) => matcher,
            Some(Err(_)) => {
                self.drop(group, "`matcher` of a group has to be text");
                return Ok(());
            }
        };
        for (name, value) in &members.0 {
            if !matches!(name.as_str(), "hooks" | "matcher" | "description") {
                self.report(
                    value,
                    format!("`{name}` of a group is not known and not used"),
                );
            }
        }
        let list = List {
            matcher: Some(&matcher),
            ..*list
        };
        for hook in hooks {
            let Ok(members) = Members::read(hook.get()) else {
                self.drop(hook, "a hook has to be an object");
                continue;
            };
            self.entry(&list, hook, &members)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        list: &List<'_>,
        item: &'a RawValue,
        members: &Members<'a>,
    ) -> Result<(), Problem> {
        if self.content.hooks.len() == MOST_HOOKS {
            let what = format!("has more than {MOST_HOOKS} hooks and is not used");
            return Err(Problem::new(self.path, what));
        }
        let line = self.text.line_of(item);
        match entry::read(list.kind, list.form, list.matcher, item.get()) {
            Ok(read) => {
                for (name, value) in &members.0 {
                    if !entry::MEMBERS.contains(&name.as_str()) {
                        self.report(value, format!("`{name}` is not known and not used"));
                    }
                }
                if let Some(notice) = read.notice {
                    self.report(item, notice);
                }
                self.content.hooks.push(HookDefinition {
                    kind: list.kind,
                    form: list.form,
                    matcher: read.matcher,
                    condition: read.condition,
                    action: read.action,
                    timeout: read.timeout,
                    on_failure: read.on_failure,
                    in_background: read.in_background,
                    once: read.once,
                    status_message: read.status_message,
                    origin: self.origin,
                    file: self.path.to_owned(),
                    line,
                });
            }
            Err(what) => self.drop(item, format!("this {} hook is not used: {what}", list.kind)),
        }
        Ok(())
    }

    fn problem(&self, value: &RawValue, what: impl Into<String>) -> Problem {
        Problem::at(self.path, self.text.line_of(value), what)
    }

    /// Reports something that changes nothing.
    fn report(&mut self, value: &RawValue, what: impl Into<String>) {
        let problem = self.problem(value, what);
        self.content.problems.push(problem);
    }

    /// Reports an entry that is not used.
    fn drop(&mut self, value: &RawValue, what: impl Into<String>) {
        self.dropped = true;
        self.report(value, what);
    }
}

fn describe_unknown(name: &str, unknown: &UnknownKind) -> String {
    match unknown {
        UnknownKind::WithoutCounterpart => {
            format!("nothing in loopd corresponds to the event `{name}`: its hooks never run")
        }
        UnknownKind::Nearest(nearest) => {
            format!("`{name}` is no kind of hook; did you mean `{nearest}`?")
        }
    }
}
