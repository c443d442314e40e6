//! Parses a `SKILL.md`.
//!
//! A mistake in the front matter should cost as little as possible and be seen. What restricts a
//! skill fails closed: if it cannot be read, the skill is restricted as far as it can be.

use std::path::Path;

use serde_json::Value;

use super::definition::{SkillDefinition, SkillPlace};
use super::{SkillFolder, is_same_skill};
use crate::discovery::Problem;
use crate::discovery::front_matter::{Member, Members, read_members};
use crate::discovery::not_built_in;
use crate::discovery::tool_words::{self, ToolWords, takes_out};
use loopd_proto::misspelt;

/// The longest name and the longest description of the format, and the longest name that is used, in
/// characters.
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 1024;
const MOST_LETTERS: usize = 128;

/// A skill with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedSkill {
    pub definition: SkillDefinition,
    /// The text after the front matter.
    pub text: String,
}

/// The members that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Name,
    Description,
    WhenToUse,
    ArgumentHint,
    AllowedTools,
    UserInvocable,
    DisableModelInvocation,
    Context,
    Agent,
    Model,
    /// A member that other programs read and that changes nothing that we do.
    OfOthers,
    /// A member that restricts a skill in other programs in ways that we do not know.
    Restriction,
}

/// The members by their names without dashes and in lower case.
const KEYS: &[(&str, Key)] = &[
    ("name", Key::Name),
    ("description", Key::Description),
    ("whentouse", Key::WhenToUse),
    ("argumenthint", Key::ArgumentHint),
    ("allowedtools", Key::AllowedTools),
    ("tools", Key::AllowedTools),
    ("userinvocable", Key::UserInvocable),
    ("userinvokable", Key::UserInvocable),
    ("disablemodelinvocation", Key::DisableModelInvocation),
    ("context", Key::Context),
    ("agent", Key::Agent),
    ("model", Key::Model),
    ("author", Key::OfOthers),
    ("category", Key::OfOthers),
    ("compatibility", Key::OfOthers),
    ("dependencies", Key::OfOthers),
    ("homepage", Key::OfOthers),
    ("keywords", Key::OfOthers),
    ("license", Key::OfOthers),
    ("metadata", Key::OfOthers),
    ("tags", Key::OfOthers),
    ("title", Key::OfOthers),
    ("version", Key::OfOthers),
    ("disallowedtools", Key::Restriction),
    ("hooks", Key::Restriction),
    ("permission", Key::Restriction),
    ("permissions", Key::Restriction),
    ("permissionmode", Key::Restriction),
];

fn key_of(name: &str) -> Option<Key> {
    let plain = misspelt::plain(name);
    let found = KEYS.iter().find(|(known, _)| *known == plain);
    if let Some((_, key)) = found {
        return Some(*key);
    }
    // A misspelt list of tools would restrict nothing.
    let mut lists = ["allowedtools", "disallowedtools"].iter();
    let is_list = lists.any(|known| misspelt::is_nearly(&plain, known));
    is_list.then_some(Key::Restriction)
}

/// What the front matter of a skill says.
#[derive(Debug, Default)]
struct SkillFront {
    name: Option<(String, usize)>,
    description: Option<String>,
    when_to_use: Option<String>,
    argument_hint: Option<String>,
    allowed_tools: Option<Vec<String>>,
    user_invocable: Option<bool>,
    disable_model_invocation: Option<bool>,
    forks: bool,
    agent: Option<String>,
    model: Option<(String, usize)>,
}

/// Parses the text of a file. `warnings` takes what is wrong with a skill that is used all the same.
pub(super) fn parse(
    folder: &SkillFolder,
    path: &Path,
    text: &str,
    warnings: &mut Vec<Problem>,
) -> Result<ParsedSkill, Problem> {
    let Members {
        list,
        unread,
        warnings: told,
        body,
    } = read_members(path, text)?;
    if list.is_empty() && unread.is_empty() {
        let what = "the file has no front matter with a `description`, so that nobody can know when to use the skill";
        return Err(Problem::at(path, 1, what));
    }
    let mut found = Vec::new();
    found.extend(told);
    let mut front = SkillFront::default();
    for member in &list {
        front.take(path, member, &mut found)?;
    }
    for (line, text) in unread {
        front.take_unread(path, line, &text, &mut found);
    }
    let description = front.describe(path, &mut found)?;
    let name = front.name(path, &mut found)?;
    if let Some(line) = line_of_command(text, body) {
        let what = "commands in the text (!`…`) are not run; the model reads them as they stand";
        found.push(Problem::at(path, line, what));
    }
    // A prompt has the line ends of prompts, whatever the file has.
    let text = body.replace("\r\n", "\n");
    let text = text.trim_start().to_owned();
    if text.is_empty() {
        return Err(Problem::at(path, 1, "the skill has no text"));
    }
    let place = front.place(path, &mut found);
    warnings.append(&mut found);
    Ok(ParsedSkill {
        definition: SkillDefinition {
            name,
            description,
            argument_hint: front.argument_hint,
            user_invocable: front.user_invocable.unwrap_or(true),
            model_invocable: !front.disable_model_invocation.unwrap_or(false),
            allowed_tools: front.allowed_tools,
            place,
            source: folder.source,
            path: path.to_owned(),
            project: folder.project.clone(),
            plugin: folder.plugin.clone(),
        },
        text,
    })
}

impl SkillFront {
    /// Takes one member.
    fn take(
        &mut self,
        path: &Path,
        member: &Member,
        warnings: &mut Vec<Problem>,
    ) -> Result<(), Problem> {
        let Member { key, value, line } = member;
        let mut warn = |what: String| warnings.push(Problem::at(path, *line, what));
        let Some(known) = key_of(key) else {
            warn(format!(
                "`{key}` is unknown and has no effect; the rest of the file is used"
            ));
            return Ok(());
        };
        let mut text = || {
            let text = text_of(value);
            if text.is_none() && !value.is_null() {
                warn(format!("`{key}` is not a text and is not used"));
            }
            text
        };
        match known {
            Key::Name => self.name = text().map(|name| (name, *line)),
            Key::Description if text_of(value).is_none() && !value.is_null() => {
                let what =
                    format!("`{key}` is not a text, so that nobody can know when to use the skill");
                return Err(Problem::at(path, *line, what));
            }
            Key::Description => {
                let text = text();
                self.description = self.description.take().or(text);
            }
            Key::WhenToUse => self.when_to_use = text(),
            Key::ArgumentHint => {
                self.argument_hint = Some(shown(value)).filter(|it| !it.is_empty());
            }
            Key::AllowedTools => {
                let (tools, wrong) = tools_of(value);
                if let Some(why) = wrong {
                    warn(format!("`{key}` {why}"));
                } else {
                    let unknown = tool_words::unknown(tools.as_deref().unwrap_or_default());
                    if let Some(what) = not_built_in(unknown.iter().map(String::as_str)) {
                        warn(what);
                    }
                }
                self.allow(tools);
            }
            Key::UserInvocable => {
                let (invocable, is_plain) = flag(value, false);
                if !is_plain {
                    warn(format!(
                        "`{key}` is neither true nor false, so people cannot use the skill as a command"
                    ));
                }
                self.user_invocable = Some(invocable && self.user_invocable.unwrap_or(true));
            }
            Key::DisableModelInvocation => {
                let (disabled, is_plain) = flag(value, true);
                if !is_plain {
                    warn(format!(
                        "`{key}` is neither true nor false, so models cannot load the skill"
                    ));
                }
                self.disable_model_invocation =
                    Some(disabled || self.disable_model_invocation == Some(true));
            }
            Key::Context => match text().as_deref() {
                Some("fork") => self.forks = true,
                None | Some("inline") => {}
                Some(other) => warn(format!(
                    "`{key}: {other}` is unknown; the skill runs in the conversation (`fork` would run it in a sub-agent)"
                )),
            },
            Key::Agent => self.agent = text(),
            Key::Model => self.model = text().map(|model| (model, *line)),
            Key::OfOthers => {}
            Key::Restriction => {
                let what = format!(
                    "`{key}` would restrict the skill and is not known for skills, so the skill is not used; \
                     take it out to use the skill"
                );
                return Err(Problem::at(path, *line, what));
            }
        }
        Ok(())
    }

    /// Takes a line that could not be read. If it may restrict the skill, the skill is restricted.
    fn take_unread(&mut self, path: &Path, line: usize, text: &str, warnings: &mut Vec<Problem>) {
        let word = text.split([' ', '=', '[', '\t']).next().unwrap_or_default();
        let means = match key_of(word) {
            Some(Key::AllowedTools | Key::Restriction) => {
                self.allow(Some(Vec::new()));
                "; it may restrict tools, so no tool may be used while the skill is active"
            }
            Some(Key::DisableModelInvocation) => {
                self.disable_model_invocation = Some(true);
                "; it may keep models from the skill, so they cannot load it"
            }
            Some(Key::UserInvocable) => {
                self.user_invocable = Some(false);
                "; it may keep people from the skill, so it is no command"
            }
            Some(_) | None => "",
        };
        let what = format!("the line is not of the form `key: value` and is left out{means}");
        warnings.push(Problem::at(path, line, what));
    }

    /// Restricts the tools further. Of two lists only what both have counts.
    fn allow(&mut self, tools: Option<Vec<String>>) {
        let Some(mut tools) = tools else {
            return;
        };
        if let Some(known) = &self.allowed_tools {
            tools.retain(|tool| known.contains(tool));
        }
        self.allowed_tools = Some(tools);
    }

    fn describe(&self, path: &Path, warnings: &mut Vec<Problem>) -> Result<String, Problem> {
        let parts = [self.description.as_deref(), self.when_to_use.as_deref()];
        let parts: Vec<&str> = parts.into_iter().flatten().map(str::trim).collect();
        let text = parts.join(" ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        if text.is_empty() {
            let what = "the front matter has no `description`, so that nobody can know when to use the skill";
            return Err(Problem::at(path, 1, what));
        }
        let letters = text.chars().count();
        if letters <= LONGEST_DESCRIPTION {
            return Ok(text);
        }
        let what = format!(
            "the description has {letters} characters; models are shown the first {LONGEST_DESCRIPTION}"
        );
        warnings.push(Problem::at(path, 1, what));
        Ok(text.chars().take(LONGEST_DESCRIPTION).collect())
    }

    fn name(&self, path: &Path, warnings: &mut Vec<Problem>) -> Result<String, Problem> {
        let folder = path.parent().and_then(Path::file_name);
        let folder = folder.map(|name| name.to_string_lossy().into_owned());
        let folder = folder.unwrap_or_default();
        let given = self.name.as_ref();
        let given = given.map(|(name, line)| (name.trim().to_owned(), *line));
        let Some((name, line)) = given.filter(|(name, _)| !name.is_empty()) else {
            if folder.is_empty() {
                return Err(Problem::at(path, 1, "the skill has no name"));
            }
            let what = format!(
                "the front matter has no `name`; the skill is called `{folder}` by its folder"
            );
            warnings.push(Problem::at(path, 1, what));
            return Ok(folder);
        };
        if let Some(why) = unusable(&name) {
            return Err(Problem::at(path, line, format!("the name {name:?} {why}")));
        }
        if let Some(why) = against_the_format(&name) {
            warnings.push(Problem::at(path, line, format!("the name `{name}` {why}")));
        } else if !is_same_skill(&name, &folder) {
            let what = format!("the name `{name}` is not that of its folder, `{folder}`");
            warnings.push(Problem::at(path, line, what));
        }
        Ok(name)
    }

    fn place(&self, path: &Path, warnings: &mut Vec<Problem>) -> SkillPlace {
        if self.forks {
            return SkillPlace::Subagent {
                agent: self.agent.clone().filter(|agent| !agent.is_empty()),
                model: self
                    .model
                    .as_ref()
                    .map(|(model, _)| model.clone())
                    .filter(|model| !model.is_empty() && model != "inherit"),
            };
        }
        if let Some((model, line)) = &self.model
            && model != "inherit"
        {
            let what =
                "`model` counts only with `context: fork`; the model of the conversation answers";
            warnings.push(Problem::at(path, *line, what));
        }
        SkillPlace::Conversation
    }
}

/// Returns why a skill cannot have a name at all.
fn unusable(name: &str) -> Option<&'static str> {
    let is_plain =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | ':' | ' ');
    if name.chars().count() > MOST_LETTERS {
        return Some("is much too long; use at most 64 characters");
    }
    if !name.starts_with(char::is_alphanumeric) || !name.chars().all(is_plain) {
        return Some("cannot be used; use lower case letters, digits and hyphens");
    }
    None
}

/// Returns how a name that can be used differs from the format.
fn against_the_format(name: &str) -> Option<&'static str> {
    if name.chars().count() > LONGEST_NAME {
        return Some("is longer than 64 characters; other programs do not take it");
    }
    let is_plain = |letter: char| letter.is_lowercase() || letter.is_numeric() || letter == '-';
    let is_well_made = !name.starts_with('-') && !name.ends_with('-') && !name.contains("--");
    if !name.chars().all(is_plain) || !is_well_made {
        return Some(
            "has other characters than lower case letters, digits and single hyphens; other programs may not take it",
        );
    }
    None
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns a hint as people write it, in brackets or not.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(words) => {
            let words: Vec<String> = words.iter().map(shown).collect();
            format!("[{}]", words.join(", "))
        }
        Value::Null => String::new(),
        Value::Object(_) => value.to_string(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => text_of(value).unwrap_or_default(),
    }
}

/// Reads a switch. What is neither true nor false counts as `strict`.
fn flag(value: &Value, strict: bool) -> (bool, bool) {
    let text = match value {
        Value::Bool(value) => return (*value, true),
        value => text_of(value).unwrap_or_default(),
    };
    let text = text
        .split(" #")
        .next()
        .unwrap_or_default()
        .trim()
        .to_lowercase();
    match text.as_str() {
        "true" | "yes" | "on" | "1" => (true, true),
        "false" | "no" | "off" | "0" => (false, true),
        _ => (strict, false),
    }
}

/// Reads a list of tools; `None` allows all. Returns what is wrong with it, too.
fn tools_of(value: &Value) -> (Option<Vec<String>>, Option<&'static str>) {
    let words = match value {
        Value::String(text) => {
            let text = text.split(" #").next().unwrap_or_default();
            ToolWords::One(text.to_owned()).list()
        }
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let items = items.iter().filter_map(Value::as_str);
            items
                .flat_map(|item| ToolWords::One(item.to_owned()).list())
                .collect()
        }
        Value::Null => Vec::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            let why = "is no list of tools, so no tool may be used while the skill is active";
            return (Some(Vec::new()), Some(why));
        }
    };
    if words.is_empty() {
        let why =
            "is empty, so no tool may be used while the skill is active; take it out to allow all";
        return (Some(words), Some(why));
    }
    if words.iter().any(|word| takes_out(word)) {
        let why = "takes tools out of a list, which is not known here, so no tool may be used while the skill \
                   is active; name those that may be used";
        return (Some(Vec::new()), Some(why));
    }
    // A list with `*` allows every tool, as no list does.
    let is_all = words.iter().any(|word| word == "*");
    ((!is_all).then_some(words), None)
}

/// Returns the line of the file on which its text has a command that other programs would run.
fn line_of_command(text: &str, body: &str) -> Option<usize> {
    let at = body.find("!`")?;
    let is_closed = body.get(at + 2..)?.split('\n').next()?.contains('`');
    let before = text.len() - body.len() + at;
    let lines = text.get(..before)?.matches('\n').count();
    is_closed.then_some(lines + 1)
}
