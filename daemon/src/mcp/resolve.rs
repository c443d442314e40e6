//! Turns the entry of a configuration into what is started or reached: variables are replaced, paths
//! are absolute, and the environment is complete.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_mcp::config::{
    CALL, Endpoint, IdentityProvider, Lifecycle, OAuthClient, Program, ProgramLogin, STARTUP,
    ServerConfig, ToolFilter, Transport, Trust,
};
use loopd_model::http::Url;

use crate::discovery::mcp::entry::{EntryGrant, EntryOAuth};
use crate::discovery::mcp::variables::{MissingVariable, expand};
use crate::discovery::mcp::{EntryTransport, McpEntry};
use crate::regular_file;

/// The variables that every server sees: what programs need to find their files, their language, the
/// network and the packages that they are made of. An entry names whatever else its server needs.
const SEEN: [&str; 40] = [
    "ALL_PROXY",
    "APPDATA",
    "COMSPEC",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANG",
    "LANGUAGE",
    "LOCALAPPDATA",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "NPM_CONFIG_REGISTRY",
    "PATH",
    "PATHEXT",
    "PIP_INDEX_URL",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SHELL",
    "SSH_AUTH_SOCK",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERNAME",
    "USERPROFILE",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "WAYLAND_DISPLAY",
];
const SEEN_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The largest file of variables.
const LARGEST_ENV_FILE: u64 = 256 * 1024;

/// What the texts of an entry may name.
pub struct Variables<'a> {
    /// The environment that programs of the session see, without secrets.
    pub seen: &'a BTreeMap<String, String>,
    /// The variables that an entry may name; `None` if its texts mean themselves.
    pub named: Option<&'a BTreeMap<String, String>>,
    /// Whether the values of `env` are names of variables.
    pub env_by_name: bool,
    /// Where relative paths begin.
    pub base: &'a Path,
    /// The working directory of the session.
    pub cwd: &'a Path,
    /// The folder of the plugin that the entry belongs to.
    pub plugin: Option<&'a Path>,
}

impl Variables<'_> {
    fn value(&self, name: &str) -> Option<String> {
        let folder = |path: &Path| Some(path.to_string_lossy().into_owned());
        match name {
            "workspaceFolder" => folder(self.base),
            "CLAUDE_PLUGIN_ROOT" | "COPILOT_PLUGIN_ROOT" | "PLUGIN_ROOT" => folder(self.plugin?),
            "CLAUDE_PROJECT_DIR" | "COPILOT_PROJECT_DIR" => folder(self.cwd),
            "userHome" => self.named?.get("HOME").cloned(),
            _ => self.named?.get(name).cloned(),
        }
    }

    fn text(&self, text: &str) -> Result<String, String> {
        if self.named.is_none() && self.plugin.is_none() {
            return Ok(text.to_owned());
        }
        expand(text, &|name| self.value(name)).map_err(|MissingVariable(name)| {
            match name.strip_prefix("input:") {
                Some(input) => format!(
                    "wants the input `{input}`, which nobody is asked for here; write ${{VARIABLE}} \
                     in its place"
                ),
                None => MissingVariable(name).to_string(),
            }
        })
    }

    fn texts(&self, map: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, String> {
        let texts = map.iter();
        texts
            .map(|(name, text)| Ok((name.clone(), self.text(text)?)))
            .collect()
    }

    /// Returns the environment that every server sees.
    fn environment(&self) -> BTreeMap<String, String> {
        let is_seen = |name: &str| {
            let upper = name.to_ascii_uppercase();
            SEEN.contains(&upper.as_str())
                || SEEN_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
        };
        let seen = self.seen.iter().filter(|(name, _)| is_seen(name));
        seen.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Returns a value of `env`.
    fn env_value(&self, name: &str, value: &str) -> Result<String, String> {
        if !self.env_by_name {
            return self.text(value);
        }
        let plain = value.trim_start_matches('$').trim_matches(['{', '}']);
        let known = self.named.and_then(|named| named.get(plain));
        let known = known.or_else(|| self.seen.get(plain)).cloned();
        known.ok_or_else(|| {
            format!("takes `{name}` from the variable {plain}, which is not set; set it first")
        })
    }
}

/// Resolves an entry. The error says what is wrong with it.
pub fn resolve(
    name: &str,
    entry: &McpEntry,
    variables: &Variables<'_>,
) -> Result<ServerConfig, String> {
    let transport = match &entry.transport {
        EntryTransport::Stdio {
            command,
            args,
            env,
            env_names,
            env_file,
            cwd,
        } => {
            let mut complete = variables.environment();
            if let Some(file) = env_file {
                let file = variables.base.join(variables.text(file)?);
                complete.extend(env_file_of(&file)?);
            }
            let handed_on = env_names.iter().filter_map(|name| {
                let value = variables.named?.get(name)?;
                Some((name.clone(), value.clone()))
            });
            complete.extend(handed_on);
            for (name, value) in env {
                let value = variables.env_value(name, value)?;
                complete.insert(name.clone(), value);
            }
            let args = args.iter().map(|arg| variables.text(arg));
            Transport::Stdio(Program {
                command: program(&variables.text(command)?, variables.base),
                args: args.collect::<Result<_, _>>()?,
                env: complete,
                cwd: folder(cwd.as_deref(), variables)?,
            })
        }
        EntryTransport::Http {
            url,
            headers,
            env_headers,
            bearer_env,
            oauth,
        } => {
            let url = checked_url(&variables.text(url)?)?;
            let mut headers = variables.texts(headers)?;
            let of_variable = |variable: &str| {
                let value = variables.named.and_then(|named| named.get(variable));
                value.cloned().ok_or_else(|| {
                    format!("takes a header from the variable {variable}, which is not set")
                })
            };
            for (name, variable) in env_headers {
                headers.push((name.clone(), of_variable(variable)?));
            }
            if let Some(variable) = bearer_env {
                let token = of_variable(variable)?;
                headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
            }
            Transport::Http(Endpoint {
                url,
                headers,
                oauth: client(oauth, variables)?,
            })
        }
    };
    let is_remote = matches!(transport, Transport::Http(_));
    Ok(ServerConfig {
        name: name.to_owned(),
        display_name: entry.display_name.clone(),
        transport,
        startup_timeout: entry.startup_timeout.unwrap_or(STARTUP),
        call_timeout: entry.call_timeout.unwrap_or(CALL),
        tools: ToolFilter {
            include: entry.include.clone(),
            exclude: entry.exclude.clone(),
        },
        lifecycle: match entry.lifecycle.as_deref() {
            Some("initialize") => Lifecycle::Initialize,
            Some("discover") => Lifecycle::Discover,
            Some(_) => Lifecycle::Auto,
            None if is_remote => Lifecycle::Auto,
            None => Lifecycle::Initialize,
        },
        keeps_tools: entry.keeps_tools,
        is_shared: entry.is_shared,
        may_push: entry.may_push,
        trust: Trust::default(),
    })
}

fn client(oauth: &EntryOAuth, variables: &Variables<'_>) -> Result<OAuthClient, String> {
    let text = |text: &Option<String>| {
        let text = text.as_deref().map(|text| variables.text(text));
        text.transpose()
    };
    Ok(OAuthClient {
        client_id: text(&oauth.client_id)?,
        client_secret: text(&oauth.client_secret)?,
        is_public: oauth.is_public,
        private_key: text(&oauth.private_key)?,
        as_program: match &oauth.grant {
            EntryGrant::Person => None,
            EntryGrant::ClientCredentials => Some(ProgramLogin::ClientCredentials),
            EntryGrant::JwtBearer { assertion } => {
                Some(ProgramLogin::Assertion(variables.text(assertion)?))
            }
            EntryGrant::Enterprise {
                token_endpoint,
                client_id,
                id_token,
            } => Some(ProgramLogin::Organisation(IdentityProvider {
                token_endpoint: variables.text(token_endpoint)?,
                client_id: text(client_id)?,
                id_token: variables.text(id_token)?,
            })),
        },
        redirect_port: oauth.redirect_port,
        scopes: oauth.scopes.clone(),
        is_off: oauth.is_off,
    })
}

/// Returns the program to start. One with a path is meant from where its entry stands.
fn program(command: &str, base: &Path) -> String {
    let path = Path::new(command);
    if command.contains('/') && path.is_relative() {
        return base.join(path).to_string_lossy().into_owned();
    }
    command.to_owned()
}

fn folder(named: Option<&str>, variables: &Variables<'_>) -> Result<PathBuf, String> {
    let Some(named) = named else {
        return Ok(variables.cwd.to_owned());
    };
    let folder = variables.base.join(variables.text(named)?);
    if folder.is_dir() {
        Ok(folder)
    } else {
        let folder = folder.display();
        Err(format!(
            "has a working directory that does not exist: {folder}"
        ))
    }
}

fn checked_url(url: &str) -> Result<String, String> {
    let parsed =
        Url::parse(url).map_err(|error| format!("has a `url` that is not valid: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        let scheme = parsed.scheme();
        return Err(format!(
            "has a `url` that begins with {scheme}://; use https:// or http://"
        ));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("has a password in its `url`; use `headers` instead".to_owned());
    }
    Ok(url.to_owned())
}

/// Reads lines of `NAME=value`.
fn env_file_of(file: &Path) -> Result<Vec<(String, String)>, String> {
    let text = regular_file::read_text(file, LARGEST_ENV_FILE).map_err(|error| {
        format!(
            "names the file {}, which cannot be read: {error}",
            file.display()
        )
    })?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.filter_map(|line| {
        let (name, value) = line
            .strip_prefix("export ")
            .unwrap_or(line)
            .split_once('=')?;
        let value = value.trim();
        let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        Some((name.trim().to_owned(), value.to_owned()))
    });
    Ok(pairs.collect())
}

#[cfg(test)]
mod tests;
