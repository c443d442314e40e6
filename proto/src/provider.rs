//! Model providers that a client configures, and their models.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The name of the provider that serves a whole session.
pub const DEFAULT_PROVIDER: &str = "default";

/// A model provider that the client configures.
#[skip_serializing_none]
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderConfig {
    pub name: Option<String>,
    /// `openai` (default), `azure` or `anthropic`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// `completions` (default) or `responses`.
    pub wire_api: Option<String>,
    pub base_url: Option<String>,
    pub api_key: Option<String>,
    pub bearer_token: Option<String>,
    pub has_bearer_token_provider: Option<bool>,
    pub azure: Option<AzureConfig>,
    pub headers: Option<BTreeMap<String, String>>,
    pub model_id: Option<String>,
    pub wire_model: Option<String>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// Set in stored configurations whose secret was left out.
    pub secret_withheld: Option<bool>,
}

/// The options of Azure.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureConfig {
    pub api_version: Option<String>,
}

impl ProviderConfig {
    /// Removes keys, tokens and headers, and records that there were some.
    pub(crate) fn strip_secrets(&mut self) {
        let held = self.api_key.take().is_some()
            | self.bearer_token.take().is_some()
            | self.headers.take().is_some();
        let address = self.base_url.as_deref().map(without_address_secrets);
        let held = held || address != self.base_url;
        self.base_url = address;
        if held {
            self.secret_withheld = Some(true);
        }
    }

    /// Returns the name that models, errors and token requests use.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(DEFAULT_PROVIDER)
    }

    /// Returns whether the client wants to be asked for a token before each request.
    pub fn asks_for_tokens(&self) -> bool {
        self.has_bearer_token_provider == Some(true)
    }
}

impl std::fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field(
                "base_url",
                &self.base_url.as_deref().map(without_address_secrets),
            )
            .finish_non_exhaustive()
    }
}

/// Returns the address without its user, its password and the parameters that are keys by their name.
pub fn without_address_secrets(address: &str) -> String {
    let (before, query) = match address.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (address, None),
    };
    let mut kept = match user_information(before) {
        Some((scheme, _, host)) => format!("{scheme}://{host}"),
        None => before.to_owned(),
    };
    let parameters = query.iter().flat_map(|query| query.split('&'));
    let parameters: Vec<&str> = parameters
        .filter(|parameter| !is_key(parameter.split('=').next().unwrap_or_default()))
        .collect();
    if !parameters.is_empty() {
        kept.push('?');
        kept.push_str(&parameters.join("&"));
    }
    kept
}

/// Returns the secrets that an address has in it: its user, its password and its keys.
pub fn address_secrets(address: &str) -> Vec<String> {
    let (before, query) = address.split_once('?').unwrap_or((address, ""));
    let user = user_information(before).map(|(_, user, _)| user);
    let user = user.into_iter().flat_map(|user| user.split(':'));
    let keys = query.split('&').filter_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        is_key(name).then_some(value)
    });
    user.chain(keys).map(str::to_owned).collect()
}

/// Splits an address that has a user into its scheme, the user with the password, and the rest.
fn user_information(address: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let end = rest.find(['/', '#']).unwrap_or(rest.len());
    let at = rest.get(..end)?.rfind('@')?;
    Some((scheme, rest.get(..at)?, rest.get(at + 1..)?))
}

/// Returns whether the name of a parameter says that its value is a key.
fn is_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "sig", "password"]
        .iter()
        .any(|word| name.contains(word))
}

/// A model of one of the named providers; it is chosen as `provider/id`.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelConfig {
    pub id: String,
    pub provider: String,
    /// The name that is sent to the provider; the id when absent.
    pub wire_model: Option<String>,
    pub model_id: Option<String>,
    pub name: Option<String>,
    pub max_prompt_tokens: Option<u64>,
    pub max_context_window_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub capabilities: Option<CapabilitiesOverride>,
}

impl ModelConfig {
    /// Returns the id that the session uses.
    pub fn selection_id(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }
}

/// A client's corrections to the listed capabilities of a model.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapabilitiesOverride {
    pub supports: Option<SupportsOverride>,
    pub limits: Option<LimitsOverride>,
}

impl CapabilitiesOverride {
    pub fn vision(&self) -> Option<bool> {
        self.supports.as_ref().and_then(|supports| supports.vision)
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SupportsOverride {
    pub vision: Option<bool>,
    pub reasoning_effort: Option<bool>,
}

/// Clients write these names in either style.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsOverride {
    #[serde(alias = "maxPromptTokens")]
    pub max_prompt_tokens: Option<u64>,
    #[serde(alias = "maxOutputTokens")]
    pub max_output_tokens: Option<u64>,
    #[serde(alias = "maxContextWindowTokens")]
    pub max_context_window_tokens: Option<u64>,
    pub vision: Option<VisionLimits>,
}

/// What a model takes of images.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VisionLimits {
    #[serde(alias = "supportedMediaTypes")]
    pub supported_media_types: Option<Vec<String>>,
    #[serde(alias = "maxPromptImages")]
    pub max_prompt_images: Option<u64>,
    /// In bytes.
    #[serde(alias = "maxPromptImageSize")]
    pub max_prompt_image_size: Option<u64>,
}
