//! One server of a configuration, in any of the formats that programs use. The names of members do not
//! contradict each other, so that one reader takes them all.

mod members;
mod oauth;

use std::collections::BTreeMap;
use std::time::Duration;

use loopd_proto::params::discovery::McpTransport;
use serde_json::{Map, Value};

use self::members::Members;
pub use self::oauth::{EntryGrant, EntryOAuth};

/// The longest name of a server.
const LONGEST_NAME: usize = 100;
/// Members that say something which does not matter here.
const OTHERS: [&str; 24] = [
    "alwaysAllow",
    "autoApprove",
    "configWarnings",
    "deferTools",
    "description",
    "dev",
    "disableSecretMasking",
    "events",
    "experimental_environment",
    "filterMapping",
    "gallery",
    "icon",
    "isDefaultServer",
    "name",
    "notifications",
    "oidc",
    "safeForTelemetry",
    "source",
    "sourcePath",
    "sourcePlugin",
    "sourcePluginSpec",
    "sourcePluginVersion",
    "trust",
    "version",
];

/// A server as its entry says. Names of variables are not replaced yet.
#[derive(Debug, Clone, PartialEq)]
pub struct McpEntry {
    pub kind: McpTransport,
    pub transport: EntryTransport,
    pub display_name: Option<String>,
    pub enabled: bool,
    pub startup_timeout: Option<Duration>,
    pub call_timeout: Option<Duration>,
    pub include: Option<Vec<String>>,
    pub exclude: Vec<String>,
    /// Whether its list of tools may be kept on disk.
    pub keeps_tools: bool,
    /// Whether one process may serve several sessions.
    pub is_shared: bool,
    /// Whether it may push messages into the queue of a session.
    pub may_push: bool,
    /// `initialize`, `discover` or `auto`, if the entry says it.
    pub lifecycle: Option<String>,
    /// Members that nobody knows.
    pub unknown: Vec<String>,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryTransport {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        /// Variables that are handed on as they are.
        env_names: Vec<String>,
        env_file: Option<String>,
        cwd: Option<String>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        /// Headers whose values are in variables.
        env_headers: BTreeMap<String, String>,
        /// The variable with a token.
        bearer_env: Option<String>,
        oauth: EntryOAuth,
    },
}

/// Checks the name of a server. It becomes a part of the names of tools.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '}' | '\\');
    let is_named = !name.is_empty() && !name.starts_with('/') && !name.ends_with('/');
    if is_named && name.chars().count() <= LONGEST_NAME && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "needs a name of 1 to {LONGEST_NAME} letters without `}}`, `\\` and control characters"
    ))
}

impl McpEntry {
    /// Reads an entry. The error says what is wrong with it.
    pub fn read(config: &Map<String, Value>) -> Result<Self, String> {
        let mut members = Members {
            config,
            taken: OTHERS.to_vec(),
            unknown: Vec::new(),
        };
        refuse_sandbox(&mut members)?;
        let kind = kind(&mut members)?;
        let transport = match kind {
            McpTransport::Stdio => stdio(&mut members)?,
            McpTransport::Http | McpTransport::Sse => http(&mut members)?,
        };
        let enabled = members.flag(&["enabled"])?.unwrap_or(true)
            && members.flag(&["disabled"])? != Some(true);
        let startup_timeout = members.time(&["startup_timeout_ms"], &["startup_timeout_sec"])?;
        let call_timeout = members.time(&["timeout"], &["tool_timeout_sec"])?;
        let include = members.texts(&["tools", "enabled_tools", "includeTools"])?;
        let exclude = members.texts(&["excludeTools", "disabled_tools"])?;
        let lifecycle = members.text(&["lifecycle"])?;
        if let Some(lifecycle) = lifecycle.as_deref()
            && !matches!(lifecycle, "initialize" | "discover" | "auto")
        {
            return Err("has a `lifecycle` other than initialize, discover and auto".to_owned());
        }
        let entry = Self {
            kind,
            transport,
            display_name: members.text(&["displayName", "title"])?,
            enabled,
            // `timeout` is about the start as well as about calls.
            startup_timeout: startup_timeout.or(call_timeout),
            call_timeout,
            include,
            exclude: exclude.unwrap_or_default(),
            keeps_tools: members.flag(&["disableToolCache"])? != Some(true),
            is_shared: members.flag(&["shared"])? == Some(true),
            may_push: members.flag(&["push"])? == Some(true),
            lifecycle,
            unknown: Vec::new(),
        };
        if entry.is_shared && entry.may_push {
            return Err(
                "has both `shared` and `push`: a shared server cannot tell its sessions apart"
                    .to_owned(),
            );
        }
        let unknown = config
            .keys()
            .filter(|key| !members.taken.contains(&key.as_str()));
        Ok(Self {
            unknown: unknown.chain(&members.unknown).cloned().collect(),
            ..entry
        })
    }
}

fn kind(members: &mut Members<'_>) -> Result<McpTransport, String> {
    let kind = members.text(&["type", "transport"])?;
    let has = |member: &str| members.config.contains_key(member);
    match kind.as_deref() {
        Some("stdio" | "local") => Ok(McpTransport::Stdio),
        Some("http" | "streamable-http" | "streamable_http" | "streamableHttp" | "remote") => {
            Ok(McpTransport::Http)
        }
        Some("sse") => Ok(McpTransport::Sse),
        Some(_) => Err("has a `type` other than stdio, http and sse".to_owned()),
        None if has("command") => Ok(McpTransport::Stdio),
        None if has("url") => Ok(McpTransport::Http),
        None => Err("has neither a `command` nor a `url`".to_owned()),
    }
}

fn stdio(members: &mut Members<'_>) -> Result<EntryTransport, String> {
    let mut args = members.texts(&["args"])?.unwrap_or_default();
    let command = match members.get(&["command"]) {
        // opencode writes the command and its arguments in one list.
        Some((_, Value::Array(_))) => {
            let mut words = members.texts(&["command"])?.unwrap_or_default();
            if words.is_empty() {
                return Err("has an empty `command`".to_owned());
            }
            let command = words.remove(0);
            words.append(&mut args);
            args = words;
            command
        }
        Some(_) => members.text(&["command"])?.unwrap_or_default(),
        None => return Err("has no `command`".to_owned()),
    };
    if command.trim().is_empty() {
        return Err("has an empty `command`".to_owned());
    }
    Ok(EntryTransport::Stdio {
        command,
        args,
        env: members.map(&["env", "environment"])?,
        env_names: members.texts(&["env_vars"])?.unwrap_or_default(),
        env_file: members.text(&["envFile"])?,
        cwd: members.text(&["cwd", "workingDirectory"])?,
    })
}

fn http(members: &mut Members<'_>) -> Result<EntryTransport, String> {
    let url = members.text(&["url", "httpUrl", "serverUrl"])?;
    let url = url.ok_or("has no `url`")?;
    let oauth = oauth::read(members)?;
    members.taken.push("headersRefreshTtlMs");
    Ok(EntryTransport::Http {
        url,
        headers: members.map(&["headers", "http_headers"])?,
        env_headers: members.map(&["env_http_headers"])?,
        bearer_env: members.text(&["bearer_token_env_var"])?,
        oauth,
    })
}

/// A sandbox restricts a server; one that is not there must not be taken for one that is.
fn refuse_sandbox(members: &mut Members<'_>) -> Result<(), String> {
    let asks =
        members.flag(&["sandboxEnabled"])? == Some(true) || members.get(&["sandbox"]).is_some();
    if asks {
        return Err(
            "asks for a sandbox, which servers do not have here; leave `sandbox` and `sandboxEnabled` out"
                .to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step fails the test"
)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(entry: Value) -> Result<McpEntry, String> {
        let Value::Object(entry) = entry else {
            panic!("an entry is an object");
        };
        McpEntry::read(&entry)
    }

    #[test]
    fn the_formats_of_several_programs_are_read() {
        let copilot = read(
            json!({"type": "local", "command": "npx", "args": ["-y", "x"],
            "env": {"A": "$B", "PORT": 8}, "workingDirectory": "sub", "tools": ["*"], "timeout": 3000}),
        );
        let copilot = copilot.expect("an entry");
        assert_eq!(copilot.call_timeout, Some(Duration::from_secs(3)));
        assert_eq!(copilot.startup_timeout, Some(Duration::from_secs(3)));
        let EntryTransport::Stdio { env, cwd, args, .. } = copilot.transport else {
            panic!("a program");
        };
        assert_eq!(env.get("PORT").map(String::as_str), Some("8"));
        assert_eq!((cwd.as_deref(), args.len()), (Some("sub"), 2));

        let opencode = read(json!({"type": "local", "command": ["bun", "x", "y"],
            "environment": {"A": "1"}, "enabled": false}));
        let opencode = opencode.expect("an entry");
        assert!(!opencode.enabled);
        let EntryTransport::Stdio { command, args, .. } = opencode.transport else {
            panic!("a program");
        };
        assert_eq!((command.as_str(), args.join(" ").as_str()), ("bun", "x y"));

        let codex = read(json!({"url": "https://a", "bearer_token_env_var": "T",
            "http_headers": {"X": "1"}, "env_http_headers": {"Y": "V"}, "startup_timeout_sec": 2.5,
            "tool_timeout_sec": 60, "enabled_tools": ["a"], "disabled_tools": ["b"]}));
        let codex = codex.expect("an entry");
        assert_eq!(codex.kind, McpTransport::Http);
        assert_eq!(codex.startup_timeout, Some(Duration::from_millis(2500)));
        assert_eq!(codex.include, Some(vec!["a".to_owned()]));
        let EntryTransport::Http {
            bearer_env,
            env_headers,
            ..
        } = codex.transport
        else {
            panic!("an address");
        };
        assert_eq!(bearer_env.as_deref(), Some("T"));
        assert_eq!(env_headers.get("Y").map(String::as_str), Some("V"));

        let sse = read(
            json!({"type": "sse", "url": "https://a", "oauthClientId": "c",
            "oauthPublicClient": true, "oauthGrantType": "client_credentials", "colour": "red"}),
        );
        let sse = sse.expect("an entry");
        assert_eq!(
            (sse.kind, sse.unknown.as_slice()),
            (McpTransport::Sse, ["colour".to_owned()].as_slice())
        );
    }

    #[test]
    fn mistakes_are_named() {
        let table = [
            (json!({}), "neither a `command` nor a `url`"),
            (json!({"type": "pigeon"}), "a `type` other than"),
            (json!({"command": ""}), "an empty `command`"),
            (json!({"command": []}), "an empty `command`"),
            (json!({"command": 1}), "a `command` that is no text"),
            (
                json!({"command": "a", "args": "b"}),
                "a `args` that is no list of texts",
            ),
            (
                json!({"command": "a", "args": [1]}),
                "a `args` that is no list of texts",
            ),
            (
                json!({"command": "a", "env": {"A": []}}),
                "a `env` that is no object of texts",
            ),
            (
                json!({"command": "a", "timeout": -1}),
                "a `timeout` that is no number above 0",
            ),
            (
                json!({"command": "a", "disabled": "yes"}),
                "neither true nor false",
            ),
            (
                json!({"command": "a", "lifecycle": "x"}),
                "a `lifecycle` other than",
            ),
            (json!({"type": "http"}), "no `url`"),
            (
                json!({"command": "a", "sandboxEnabled": true}),
                "asks for a sandbox",
            ),
            (
                json!({"command": "a", "shared": true, "push": true}),
                "both `shared` and `push`",
            ),
        ];
        for (entry, expected) in table {
            let error = read(entry.clone()).expect_err("a mistake");
            assert!(error.contains(expected), "{entry}: {error}");
        }
        for name in ["", "a}b", "/a", "a\nb"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_name("GitHub MCP/v2").is_ok());
    }
}
