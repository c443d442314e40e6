//! One server of a configuration, in any of the formats that programs use. The names of members do not
//! contradict each other, so that one reader takes them all.

use std::collections::BTreeMap;
use std::time::Duration;

use loopd_proto::params::discovery::McpTransport;
use serde_json::{Map, Value};

/// The longest name of a server.
const LONGEST_NAME: usize = 100;
/// The most arguments, variables, headers or names of tools.
const MOST_ITEMS: usize = 1_000;
/// The longest time that can be asked for.
const LONGEST_TIME: Duration = Duration::from_secs(24 * 3600);

/// Members that say something which does not matter here.
const OTHERS: [&str; 28] = [
    "alwaysAllow",
    "auth",
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
    "oauth",
    "oidc",
    "required",
    "safeForTelemetry",
    "scopes",
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

/// What an entry says about the login at a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryOAuth {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub is_public: Option<bool>,
    pub client_credentials: bool,
    pub redirect_port: Option<u16>,
    pub scopes: Vec<String>,
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

/// Takes members out of an entry.
struct Members<'a> {
    config: &'a Map<String, Value>,
    taken: Vec<&'a str>,
}

impl<'a> Members<'a> {
    /// Returns the first of these members that is there.
    fn get(&mut self, names: &[&'a str]) -> Option<(&'a str, &'a Value)> {
        self.taken.extend(names);
        let mut found = names
            .iter()
            .filter_map(|name| Some((*name, self.config.get(*name)?)));
        found.find(|(_, value)| !value.is_null())
    }

    fn text(&mut self, names: &[&'a str]) -> Result<Option<String>, String> {
        let found = self.get(names);
        found
            .map(|(name, value)| {
                let text = value.as_str().map(str::to_owned);
                text.ok_or_else(|| format!("has a `{name}` that is no text"))
            })
            .transpose()
    }

    fn flag(&mut self, names: &[&'a str]) -> Result<Option<bool>, String> {
        let found = self.get(names);
        found
            .map(|(name, value)| {
                let flag = value.as_bool();
                flag.ok_or_else(|| format!("has a `{name}` that is neither true nor false"))
            })
            .transpose()
    }

    fn texts(&mut self, names: &[&'a str]) -> Result<Option<Vec<String>>, String> {
        let Some((name, value)) = self.get(names) else {
            return Ok(None);
        };
        let wrong = || format!("has a `{name}` that is no list of texts");
        let list = value.as_array().ok_or_else(wrong)?;
        if list.len() > MOST_ITEMS {
            return Err(format!("has a `{name}` with more than {MOST_ITEMS} items"));
        }
        let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
        texts
            .collect::<Option<Vec<_>>>()
            .ok_or_else(wrong)
            .map(Some)
    }

    /// Returns a map of texts. Numbers and truth values are written as texts: people leave out quotes.
    fn map(&mut self, names: &[&'a str]) -> Result<BTreeMap<String, String>, String> {
        let Some((name, value)) = self.get(names) else {
            return Ok(BTreeMap::new());
        };
        let wrong = || format!("has a `{name}` that is no object of texts");
        let object = value.as_object().ok_or_else(wrong)?;
        if object.len() > MOST_ITEMS {
            return Err(format!(
                "has a `{name}` with more than {MOST_ITEMS} members"
            ));
        }
        let mut map = BTreeMap::new();
        for (key, value) in object {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                Value::Null => continue,
                Value::Array(_) | Value::Object(_) => return Err(wrong()),
            };
            map.insert(key.clone(), text);
        }
        Ok(map)
    }

    fn time(
        &mut self,
        milliseconds: &[&'a str],
        seconds: &[&'a str],
    ) -> Result<Option<Duration>, String> {
        let (found, unit) = match self.get(milliseconds) {
            Some(found) => (Some(found), 0.001),
            None => (None, 1.0),
        };
        let Some((name, value)) = found.or_else(|| self.get(seconds)) else {
            self.get(seconds);
            return Ok(None);
        };
        let number = value.as_f64().filter(|number| *number > 0.0);
        let number = number.ok_or_else(|| format!("has a `{name}` that is no number above 0"))?;
        let time = Duration::try_from_secs_f64(number * unit).unwrap_or(LONGEST_TIME);
        Ok(Some(time.min(LONGEST_TIME)))
    }
}

impl McpEntry {
    /// Reads an entry. The error says what is wrong with it.
    pub fn read(config: &Map<String, Value>) -> Result<Self, String> {
        let mut members = Members {
            config,
            taken: OTHERS.to_vec(),
        };
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
            lifecycle,
            unknown: Vec::new(),
        };
        let unknown = config
            .keys()
            .filter(|key| !members.taken.contains(&key.as_str()));
        Ok(Self {
            unknown: unknown.cloned().collect(),
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
    let grant = members.text(&["oauthGrantType"])?;
    let port = members.config.get("oauthRedirectPort");
    let port = port.or_else(|| members.config.get("auth")?.get("redirectPort"));
    let port = port
        .and_then(Value::as_u64)
        .and_then(|port| u16::try_from(port).ok());
    members.taken.push("oauthRedirectPort");
    let oauth = EntryOAuth {
        client_id: members.text(&["oauthClientId"])?,
        client_secret: members.text(&["oauthClientSecret"])?,
        is_public: members.flag(&["oauthPublicClient"])?,
        client_credentials: grant.as_deref() == Some("client_credentials"),
        redirect_port: port,
        scopes: members.texts(&["oauthScopes"])?.unwrap_or_default(),
    };
    members.taken.push("headersRefreshTtlMs");
    Ok(EntryTransport::Http {
        url,
        headers: members.map(&["headers", "http_headers"])?,
        env_headers: members.map(&["env_http_headers"])?,
        bearer_env: members.text(&["bearer_token_env_var"])?,
        oauth,
    })
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
