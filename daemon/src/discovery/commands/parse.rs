//! Parses the file of a command.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::CommandFolder;
use super::arguments::editor_variables;
use super::definition::{CommandDefinition, CommandFormat, CommandOrigin, CommandPlace};
use super::template::Template;
use crate::discovery::content_hash::ContentHash;
use crate::discovery::front_matter;
use crate::discovery::tool_words::{self, ToolWords, takes_out};
use crate::discovery::{Problem, not_built_in};
use loopd_proto::misspelt::is_nearly;

/// The longest name, in characters, and the longest description that a text gives by itself.
const LONGEST_NAME: usize = 100;
const LONGEST_FIRST_LINE: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct CommandFrontMatter {
    name: Option<String>,
    description: Option<String>,
    argument_hint: Option<Value>,
    #[serde(alias = "allowedTools")]
    allowed_tools: Option<ToolWords>,
    tools: Option<ToolWords>,
    model: Option<OneOrMany>,
    #[serde(alias = "mode")]
    agent: Option<String>,
    subtask: Option<bool>,
    context: Option<Context>,
    user_invocable: Option<bool>,
    disable_model_invocation: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Context {
    Fork,
    Inline,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected the name of a model")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The members of the front matter that are read.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "name", "description", "argument-hint", "allowed-tools", "allowedTools", "tools", "model", "agent", "mode",
    "subtask", "context", "user-invocable", "disable-model-invocation",
];

/// Members that other programs read and that change nothing that we do.
const KEYS_OF_OTHERS: &[&str] = &[
    "author", "category", "license", "metadata", "tags", "version",
];

/// Members that restrict a command in other programs. A file that has one is not used, because its
/// command could do more here than its author wants.
const RESTRICTIONS: &[&str] = &[
    "disallowed-tools",
    "disallowedTools",
    "hooks",
    "permission",
    "permission-mode",
    "permissionMode",
];

/// Parses the text of a file; `None` if its command is not for people.
pub(super) fn parse(
    folder: &CommandFolder,
    path: &Path,
    text: &str,
    remarks: &mut Vec<Problem>,
) -> Result<Option<CommandDefinition>, Problem> {
    let (front, body) = read_front(path, text, remarks)?;
    check_keys(path, text, remarks)?;
    let line = |members: &[&str]| front_matter::line_of(text, members).unwrap_or(1);
    if front.user_invocable == Some(false) {
        return Ok(None);
    }
    // The prompt has the line ends of prompts, whatever the file has.
    let body = body.trim().replace("\r\n", "\n");
    let body = body.as_str();
    if body.is_empty() {
        return Err(Problem::at(path, 1, "the command has no text"));
    }
    let (name, aliases) = names(folder, path, front.name.as_deref())
        .map_err(|what| Problem::at(path, line(&["name"]), what))?;
    let tools = match (front.allowed_tools, front.tools) {
        (Some(_), Some(_)) => {
            let what =
                "`allowed-tools` and `tools` both restrict the command; leave one of them out";
            return Err(Problem::at(path, line(&["tools"]), what));
        }
        (words, None) | (None, words) => words.map(ToolWords::list),
    };
    let unknown_tools = tool_words::unknown(tools.as_deref().unwrap_or_default());
    if let Some(what) = not_built_in(unknown_tools.iter().map(String::as_str)) {
        let at = line(&["allowed-tools", "allowedTools", "tools"]);
        remarks.push(Problem::at(path, at, what));
    }
    let template = Template::parse(body, folder.format).map_err(|what| Problem::new(path, what))?;
    let template = template.in_file(path, text);
    if folder.format == CommandFormat::Prompt {
        for variable in editor_variables(body) {
            let at = line_with(text, &format!("${{{variable}}}"));
            let what = format!("`${{{variable}}}` stays as it is: only an editor could fill it in");
            remarks.push(Problem::at(path, at, what));
        }
    }
    let place = match (front.context, front.subtask) {
        (Some(Context::Fork), Some(false)) | (Some(Context::Inline), Some(true)) => {
            let what = "`context` and `subtask` contradict each other; leave one of them out";
            return Err(Problem::at(path, line(&["subtask"]), what));
        }
        (Some(Context::Fork), _) | (_, Some(true)) => CommandPlace::Subagent,
        (Some(Context::Inline), _) | (_, Some(false)) => CommandPlace::Conversation,
        (None, None) => CommandPlace::AsAgentWants,
    };
    let hint = front.argument_hint.as_ref().map(shown_hint);
    Ok(Some(CommandDefinition {
        name,
        aliases,
        description: front
            .description
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| first_line(body)),
        argument_hint: hint.filter(|hint| !hint.is_empty()),
        template,
        // A list with `*` allows every tool, as no list does.
        tools: tools.filter(|tools| !tools.iter().any(|tool| tool == "*")),
        unknown_tools,
        model: front
            .model
            .and_then(|model| named_model(model, folder.format)),
        agent: named_agent(
            front.agent,
            folder.format,
            || line(&["agent", "mode"]),
            path,
            remarks,
        ),
        place,
        origin: match &folder.project {
            Some(project) => CommandOrigin::Project(real(project)),
            None => CommandOrigin::User,
        },
        path: path.to_owned(),
        hash: ContentHash::of_json(&json!({"command": relative(folder, path), "text": text})),
    }))
}

/// Reads the front matter. Authors often leave out quotes around hints and descriptions that need
/// them; such a line is read as plain text, and told.
fn read_front<'a>(
    path: &Path,
    text: &'a str,
    remarks: &mut Vec<Problem>,
) -> Result<(CommandFrontMatter, &'a str), Problem> {
    let strict = front_matter::read::<CommandFrontMatter>(path, text);
    let Err(problem) = strict else {
        return strict;
    };
    let (quoted, lines) = with_quotes(text);
    if lines.is_empty() {
        return Err(problem);
    }
    let Ok((front, body)) = front_matter::read::<CommandFrontMatter>(path, &quoted) else {
        return Err(problem);
    };
    // The body is the same in both texts.
    let body = text.get(text.len() - body.len()..).unwrap_or_default();
    for line in lines {
        let what = "the text after the colon needs quotes; it is used as it stands";
        remarks.push(Problem::at(path, line, what));
    }
    Ok((front, body))
}

/// Puts quotes around the values of `description`, `argument-hint` and `name` that have none. Returns
/// the text and the lines that were changed.
fn with_quotes(text: &str) -> (String, Vec<usize>) {
    let mut changed = Vec::new();
    let mut lines = Vec::new();
    let mut is_front = false;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end() == "---" || (index == 0 && line.trim_end() == "\u{feff}---") {
            is_front = index == 0;
        }
        let value = line.split_once(": ").filter(|(key, value)| {
            let value = value.trim();
            let is_plain = !value.is_empty() && !value.starts_with(['"', '\'', '|', '>']);
            let needs =
                value.contains(": ") || value.starts_with(['[', '{', '*', '&', '@', '`', '%', '!']);
            is_front && is_plain && needs && ["description", "argument-hint", "name"].contains(key)
        });
        match value {
            Some((key, value)) => {
                changed.push(index + 1);
                lines.push(format!("{key}: {}\n", json!(value.trim())));
            }
            None => lines.push(line.to_owned()),
        }
    }
    (lines.concat(), changed)
}

/// Refuses members that restrict a command in ways that we do not know, and tells unknown ones.
fn check_keys(path: &Path, text: &str, remarks: &mut Vec<Problem>) -> Result<(), Problem> {
    let (quoted, _) = with_quotes(text);
    let read = front_matter::read::<BTreeMap<String, Value>>(path, text)
        .or_else(|_| front_matter::read::<BTreeMap<String, Value>>(path, &quoted));
    let Ok((front, _)) = read else {
        // The file was read with its types before, and what is wrong was told.
        return Ok(());
    };
    for (key, value) in &front {
        let line = front_matter::line_of(text, &[key]).unwrap_or(1);
        if let Some(what) = not_restricting(key, value) {
            return Err(Problem::at(path, line, what));
        }
        if RESTRICTIONS.contains(&key.as_str()) {
            let what = format!(
                "`{key}` would restrict the command and is not known for commands, so the file is not \
                 used; take the line out to use it"
            );
            return Err(Problem::at(path, line, what));
        }
        if !KEYS.iter().chain(KEYS_OF_OTHERS).any(|known| known == key) {
            let what =
                format!("`{key}` is unknown and has no effect; the rest of the file is used");
            remarks.push(Problem::at(path, line, what));
        }
    }
    Ok(())
}

/// Members that restrict what a command may do.
const RESTRICTING: &[&str] = &["allowed-tools", "tools", "agent", "mode"];

/// Returns why a member restricts nothing, although its author wants it to: its name is misspelt, or its
/// value cannot be used. Then the command could do more than its author wants.
fn not_restricting(key: &str, value: &Value) -> Option<String> {
    let is_list = ["allowed-tools", "allowedTools", "tools"].contains(&key);
    if is_list && is_empty(value) {
        return Some(format!(
            "`{key}` names no tool, so the file is not used; name the tools that the command may use, or \
             take the line out to allow all"
        ));
    }
    if is_list && let Some(word) = excluded(value) {
        return Some(format!(
            "`{key}` takes tools out with `{word}`, which is not known here, so the file is not used; name \
             the tools that the command may use"
        ));
    }
    if KEYS.contains(&key) || RESTRICTIONS.contains(&key) {
        return None;
    }
    let mut known = RESTRICTING.iter().chain(RESTRICTIONS);
    let meant = known.find(|known| is_nearly(key, known))?;
    Some(format!(
        "`{key}` is unknown; if it means `{meant}`, it would restrict the command, so the file is not used; \
         correct the name or take the line out"
    ))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(_) | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn excluded(value: &Value) -> Option<String> {
    let words = match value {
        Value::String(text) => ToolWords::One(text.clone()).list(),
        Value::Array(words) => {
            let words = words.iter().filter_map(Value::as_str);
            words.map(str::to_owned).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    words.into_iter().find(|word| takes_out(word))
}

/// Returns the name of a command and the other names that it answers to.
fn names(
    folder: &CommandFolder,
    path: &Path,
    given: Option<&str>,
) -> Result<(String, Vec<String>), String> {
    let below = relative(folder, path);
    let below = below
        .strip_suffix(folder.format.extension())
        .unwrap_or(&below);
    let parts: Vec<String> = below.split('/').map(one_word).collect();
    let own = parts.join(":");
    let (name, aliases) = match (folder.format, given) {
        (CommandFormat::Prompt, Some(given)) => (one_word(given), Vec::new()),
        (CommandFormat::Opencode, _) if parts.len() > 1 => (own, vec![parts.join("/")]),
        (CommandFormat::Claude, _) if parts.len() > 1 => {
            (own, parts.last().cloned().into_iter().collect())
        }
        (CommandFormat::Prompt | CommandFormat::Opencode | CommandFormat::Claude, _) => {
            (own, Vec::new())
        }
    };
    if name.is_empty() {
        return Err("the command has no name".to_owned());
    }
    if name.chars().count() > LONGEST_NAME {
        return Err(format!(
            "the name is longer than {LONGEST_NAME} characters; shorten it"
        ));
    }
    let is_wrong = |letter: char| letter.is_control() || "/\\`$\"'".contains(letter);
    if name.chars().any(is_wrong) {
        return Err(format!(
            "the name {name:?} has a character that people cannot type as a command; use letters, digits \
             and dashes"
        ));
    }
    Ok((name, aliases))
}

/// Joins the words of a name with dashes.
fn one_word(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join("-")
}

/// Returns the path of a file below its folder, with slashes.
fn relative(folder: &CommandFolder, path: &Path) -> String {
    let below = path.strip_prefix(&folder.path).unwrap_or(path);
    let parts: Vec<String> = below
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    parts.join("/")
}

fn real(project: &Path) -> std::path::PathBuf {
    project
        .canonicalize()
        .unwrap_or_else(|_| project.to_owned())
}

fn shown_hint(hint: &Value) -> String {
    match hint {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(words) => {
            let words: Vec<String> = words.iter().map(shown_hint).collect();
            format!("[{}]", words.join(", "))
        }
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => hint.to_string(),
    }
}

fn first_line(body: &str) -> String {
    let mut plain = body.lines().map(|line| line.trim_start_matches('#').trim());
    let line = plain.find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= LONGEST_FIRST_LINE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(LONGEST_FIRST_LINE).collect();
    format!("{}…", cut.trim_end())
}

fn line_with(text: &str, what: &str) -> usize {
    let mut lines = text.lines();
    lines
        .position(|line| line.contains(what))
        .map_or(1, |at| at + 1)
}

/// Returns the model that a file names. Copilot adds the vendor in parentheses.
fn named_model(model: OneOrMany, format: CommandFormat) -> Option<String> {
    let name = match model {
        OneOrMany::One(name) => name,
        OneOrMany::Many(names) => names.into_iter().next()?,
    };
    let name = match format {
        CommandFormat::Prompt => name.split(" (").next().unwrap_or_default(),
        CommandFormat::Claude | CommandFormat::Opencode => &name,
    };
    let name = name.trim();
    (!name.is_empty() && name != "inherit").then(|| name.to_owned())
}

/// Returns the agent that a file names. Some names of prompt files mean modes of an editor.
fn named_agent(
    agent: Option<String>,
    format: CommandFormat,
    line: impl Fn() -> usize,
    path: &Path,
    remarks: &mut Vec<Problem>,
) -> Option<String> {
    let name = agent?.trim().to_owned();
    match (format, name.as_str()) {
        (_, "") | (CommandFormat::Prompt, "agent") => None,
        (CommandFormat::Prompt, "ask" | "edit") => {
            let what = format!("`{name}` is a mode of an editor; the usual agent answers");
            remarks.push(Problem::at(path, line(), what));
            None
        }
        (CommandFormat::Claude | CommandFormat::Prompt | CommandFormat::Opencode, _) => Some(name),
    }
}
