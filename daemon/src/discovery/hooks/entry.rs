//! Reads one hook of a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loopd_proto::parse_error::plain;
use serde::Deserialize;
use serde_json::Value;

use super::definition::{
    DEFAULT_TIMEOUT, HookAction, HookCondition, HookPlace, LONGEST_TIMEOUT, OnFailure,
};
use super::kind::{HookKind, MatchSubject, PayloadForm};
use super::local_http::{LOCAL_HTTP_VARIABLE, LocalHttp, is_local};
use super::matcher::HookMatcher;
use super::unmatched;

/// The members that a hook may have.
pub(super) const MEMBERS: [&str; 28] = [
    "allowedEnvVars",
    "args",
    "async",
    "asyncRewake",
    "bash",
    "command",
    "comment",
    "cwd",
    "description",
    "env",
    "exec",
    "headers",
    "if",
    "linux",
    "matcher",
    "name",
    "onFailure",
    "once",
    "osx",
    "powershell",
    "prompt",
    "shell",
    "statusMessage",
    "timeout",
    "timeoutSec",
    "type",
    "url",
    "windows",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookEntry {
    #[serde(rename = "type")]
    action: Option<String>,
    matcher: Option<String>,
    #[serde(rename = "if")]
    condition: Option<String>,
    bash: Option<String>,
    powershell: Option<String>,
    command: Option<String>,
    /// In place of `command` on one system.
    linux: Option<String>,
    osx: Option<String>,
    windows: Option<String>,
    exec: Option<String>,
    args: Option<Vec<String>>,
    shell: Option<String>,
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    timeout_sec: Option<Value>,
    timeout: Option<Value>,
    url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    allowed_env_vars: Option<Vec<String>>,
    prompt: Option<String>,
    on_failure: Option<String>,
    #[serde(rename = "async")]
    in_background: Option<bool>,
    async_rewake: Option<bool>,
    once: Option<bool>,
    status_message: Option<String>,
}

/// What an entry says, its place in the file aside.
pub(super) struct ReadEntry {
    pub(super) matcher: HookMatcher,
    pub(super) condition: Option<HookCondition>,
    pub(super) action: HookAction,
    pub(super) timeout: Duration,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) in_background: bool,
    pub(super) once: bool,
    pub(super) status_message: Option<String>,
    /// What to report although the hook is used.
    pub(super) notices: Vec<String>,
}

/// Why an entry is not used.
#[derive(Debug)]
pub(super) enum Unusable {
    /// The format does not allow what it says.
    Mistake(String),
    /// The format allows it, and it cannot run here.
    NotHere(String),
}

impl Unusable {
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Mistake(why) | Self::NotHere(why) => why,
        }
    }
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Self::Mistake(why)
    }
}

impl From<&str> for Unusable {
    fn from(why: &str) -> Self {
        Self::Mistake(why.to_owned())
    }
}

/// What an entry gets from the list and the file that it stands in.
#[derive(Clone, Copy)]
pub(super) struct EntryContext<'a> {
    pub(super) kind: HookKind,
    pub(super) form: PayloadForm,
    /// The matcher of its group.
    pub(super) matcher: Option<&'a str>,
    pub(super) local_http: LocalHttp,
}

/// Reads an entry. The error says why it cannot be used.
pub(super) fn read(context: EntryContext<'_>, text: &str) -> Result<ReadEntry, Unusable> {
    let EntryContext { kind, form, .. } = context;
    let name = kind.name_in(form);
    let mut json = serde_json::Deserializer::from_str(text);
    let entry: HookEntry = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let text = without_place(error.inner());
        match error.path().to_string().as_str() {
            "." => text,
            member => format!("`{member}`: {text}"),
        }
    })?;
    if entry.async_rewake == Some(true) {
        let why = "`asyncRewake` is not supported; use `async`";
        return Err(Unusable::NotHere(why.to_owned()));
    }
    let mut notices = Vec::new();
    let text = context.matcher.or(entry.matcher.as_deref());
    let text = text.unwrap_or_default();
    let matcher = HookMatcher::read(text, form);
    let matcher = match (kind.subject(), matcher) {
        (None, Ok(HookMatcher::Every)) => HookMatcher::Every,
        (None, _) => {
            notices.push(format!(
                "`matcher` is not used: hooks of {name} run every time"
            ));
            HookMatcher::Every
        }
        (Some(subject), Ok(matcher)) => {
            if subject == MatchSubject::Tool {
                notices.extend(unmatched::in_matcher(text, &matcher, form));
            }
            matcher
        }
        (Some(_), Err(error)) => {
            let why = format!("its `matcher` cannot be used as a regular expression: {error}");
            return Err(Unusable::NotHere(why));
        }
    };
    let timeout = entry.timeout_sec.as_ref().or(entry.timeout.as_ref());
    let timeout = timeout_of(timeout, &mut notices)?;
    let in_background = entry.in_background == Some(true);
    if in_background && kind.is_guard() {
        notices.push(format!(
            "this {name} hook cannot deny anything: with `async` nobody waits for its answer"
        ));
    }
    if entry.once == Some(true) && kind.is_guard() {
        notices.push(format!(
            "this {name} hook guards only the first call: with `once` it is not asked again in a session"
        ));
    }
    let condition = condition(context, entry.condition.as_deref())?;
    let tool = condition.as_ref().map(|condition| condition.tool.as_str());
    notices.extend(tool.and_then(unmatched::in_condition));
    Ok(ReadEntry {
        matcher,
        condition,
        timeout,
        on_failure: on_failure(entry.on_failure.as_deref())?,
        in_background,
        once: entry.once == Some(true),
        status_message: entry.status_message.clone(),
        notices,
        action: action(context, entry)?,
    })
}

fn action(context: EntryContext<'_>, entry: HookEntry) -> Result<HookAction, Unusable> {
    match entry.action.as_deref() {
        None | Some("command") => command(entry),
        Some("http") => http(context, entry),
        Some("prompt") if context.kind == HookKind::SessionStart => match entry.prompt {
            Some(prompt) if !prompt.trim().is_empty() => Ok(HookAction::Prompt { prompt }),
            _ => Err("`prompt` has to be text".into()),
        },
        Some("prompt") => {
            let why = "a hook of type `prompt` is only possible for sessionStart".to_owned();
            Err(match context.form {
                PayloadForm::Native => Unusable::Mistake(why),
                // There a model judges the call.
                PayloadForm::Claude => Unusable::NotHere(why),
            })
        }
        Some(other) => {
            let why = format!(
                "the type `{other}` is not supported; the types are `command`, `http` and `prompt`"
            );
            Err(match other {
                "agent" | "mcp_tool" => Unusable::NotHere(why),
                _ => Unusable::Mistake(why),
            })
        }
    }
}

fn command(entry: HookEntry) -> Result<HookAction, Unusable> {
    let place = HookPlace {
        cwd: entry.cwd.map(PathBuf::from),
        env: entry.env.unwrap_or_default(),
    };
    let only_elsewhere = entry.powershell.is_some()
        || entry.windows.is_some()
        || entry.linux.is_some()
        || entry.osx.is_some();
    if let Some(shell) = entry.shell.filter(|shell| shell != "bash") {
        let why = format!("the shell `{shell}` is not supported on this system");
        return Err(Unusable::NotHere(why));
    }
    if let Some(program) = entry.exec {
        if entry.bash.or(entry.powershell).or(entry.command).is_some() {
            return Err("`exec` cannot be combined with `bash`, `powershell` or `command`".into());
        }
        let args = entry.args.unwrap_or_default();
        let program = not_empty("exec", program)?;
        return Ok(HookAction::Program {
            program,
            args,
            place,
        });
    }
    let of_this_system = if cfg!(target_os = "macos") {
        ("osx", entry.osx)
    } else {
        ("linux", entry.linux)
    };
    for (member, script) in [("bash", entry.bash), of_this_system] {
        if let Some(script) = script {
            let script = not_empty(member, script)?;
            return Ok(HookAction::Script { script, place });
        }
    }
    let Some(command) = entry.command else {
        return Err(if only_elsewhere {
            Unusable::NotHere("it has commands for other systems only".to_owned())
        } else {
            "it needs one of `bash`, `command` and `exec`".into()
        });
    };
    let command = not_empty("command", command)?;
    Ok(match entry.args {
        Some(args) => HookAction::Program {
            program: command,
            args,
            place,
        },
        None => HookAction::Script {
            script: command,
            place,
        },
    })
}

fn not_empty(member: &str, text: String) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("`{member}` is empty"));
    }
    Ok(text)
}

fn http(context: EntryContext<'_>, entry: HookEntry) -> Result<HookAction, Unusable> {
    let kind = context.kind;
    let url = entry.url.ok_or("`url` is missing")?;
    let encrypted = url.starts_with("https://");
    if !encrypted && !is_local(&url) {
        return Err(format!("`url` has to begin with https://, not `{url}`").into());
    }
    if !encrypted && kind.is_guard() {
        let why = "has to begin with https://: its answer can allow a tool call";
        let name = kind.name_in(context.form);
        return Err(format!("`url` of a {name} hook {why}").into());
    }
    let allowed_env = entry.allowed_env_vars.unwrap_or_default();
    if !encrypted && !allowed_env.is_empty() {
        return Err("with `allowedEnvVars` the `url` has to begin with https://".into());
    }
    if !encrypted && context.local_http == LocalHttp::Refused {
        return Err(Unusable::NotHere(format!(
            "`url` has to begin with https://; to allow addresses of this machine, set {LOCAL_HTTP_VARIABLE}=1"
        )));
    }
    Ok(HookAction::Http {
        url,
        headers: entry.headers.unwrap_or_default(),
        allowed_env,
    })
}

fn timeout_of(value: Option<&Value>, notices: &mut Vec<String>) -> Result<Duration, String> {
    let Some(value) = value else {
        return Ok(DEFAULT_TIMEOUT);
    };
    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
    let seconds = seconds.ok_or("the timeout has to be a number of seconds above 0")?;
    let timeout = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    if timeout > LONGEST_TIMEOUT {
        let most = LONGEST_TIMEOUT.as_secs();
        notices.push(format!(
            "the timeout of {seconds} is in seconds; the longest possible one, {most} seconds, is used"
        ));
    }
    Ok(timeout.min(LONGEST_TIMEOUT))
}

fn on_failure(text: Option<&str>) -> Result<Option<OnFailure>, String> {
    match text {
        None => Ok(None),
        Some("continue") => Ok(Some(OnFailure::Continue)),
        Some("block") => Ok(Some(OnFailure::Block)),
        Some(other) => Err(format!(
            "`onFailure` has to be `continue` or `block`, not `{other}`"
        )),
    }
}

fn condition(
    context: EntryContext<'_>,
    text: Option<&str>,
) -> Result<Option<HookCondition>, String> {
    let Some(text) = text.map(str::trim) else {
        return Ok(None);
    };
    if context.kind.subject() != Some(MatchSubject::Tool) {
        let name = context.kind.name_in(context.form);
        return Err(format!(
            "`if` is not possible: hooks of {name} are for no tool"
        ));
    }
    match condition_of(text) {
        Some(condition) => Ok(Some(condition)),
        None => Err(format!("`if` has to be like `Bash(git *)`, not `{text}`")),
    }
}

/// Reads the text of a condition.
pub(super) fn condition_of(text: &str) -> Option<HookCondition> {
    let (tool, pattern) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').unwrap_or_default())),
    };
    let is_tool = tool
        .chars()
        .all(|letter| letter.is_alphanumeric() || "_-".contains(letter));
    if tool.is_empty() || !is_tool || pattern == Some("") {
        return None;
    }
    Some(HookCondition {
        tool: tool.to_owned(),
        pattern: pattern.map(str::to_owned),
    })
}

/// Returns what serde says without the line, which counts from the start of the entry.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let text = plain(error);
    match text.rfind(" at line ") {
        Some(end) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}
