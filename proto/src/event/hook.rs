//! Events about hooks: one was started, reports progress, has ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::id::ToolCallId;

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookStart {
    pub hook_invocation_id: String,
    pub hook_type: String,
    pub input: Option<Value>,
}

/// A hook has ended. The event is stored only if the hook changed something.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookEnd {
    pub hook_invocation_id: String,
    pub hook_type: String,
    pub success: bool,
    #[serde(default, deserialize_with = "crate::json::present")]
    pub output: Option<Value>,
    pub error: Option<HookError>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookError {
    pub message: String,
    /// Where the hook comes from: a file and line, or a client.
    pub source: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookProgress {
    pub message: String,
    /// The message replaces the one before it.
    pub temporary: Option<bool>,
}

/// Our own fact: whether hooks of clients guard the session. While they do, no tool call runs that
/// they were not asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientGuard {
    pub by_client: bool,
    /// The apps that guard; empty for one app without a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<GuardingApp>,
}

/// An app whose hooks guard a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardingApp {
    /// Its `clientName`; empty if it has none.
    #[serde(default)]
    pub name: String,
    /// How many of its clients guard at the same time.
    pub count: u32,
}

/// Our own fact: guards of these folders came into force: hooks that guard, or rules of settings that
/// deny or ask. They stay in force for the session, wherever it works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardFolders {
    pub folders: Vec<GuardFolder>,
}

/// A folder whose guards are in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardFolder {
    pub path: String,
    /// The root of the project that the folder is part of.
    pub root: String,
    /// Whether the folder is a plugin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plugin: bool,
}

/// Our own fact: the folders of hooks that an app named, and what was in them at that moment. It replaces
/// what an app named before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VouchedHooks {
    pub folders: Vec<VouchedFolder>,
}

/// A folder that an app vouches for with exactly this content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VouchedFolder {
    /// The folder, without links.
    pub path: String,
    /// The hashes of its hooks.
    pub hooks: Vec<String>,
    /// Those of its hooks that guard. One that is not there any more goes on guarding: it denies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guards: Vec<VouchedGuard>,
}

/// What is remembered of a guard.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VouchedGuard {
    pub hash: String,
    /// The kind as the file spells it.
    pub event: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub matcher: String,
    #[serde(rename = "if")]
    pub condition: Option<String>,
    pub file: String,
    pub line: usize,
    /// What it did, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
}

/// Our own fact: a hook has something to tell the model, after the results of the turn.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextAdded {
    pub text: String,
    pub tool_call_id: Option<ToolCallId>,
}

/// Our own fact: a hook that saw the result of a call stops the agent: the loop ends with the results of
/// the turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookStopped {
    pub tool_call_id: ToolCallId,
    /// Which hook, and why.
    pub reason: String,
}

/// Our own fact: a hook did not let the loop end, for the `count`th time in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StopBlocked {
    /// What the model reads instead.
    pub reason: String,
    pub count: u32,
}
