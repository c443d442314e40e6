//! Methods about models.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::id::SessionId;
use crate::provider::CapabilitiesOverride;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Models {
    pub models: Vec<Model>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionModels {
    pub list: Vec<Model>,
}

/// A model as the public schema describes it; names below `capabilities` are a vendor's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Model {
    pub id: String,
    pub name: String,
    pub capabilities: Capabilities,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Capabilities {
    pub supports: Supports,
    pub limits: Limits,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Supports {
    pub vision: bool,
    pub reasoning_effort: bool,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Limits {
    pub max_context_window_tokens: u64,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ChoiceParams {
    /// The model a session would name; absent when it would leave the choice to the daemon.
    #[serde(default)]
    pub model: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourcesParams {
    /// Asks this source for the models that it has. Nothing is asked of a vendor otherwise.
    pub models_of: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSources {
    pub sources: Vec<ModelSource>,
}

/// A provider that could be used, because its key is there or because it runs on this machine.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSource {
    /// The name that it would have in `config.toml`.
    pub name: String,
    /// Why it is offered, in words.
    pub found: String,
    /// The variable that holds its key.
    pub variable: Option<String>,
    pub base_url: String,
    /// The models that it has, if they are known.
    pub models: Vec<String>,
    /// The table for `config.toml`, without a model.
    pub config: String,
}

/// The provider and model that a new session of this launch would use.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice {
    /// The provider's name: `copilot`, `openai`, one of the configuration file, …
    pub provider: String,
    pub model: String,
    /// The provider's address; absent for the built-in model.
    pub base_url: Option<String>,
    pub has_key: bool,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Current {
    pub model_id: Option<String>,
    pub reasoning_effort: Option<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SwitchParams {
    pub session_id: SessionId,
    pub model_id: String,
    #[serde(default)]
    pub reasoning_effort: Option<String>,
    #[serde(default)]
    pub reasoning_summary: Option<String>,
    #[serde(default)]
    pub context_tier: Option<String>,
    #[serde(default)]
    pub model_capabilities: Option<CapabilitiesOverride>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Switched {
    pub model_id: String,
    pub deferred: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffortParams {
    pub session_id: SessionId,
    pub reasoning_effort: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effort {
    pub reasoning_effort: String,
}
