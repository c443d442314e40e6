//! Reads one hook of a file.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::definition::{
    DEFAULT_TIMEOUT, HookAction, HookCondition, HookPlace, LONGEST_TIMEOUT, OnFailure,
};
use super::kind::{HookKind, PayloadForm};
use super::matcher::HookMatcher;

/// The members that a hook may have.
pub(super) const MEMBERS: [&str; 25] = [
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
    "matcher",
    "name",
    "onFailure",
    "once",
    "powershell",
    "prompt",
    "shell",
    "statusMessage",
    "timeout",
    "timeoutSec",
    "type",
    "url",
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
    exec: Option<String>,
    args: Option<Vec<String>>,
    shell: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    timeout_sec: Option<Value>,
    timeout: Option<Value>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    allowed_env_vars: Vec<String>,
    prompt: Option<String>,
    on_failure: Option<String>,
    #[serde(default, rename = "async")]
    in_background: bool,
    #[serde(default)]
    async_rewake: bool,
    #[serde(default)]
    once: bool,
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
    /// Something to report although the hook is used.
    pub(super) notice: Option<String>,
}

/// Reads an entry. The error says why it cannot be used.
pub(super) fn read(
    kind: HookKind,
    form: PayloadForm,
    group: Option<&str>,
    text: &str,
) -> Result<ReadEntry, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let entry: HookEntry = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let member = error.path().to_string();
        format!("`{member}`: {}", without_place(&error.into_inner()))
    })?;
    if entry.async_rewake {
        return Err("`asyncRewake` is not supported; use `async`".to_owned());
    }
    let matcher = group.or(entry.matcher.as_deref()).unwrap_or_default();
    let notice = (kind.subject().is_none() && !matcher.is_empty())
        .then(|| format!("`matcher` is not used: hooks of {kind} run every time"));
    let matcher = if notice.is_some() { "" } else { matcher };
    let matcher = HookMatcher::read(matcher, form)
        .map_err(|error| format!("`matcher` is no regular expression: {error}"))?;
    Ok(ReadEntry {
        matcher,
        condition: condition(kind, entry.condition.as_deref())?,
        timeout: timeout(entry.timeout_sec.as_ref().or(entry.timeout.as_ref()))?,
        on_failure: on_failure(entry.on_failure.as_deref())?,
        in_background: entry.in_background,
        once: entry.once,
        status_message: entry.status_message.clone(),
        notice,
        action: action(kind, entry)?,
    })
}

fn action(kind: HookKind, entry: HookEntry) -> Result<HookAction, String> {
    match entry.action.as_deref() {
        None | Some("command") => command(entry),
        Some("http") => http(kind, entry),
        Some("prompt") if kind == HookKind::SessionStart => match entry.prompt {
            Some(prompt) if !prompt.trim().is_empty() => Ok(HookAction::Prompt { prompt }),
            _ => Err("`prompt` has to be text".to_owned()),
        },
        Some("prompt") => {
            Err("a hook of type `prompt` is only possible for sessionStart".to_owned())
        }
        Some(other) => Err(format!(
            "the type `{other}` is not supported; the types are `command`, `http` and `prompt`"
        )),
    }
}

fn command(entry: HookEntry) -> Result<HookAction, String> {
    let place = HookPlace {
        cwd: entry.cwd.map(PathBuf::from),
        env: entry.env,
    };
    if let Some(shell) = entry.shell.filter(|shell| shell != "bash") {
        return Err(format!(
            "the shell `{shell}` is not supported on this system"
        ));
    }
    if let Some(program) = entry.exec {
        if entry.bash.or(entry.powershell).or(entry.command).is_some() {
            return Err("`exec` cannot be combined with `bash`, `powershell` or `command`".into());
        }
        let args = entry.args.unwrap_or_default();
        return not_empty("exec", program).map(|program| HookAction::Program {
            program,
            args,
            place,
        });
    }
    if let Some(script) = entry.bash {
        return not_empty("bash", script).map(|script| HookAction::Script { script, place });
    }
    let Some(command) = entry.command else {
        return Err(if entry.powershell.is_some() {
            "it has only `powershell`, which does not run on this system".to_owned()
        } else {
            "it needs one of `bash`, `command` and `exec`".to_owned()
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

fn http(kind: HookKind, entry: HookEntry) -> Result<HookAction, String> {
    let url = entry.url.ok_or("`url` is missing")?;
    let encrypted = url.starts_with("https://");
    if !encrypted && !is_local(&url) {
        return Err(format!("`url` has to begin with https://, not `{url}`"));
    }
    if !encrypted && kind.is_guard() {
        return Err(format!(
            "`url` of a {kind} hook has to begin with https://: its answer can allow a tool call"
        ));
    }
    if !encrypted && !entry.allowed_env_vars.is_empty() {
        return Err("with `allowedEnvVars` the `url` has to begin with https://".to_owned());
    }
    Ok(HookAction::Http {
        url,
        headers: entry.headers,
        allowed_env: entry.allowed_env_vars,
    })
}

/// Returns whether an address is unencrypted HTTP to this machine.
pub(super) fn is_local(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, _)| host),
        None => authority.split(':').next(),
    };
    let host = host.unwrap_or_default();
    !authority.contains('@')
        && (host == "localhost"
            || host
                .parse()
                .is_ok_and(|address: Ipv4Addr| address.is_loopback())
            || host
                .parse()
                .is_ok_and(|address: Ipv6Addr| address.is_loopback()))
}

fn timeout(value: Option<&Value>) -> Result<Duration, String> {
    let Some(value) = value else {
        return Ok(DEFAULT_TIMEOUT);
    };
    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    timeout
        .filter(|timeout| *timeout <= LONGEST_TIMEOUT)
        .ok_or_else(|| {
            let most = LONGEST_TIMEOUT.as_secs();
            format!("the timeout has to be a number of seconds above 0 and up to {most}")
        })
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

fn condition(kind: HookKind, text: Option<&str>) -> Result<Option<HookCondition>, String> {
    let Some(text) = text.map(str::trim) else {
        return Ok(None);
    };
    if kind.subject() != Some(super::kind::MatchSubject::Tool) {
        return Err(format!(
            "`if` is not possible: hooks of {kind} are for no tool"
        ));
    }
    let (tool, pattern) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').unwrap_or_default())),
    };
    let is_tool = tool
        .chars()
        .all(|letter| letter.is_alphanumeric() || "_-".contains(letter));
    if tool.is_empty() || !is_tool || pattern == Some("") {
        return Err(format!("`if` has to be like `Bash(git *)`, not `{text}`"));
    }
    Ok(Some(HookCondition {
        tool: tool.to_owned(),
        pattern: pattern.map(str::to_owned),
    }))
}

/// Returns what serde says without the line, which counts from the start of the entry.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}
