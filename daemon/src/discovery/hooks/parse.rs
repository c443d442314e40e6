//! Reads a file of hooks: ours, Copilot's and Claude's formats.
//!
//! All three have an object `hooks` of lists by kind. A list of Copilot's format holds hooks; one of
//! Claude's format holds groups of a matcher and its hooks. A list may hold both.

use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::definition::{HookDefinition, HookSource};
use super::entry::{self, EntryContext, Unusable};
use super::kind::{HookKind, PayloadForm};
use super::local_http::LocalHttp;
use super::members::{FileText, Members};
use super::unusable::UnusableGuard;
use crate::discovery::Problem;
use crate::discovery::content_hash::ContentHash;

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

/// A text of hooks, and by which rules it is read.
#[derive(Debug, Clone, Copy)]
pub struct HookText<'a> {
    pub path: &'a Path,
    pub text: &'a str,
    pub file: HookFile,
    pub source: &'a HookSource,
    pub local_http: LocalHttp,
}

/// What a file says.
#[derive(Debug, Default)]
pub struct HookFileContent {
    pub hooks: Vec<HookDefinition>,
    pub problems: Vec<Problem>,
    /// The settings turn off the hooks of all files but those of the machine's owner.
    pub disables_all: bool,
    /// The guards that were meant and cannot be used.
    pub unusable_guards: Vec<UnusableGuard>,
}

/// Reads the text of a file.
pub fn parse(given: &HookText<'_>) -> HookFileContent {
    let mut content = HookFileContent::default();
    let original = given.text.strip_prefix('\u{feff}').unwrap_or(given.text);
    // Comments become blanks.
    let mut json = original.to_owned();
    if let Err(error) = json_strip_comments::strip(&mut json) {
        let what = format!("is not valid JSON: {error}");
        let unusable = UnusableGuard::of_any_call(what.clone());
        content.unusable_guards.push(unusable);
        content.problems.push(Problem::new(given.path, what));
        return content;
    }
    let mut reader = Reader {
        given: *given,
        text: FileText {
            original,
            json: &json,
        },
        has_mistake: false,
        content,
    };
    if let Err(problem) = reader.read() {
        reader.content.hooks.clear();
        reader.lose(&List::ANY_CALL, problem.line.unwrap_or(1), &problem.what);
        reader.content.problems.push(problem);
    } else if given.file == HookFile::Settings && reader.has_mistake {
        reader.content.hooks.clear();
        let what = "none of its hooks is used: in settings, one mistake drops all hooks; in a file of \
                    hooks, such as .github/hooks/a.json, it drops only its own";
        reader.content.problems.push(Problem::new(given.path, what));
    }
    reader.content
}

struct Reader<'a> {
    given: HookText<'a>,
    text: FileText<'a>,
    has_mistake: bool,
    content: HookFileContent,
}

/// The entries of a file that have one kind and, in a group, one matcher.
struct List<'a> {
    kind: HookKind,
    form: PayloadForm,
    matcher: Option<&'a str>,
}

impl List<'_> {
    /// What a file may have guarded of which nothing can be used.
    const ANY_CALL: Self = List {
        kind: HookKind::PreToolUse,
        form: PayloadForm::Native,
        matcher: None,
    };
}

impl<'a> Reader<'a> {
    /// Reads the whole file. An error means that none of it can be used.
    fn read(&mut self) -> Result<(), Problem> {
        if self.text.json.trim().is_empty() {
            return Err(Problem::new(self.given.path, "is empty"));
        }
        let members = Members::read(self.text.json).map_err(|error| {
            let line = self.text.line_of_error(&error);
            let what = if error.is_data() {
                "has to be a JSON object".to_owned()
            } else {
                format!("is not valid JSON: {}", entry::without_place(&error))
            };
            Problem::at(self.given.path, line, what)
        })?;
        let own = self.given.file == HookFile::Own;
        if let Some(version) = members.get("version").filter(|_| own)
            && version.get() != "1"
        {
            let what = format!("has version {}; only version 1 is known", version.get());
            return Err(self.problem(version, what));
        }
        let is_off = match members.get("disableAllHooks") {
            None => false,
            Some(value) => match value.get() {
                "false" | "null" => false,
                "true" => true,
                _ => {
                    return Err(self.problem(value, "`disableAllHooks` has to be true or false"));
                }
            },
        };
        let mut blocks = members.all("hooks").peekable();
        if own && blocks.peek().is_none() {
            self.report_missing_block(&members);
        }
        for block in blocks.filter(|block| block.get() != "null") {
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
        if is_off {
            self.content.disables_all = !own;
            for hook in &mut self.content.hooks {
                hook.off = Some(self.given.path.to_owned());
                if own {
                    // Whoever trusted the hook did not trust the file to turn it off. Settings have
                    // a switch, which is trusted for itself.
                    hook.said = ContentHash::of([b"off".as_slice(), hook.said.as_str().as_bytes()]);
                    hook.hash = hook.said.clone();
                }
            }
        }
        Ok(())
    }

    /// Says why a file of hooks brings none.
    fn report_missing_block(&mut self, members: &Members<'a>) {
        let outside = members.0.iter();
        let outside = outside.filter(|(name, _)| HookKind::named(name).is_ok());
        let problems = outside.map(|(name, list)| {
            let what = format!("`{name}` is not used: it has to be inside of `hooks`");
            self.problem(list, what)
        });
        let mut problems: Vec<Problem> = problems.collect();
        if problems.is_empty() {
            problems.push(Problem::new(self.given.path, "has no `hooks`"));
        }
        self.content.problems.append(&mut problems);
    }

    /// Reads the hooks of one kind.
    fn list(&mut self, name: &str, value: &'a RawValue) -> Result<(), Problem> {
        if value.get() == "null" {
            return Ok(());
        }
        let (kind, form) = match HookKind::named(name) {
            Ok(found) => found,
            Err(unknown) => {
                let what = unknown.describe(name);
                if let Some((kind, form)) = unknown.meant() {
                    let meant = List {
                        kind,
                        form,
                        matcher: None,
                    };
                    self.lose(&meant, self.text.line_of(value), &what);
                }
                self.report(value, what);
                return Ok(());
            }
        };
        let list = List {
            kind,
            form,
            matcher: None,
        };
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
            let what = format!("`{name}` has to be a list of hooks and is not used");
            self.drop_from(&list, value, &what);
            return Ok(());
        };
        for item in items {
            self.item(&list, item)?;
        }
        Ok(())
    }

    /// Reads a hook, or a group of a matcher and its hooks.
    fn item(&mut self, list: &List<'_>, item: &'a RawValue) -> Result<(), Problem> {
        let Ok(members) = Members::read(item.get()) else {
            self.drop_from(list, item, "a hook has to be an object");
            return Ok(());
        };
        let Some(group) = members.get("hooks").filter(|_| list.matcher.is_none()) else {
            return self.entry(list, item, &members);
        };
        let Ok(hooks) = serde_json::from_str::<Vec<&RawValue>>(group.get()) else {
            self.drop_from(list, group, "`hooks` of a group has to be a list of hooks");
            return Ok(());
        };
        let mut matcher = String::new();
        if let Some(value) = members.get("matcher").filter(|it| it.get() != "null") {
            let Ok(text) = serde_json::from_str(value.get()) else {
                let what = "the hooks of this group are not used: its `matcher` has to be text like \
                            \"Edit|Write\"";
                self.drop_from(list, value, what);
                return Ok(());
            };
            matcher = text;
        }
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
                self.drop_from(&list, hook, "a hook has to be an object");
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
            return Err(Problem::new(self.given.path, what));
        }
        let line = self.text.line_of(item);
        let context = EntryContext {
            kind: list.kind,
            form: list.form,
            matcher: list.matcher,
            local_http: self.given.local_http,
        };
        match entry::read(context, item.get()) {
            Ok(read) => {
                for (name, value) in &members.0 {
                    if !entry::MEMBERS.contains(&name.as_str()) {
                        self.report(value, format!("`{name}` is not known and not used"));
                    }
                }
                for notice in read.notices {
                    self.report(item, notice);
                }
                let said: Value = serde_json::from_str(item.get()).unwrap_or_default();
                let mut hook = HookDefinition {
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
                    source: self.given.source.clone(),
                    file: self.given.path.to_owned(),
                    line,
                    hash: ContentHash::default(),
                    said: ContentHash::default(),
                    named_files: Vec::new(),
                    own_paths: Vec::new(),
                    root: PathBuf::new(),
                    off: None,
                    missing: false,
                    unusable: None,
                    is_new: false,
                };
                hook.said = ContentHash::of_json(&json!({
                    "event": hook.kind_name(), "matcher": list.matcher, "hook": said,
                }));
                hook.hash = hook.said.clone();
                self.content.hooks.push(hook);
            }
            Err(unusable) => {
                let name = list.kind.name_in(list.form);
                let what = format!("this {name} hook is not used: {}", unusable.why());
                let own = members.get("matcher");
                let own: Option<String> = own.and_then(|it| serde_json::from_str(it.get()).ok());
                let meant = List {
                    matcher: list.matcher.or(own.as_deref()),
                    ..*list
                };
                self.lose(&meant, line, &what);
                match unusable {
                    Unusable::Mistake(_) => self.drop(item, what),
                    Unusable::NotHere(_) => self.report(item, what),
                }
            }
        }
        Ok(())
    }

    fn problem(&self, value: &RawValue, what: impl Into<String>) -> Problem {
        Problem::at(self.given.path, self.text.line_of(value), what)
    }

    /// Reports something that is no mistake in a hook.
    fn report(&mut self, value: &RawValue, what: impl Into<String>) {
        let problem = self.problem(value, what);
        self.content.problems.push(problem);
    }

    /// Notes that hooks of a kind that guards cannot be used.
    fn lose(&mut self, list: &List<'_>, line: usize, why: &str) {
        if list.kind.is_guard() {
            self.content.unusable_guards.push(UnusableGuard {
                kind: list.kind,
                form: list.form,
                matcher: list.matcher.unwrap_or_default().to_owned(),
                line,
                why: why.to_owned(),
            });
        }
    }

    /// Reports a hook of a list that is not used because of a mistake.
    fn drop_from(&mut self, list: &List<'_>, value: &RawValue, what: &str) {
        self.lose(list, self.text.line_of(value), what);
        self.drop(value, what);
    }

    /// Reports a hook that is not used because of a mistake.
    fn drop(&mut self, value: &RawValue, what: impl Into<String>) {
        self.has_mistake = true;
        self.report(value, what);
    }
}
