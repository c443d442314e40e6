//! Methods that list the hooks of files.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::discovery::FileProblem;
use crate::event::hook::GuardingApp;
use crate::id::SessionId;

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct HookListParams {
    /// The directory of the session that the hooks would be for; that of the launch when absent.
    pub cwd: Option<String>,
}

/// The hooks for sessions of a directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookList {
    /// In the order of their origins: policy, user, project, plugins.
    pub hooks: Vec<ListedHook>,
    /// What is wrong with files, and which hooks do not run for want of trust.
    pub problems: Vec<FileProblem>,
}

/// A hook of a file.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedHook {
    /// The name of the event as the file spells it.
    pub event: String,
    /// `policy`, `user`, `project`, `plugin` or `agent`.
    pub origin: String,
    pub file: String,
    pub line: usize,
    /// What it is for: tools, agents, notifications; every time when absent.
    pub matcher: Option<String>,
    /// The condition on the call.
    #[serde(rename = "if")]
    pub condition: Option<String>,
    pub action: HookActionKind,
    /// The script, the program with its arguments, the address or the prompt.
    pub command: String,
    /// The files of the project that the command names, and that are trusted with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    pub timeout_sec: f64,
    pub state: ListedHookState,
    /// Why it does not run, and what to do.
    pub why: Option<String>,
    pub hash: String,
    /// How often it ran since the daemon started.
    pub runs: Option<u64>,
    /// How long its last run took, in milliseconds.
    pub last_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookActionKind {
    Command,
    Http,
    Prompt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ListedHookState {
    Runs,
    /// Its folder is not trusted with it.
    Untrusted,
    /// A `disableAllHooks` turns it off.
    Off,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct HookTestParams {
    /// The file, as seen from `cwd`.
    pub file: String,
    /// The event, in any spelling.
    pub event: String,
    /// The directory that the hooks run in; that of the launch when absent.
    #[serde(default)]
    pub cwd: Option<String>,
}

/// How the hooks of a file ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookTested {
    pub hooks: Vec<TriedHook>,
    /// What is wrong with the file.
    pub problems: Vec<FileProblem>,
}

/// A hook that was run with a payload of made-up values.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedHook {
    pub line: usize,
    pub command: String,
    pub payload: serde_json::Value,
    /// What it answered; absent if it had nothing to say.
    pub output: Option<serde_json::Value>,
    /// Why it has no answer.
    pub error: Option<String>,
    /// What its answer, or its failure, would come to in a session; absent if that is nothing.
    #[serde(default)]
    pub effect: Option<String>,
    /// What of its answer does not do what it seems to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    pub milliseconds: u64,
}

/// What it means that the user's own files of hooks are accepted as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HooksAccepted {
    /// The guards that these files had and that are not wanted any more, each with its place.
    pub given_up: Vec<FileProblem>,
    /// The guards in these files that are new, or changed, and count in full from now on.
    pub added: Vec<FileProblem>,
    /// The settings that turn off all hooks from now on.
    pub turned_off_by: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GuardLiftParams {
    pub session_id: SessionId,
    /// Whether apps that are attached are lifted, too. They are still asked while they are there, and
    /// not waited for when they leave.
    #[serde(default)]
    pub attached: bool,
}

/// Which apps do not guard a session any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardLifted {
    /// Whether there was one to lift.
    pub lifted: bool,
    /// The apps that the session does not wait for any more.
    #[serde(default)]
    pub apps: Vec<GuardingApp>,
    /// The apps that go on guarding the session, because they are attached.
    #[serde(default)]
    pub attached: Vec<GuardingApp>,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HooksParams {
    pub project_paths: Option<Vec<String>>,
    pub exclude_host_hooks: bool,
    /// Folders of hooks, as `session.create` takes them.
    pub hook_directories: Option<Vec<String>>,
}

/// The hooks that were found, and what is wrong with files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscoveredHooks {
    pub hooks: Vec<DiscoveredHook>,
    pub warnings: Vec<String>,
    pub errors: Vec<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredHook {
    pub id: String,
    pub hook_type: String,
    /// `user`, `repository`, `plugin` or `policy`.
    pub origin: String,
    pub source: Option<String>,
    pub project_path: Option<String>,
    pub enabled: bool,
}
