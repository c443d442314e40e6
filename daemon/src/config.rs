//! The settings of the daemon, and the one file that they come from: `config.toml` in the home.
//!
//! ```toml
//! model = "work/claude-sonnet-4-5"     # for sessions that name no model
//! fallback_models = ["work/gpt-5"]     # answer, in this order, when the provider of the model cannot
//! local = true                         # look for Ollama and llama.cpp on this machine
//! unattended_timeout = 1800            # after so many seconds without a client, idle shells are closed
//!                                      # and open questions no longer keep the daemon running
//! command_timeout = 3600               # so many seconds a client may take for a slash command of the queue
//!
//! [provider.work]
//! type = "anthropic"                   # openai (default), azure or anthropic
//! wire_api = "completions"             # or responses; openai and azure only
//! base_url = "https://gateway.example" # the vendor's own when absent
//! api_key_env = "WORK_API_KEY"         # the variable that holds the key; keys are never written here
//! model = "claude-sonnet-4-5"          # this provider's default
//! azure_api_version = "2024-10-21"     # azure only
//! max_context_tokens = 200000
//! max_output_tokens = 16000
//! vision = true
//!
//! [prices."claude-sonnet-4-5"]         # US dollars per million tokens, for limits in money
//! input = 3.0
//! output = 15.0
//! cache_read = 0.3                     # as input when absent; so is cache_write
//!
//! [limits]
//! retry_wait = 60                      # a model call waits so many seconds when its provider asks for it
//! provider_wait = 86400                # a turn waits so many seconds, across restarts; 0: it fails at once
//!
//! [shell]
//! backend = "terminal"                 # or process: no terminal, no input, no lasting state
//! plan_network = false                 # whether commands may use the network in plan mode
//!
//! [hooks]
//! stop_blocks = 8                      # how many times in a row hooks may keep an agent from stopping
//! client_timeout = 300                 # how many seconds an app may take to answer one of its hooks
//!
//! [rewind]
//! track_files = true                   # keep earlier versions of the files that tools change
//! session_mb = 256                     # at most so much per session; the oldest versions go first
//! workspace_mb = 32                    # copied of the working directory, to see what commands change
//! workspace_files = 20000              # files and folders of the working directory that are looked at
//!
//! [mcp]
//! enabled = true                       # whether sessions use MCP servers at all
//! idle_timeout = 1800                  # a server that nobody calls for so many seconds is ended
//! first_wait = 2.0                     # the first prompt waits so many seconds for servers that were never
//!                                      # started before; 0: it does not wait
//!
//! [titles]
//! model = "claude-haiku-4-5"           # makes titles of first messages; without it the message is the title
//!
//! [memory]
//! consolidate = false                  # when a session ends, its model notes on the context board what later ones need
//! least_messages = 4                   # of sessions with fewer messages of people no notes are made
//!
//! [agents]
//! small_model = "claude-haiku-4-5"     # for agents that want a small and fast model
//! critic_model = "gpt-5"               # for agents that want a model of another family
//! costly_models = ["*opus*"]           # a call gets these only where the session's own is one
//! max_depth = 6                        # how deep agents start agents, 1 to 32
//! max_concurrent = 8                   # how many run at once, 1 to 256; one per core when absent, at least 4
//! max_fleet_todos = 1000               # how many todos one fleet carries out, those included that workers add
//! max_wakes = 100                      # how many runs notifications of agents and commands start between two messages
//! fork = false                         # a call that names no agent continues a copy of the conversation
//! multi_turn = true                    # agents wait for more after they have answered
//!
//! [agents.models]
//! explore = "small"                    # the model of one agent: a name, inherit, small or other-family
//! ```
//!
//! `LOOPD_SHELL_BACKEND` of a launch overrides `backend`; `LOOPD_UNATTENDED_TIMEOUT` overrides
//! `unattended_timeout`; `LOOPD_AGENTS_MAX_DEPTH`,
//! `LOOPD_AGENTS_MAX_CONCURRENT` (or `COPILOT_SUBAGENT_MAX_DEPTH`,
//! `COPILOT_SUBAGENT_MAX_CONCURRENT`) and `LOOPD_AGENTS_FORK` override the settings in `[agents]`.
//!
//! The provider of a session is the first match of:
//!
//! 1. the models `offline` and `replay`, which are built in;
//! 2. the providers of the session: a model of its `providers`, else its `provider`;
//! 3. the Copilot API at `COPILOT_API_URL`;
//! 4. a provider of this file, `OPENAI_API_KEY` or `OPENAI_BASE_URL`, `ANTHROPIC_API_KEY` (at
//!    `ANTHROPIC_BASE_URL`), a local server if `LOOPD_LOCAL` or `local` asks for it; among several
//!    the one that the model names (`work/…`), for `claude…` one that speaks Anthropic's format, else
//!    the first in this order;
//! 5. the model `offline`.
//!
//! A session that names no model gets `LOOPD_MODEL`, else `model` of this file, else its first
//! provider's default, else the first model that provider lists. Variables are those of the launch
//! that opened the session, never the daemon's own.

mod beside;
mod commands;
mod mcp;
mod prices;
mod provider_waits;

use loopd_proto::parse_error::plain;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::regular_file;
use crate::subagent::definitions::AgentSettings;
use crate::tool::capture::RewindSettings;
use beside::{MemorySettings, TitleSettings};
pub use commands::CommandTimeout;
use loopd_exec::sandbox::NetworkAccess;
use loopd_model::retry::RetryPolicy;
use mcp::McpSettings;
use prices::Prices;
use provider_waits::WaitSettings;

/// The name of the file in the home.
pub const FILE: &str = "config.toml";
/// The maximum size of the file.
const LARGEST: u64 = 1024 * 1024;

/// The settings of the daemon.
#[derive(Debug, Default)]
pub struct Config {
    pub retry: RetryPolicy,
    pub waits: WaitSettings,
    pub prices: Prices,
    /// The models that answer when the provider of the model cannot, for sessions that name none.
    pub fallback_models: Vec<String>,
    pub shell: ShellSettings,
    pub agents: AgentSettings,
    pub models: ModelSettings,
    pub unattended: UnattendedTimeout,
    pub command_timeout: CommandTimeout,
    pub hooks: HookSettings,
    pub rewind: RewindSettings,
    pub mcp: McpSettings,
    pub titles: TitleSettings,
    pub memory: MemorySettings,
    /// A hash of the text of the file; `None` without a readable file.
    fingerprint: Option<u64>,
}

/// How long idle shells and open questions are kept for a person who may come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnattendedTimeout(pub Duration);

impl Default for UnattendedTimeout {
    fn default() -> Self {
        Self(Duration::from_secs(30 * 60))
    }
}

impl UnattendedTimeout {
    /// The variable of a launch that overrides the setting, in seconds.
    pub const VARIABLE: &'static str = "LOOPD_UNATTENDED_TIMEOUT";

    /// Returns the time for a launch with this value of the variable.
    pub fn with(self, variable: Option<&str>) -> Duration {
        let seconds = variable.and_then(|text| text.trim().parse().ok());
        seconds.map_or(self.0, Duration::from_secs)
    }
}

/// How hooks are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HookSettings {
    /// How many times in a row hooks may keep the loop from ending.
    pub stop_blocks: u32,
    /// How many seconds a client may take to answer a hook.
    client_timeout: u32,
}

impl Default for HookSettings {
    fn default() -> Self {
        Self {
            stop_blocks: 8,
            client_timeout: 300,
        }
    }
}

impl HookSettings {
    pub fn client_timeout(self) -> Duration {
        Duration::from_secs(u64::from(self.client_timeout.max(1)))
    }
}

/// How sessions run shell commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShellSettings {
    pub backend: ShellBackend,
    /// Whether commands in plan mode may use the network.
    pub plan_network: bool,
}

impl ShellSettings {
    /// What commands in a sandbox may reach.
    pub fn sandbox_network(self) -> NetworkAccess {
        if self.plan_network {
            NetworkAccess::Allowed
        } else {
            NetworkAccess::Denied
        }
    }
}

/// Whether shell commands run in a terminal or as plain processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShellBackend {
    #[default]
    Terminal,
    Process,
}

impl ShellBackend {
    /// Parses the value of a variable; any other value is ignored, as if the variable were not set.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "terminal" => Some(Self::Terminal),
            "process" => Some(Self::Process),
            _ => None,
        }
    }
}

/// Models and providers for sessions that define none.
#[derive(Debug, Default)]
pub struct ModelSettings {
    pub model: Option<String>,
    pub local: bool,
    pub providers: BTreeMap<String, ProviderSettings>,
    /// Why the file could not be used; returned to requests that would need it.
    pub problem: Option<String>,
}

/// A provider in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderSettings {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub wire_api: Option<String>,
    pub base_url: Option<String>,
    /// The variable of the launch that holds the key.
    pub api_key_env: Option<String>,
    pub model: Option<String>,
    pub azure_api_version: Option<String>,
    pub max_context_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub vision: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConfigFile {
    model: Option<String>,
    fallback_models: Vec<String>,
    local: bool,
    unattended_timeout: Option<u64>,
    command_timeout: Option<NonZeroU64>,
    provider: BTreeMap<String, ProviderSettings>,
    prices: Prices,
    limits: WaitSettings,
    shell: ShellSettings,
    hooks: HookSettings,
    rewind: RewindSettings,
    mcp: McpSettings,
    titles: TitleSettings,
    memory: MemorySettings,
    agents: AgentSettings,
}

impl Config {
    /// Reads the file of a home; without a file all settings have their defaults. A mistake is
    /// logged.
    pub fn load(home: &Path) -> Self {
        let config = Self::load_quietly(home);
        if let Some(problem) = &config.models.problem {
            tracing::warn!("{problem}");
        }
        config
    }

    fn load_quietly(home: &Path) -> Self {
        let path = home.join(FILE);
        match regular_file::read_text(&path, LARGEST) {
            Ok(text) => Self {
                fingerprint: Some(fingerprint(&text)),
                ..Self::read(&text, &path.to_string_lossy())
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(error) => Self::broken(unreadable(&path, &error)),
        }
    }

    /// Reads the file again, and returns what is wrong with it, or that it is another one than these
    /// settings came from.
    pub fn problem_now(&self, home: &Path) -> Option<String> {
        let path = home.join(FILE);
        let now = match regular_file::read_text(&path, LARGEST) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Some(unreadable(&path, &error)),
        };
        if now.as_deref().map(fingerprint) == self.fingerprint {
            return self.models.problem.clone();
        }
        let mistake =
            now.and_then(|text| Self::read(&text, &path.to_string_lossy()).models.problem);
        Some(mistake.unwrap_or_else(|| {
            format!(
                "{} was changed after the daemon started, which still uses what it read then; \
                 to use it now: loop daemon stop",
                path.display()
            )
        }))
    }

    /// Reads the text of the file. A mistake in it is reported with the first model request.
    fn read(text: &str, path: &str) -> Self {
        let file = match ConfigFile::parse(text) {
            Ok(file) => file,
            Err(mistake) => return Self::broken(format!("{path}, {mistake}")),
        };
        let models = match file.problem() {
            Some(problem) => ModelSettings {
                problem: Some(format!("{path}: {problem}")),
                ..ModelSettings::default()
            },
            None => ModelSettings {
                model: file.model,
                local: file.local,
                providers: file.provider,
                problem: None,
            },
        };
        Self {
            retry: file.limits.for_calls(),
            waits: file.limits,
            prices: file.prices,
            fallback_models: file.fallback_models,
            shell: file.shell,
            mcp: file.mcp,
            titles: file.titles,
            memory: file.memory,
            hooks: file.hooks,
            rewind: file.rewind,
            agents: file.agents,
            models,
            unattended: file
                .unattended_timeout
                .map(|seconds| UnattendedTimeout(Duration::from_secs(seconds)))
                .unwrap_or_default(),
            command_timeout: file
                .command_timeout
                .map(|seconds| CommandTimeout(Duration::from_secs(seconds.get())))
                .unwrap_or_default(),
            ..Self::default()
        }
    }

    fn broken(problem: String) -> Self {
        let models = ModelSettings {
            problem: Some(problem),
            ..ModelSettings::default()
        };
        Self {
            models,
            ..Self::default()
        }
    }

    /// Lists the variables that hold keys; child processes must not see them.
    pub fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.models
            .providers
            .values()
            .filter_map(|provider| provider.api_key_env.as_deref())
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}

fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The providers that a launch may bring by its environment.
const OF_LAUNCH: [&str; 3] = ["openai", "anthropic", "local"];

impl ConfigFile {
    /// Returns what cannot work although each value is well formed.
    fn problem(&self) -> Option<String> {
        if let Some(name) = self.provider.keys().find(|name| name.contains('/')) {
            return Some(format!(
                "the provider `{name}` has a `/` in its name; choose another name"
            ));
        }
        if self
            .titles
            .model
            .as_deref()
            .is_some_and(|model| model.trim().is_empty())
        {
            return Some(
                "[titles] model: the name is empty; name a model, or remove it".to_owned(),
            );
        }
        let known = |name: &str| self.provider.contains_key(name) || OF_LAUNCH.contains(&name);
        self.fallback_models.iter().find_map(|model| {
            if model.trim().is_empty() {
                return Some("fallback_models: a name is empty; name a model, or remove it".to_owned());
            }
            // Without a provider in this file, a name with a slash may be that of a model.
            let (provider, _) = model.split_once('/').filter(|_| !self.provider.is_empty())?;
            (!known(provider)).then(|| {
                format!(
                    "fallback_models: `{model}` names the provider `{provider}`, which there is not; add the table \
                     [provider.{provider}], or write the name of its provider before the model"
                )
            })
        })
    }

    /// Parses the file; an error names the line and the fix.
    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                let before = text.get(..span.start).unwrap_or_default();
                before.matches('\n').count() + 1
            });
            // Only the message is used: the line itself may hold a key that does not belong there.
            let message = plain(&error.message());
            let hint = if message.contains("`api_key`") {
                "; keys are never written into this file: put the key into a variable and name that with api_key_env"
            } else {
                ""
            };
            let key = named_on(text, line).map_or_else(String::new, |key| format!("`{key}`: "));
            // Some messages name the key already.
            let key = if message.contains(key.trim_end_matches(": ")) {
                String::new()
            } else {
                key
            };
            format!("line {line}: {key}{message}{hint}")
        })
    }
}

/// Returns the key that a line sets. What is no plain name is not shown: it may be a secret.
fn named_on(text: &str, line: usize) -> Option<&str> {
    let line = text.lines().nth(line.checked_sub(1)?)?;
    let key = line.split_once('=')?.0.trim();
    let is_plain = |it: char| it.is_ascii_lowercase() || it == '_';
    (!key.is_empty() && key.len() <= 40 && key.chars().all(is_plain)).then_some(key)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests;
