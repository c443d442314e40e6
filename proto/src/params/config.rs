//! The configuration of the daemon.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

/// The file of settings, what it sets, and what can be set.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigShown {
    pub path: String,
    pub exists: bool,
    /// What is wrong with the file, or that the daemon still uses what it read earlier.
    pub problem: Option<String>,
    /// What the file sets, in its order. Only settings that are known are shown.
    pub set: Vec<SetValue>,
    pub settings: Vec<ConfigSetting>,
}

/// A value in the file; addresses are shown without passwords.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetValue {
    /// The key with its table: `provider.work.base_url`.
    pub key: String,
    pub value: Value,
}

/// Something that can be set.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSetting {
    /// The key with its table; `NAME` stands for a name that the user chooses.
    pub key: String,
    /// What the value is, in words.
    pub kind: String,
    pub default: Option<String>,
    pub help: String,
}
