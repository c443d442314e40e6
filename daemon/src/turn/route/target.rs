//! The target of a model call: the provider, its format, the key and the name of the model.
//!
//! `route` finds the target in a configuration, `route/connect` makes a provider from it. A target
//! is plain data; its secrets are kept in memory only.

use std::collections::BTreeMap;

use loopd_proto::provider::LimitsOverride;
use loopd_proto::session::{ModelConfig, ProviderConfig};

use super::refused;
use loopd_kernel::command::ModelFailure;
use loopd_kernel::model::{ImageFormats, ImageLimits};
use loopd_model::secret::Secret;

/// The API format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The Copilot API's variant of chat completions.
    Copilot,
    Completions,
    Responses,
    AzureCompletions,
    AzureResponses,
    Anthropic,
    /// The built-in model that carries out commands.
    Offline,
    /// The built-in model that replays recorded conversations.
    Replay,
}

/// How requests authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    None,
    ApiKey(Secret),
    Bearer(Secret),
    /// The client that defined the provider is asked for a token before each request.
    Asked,
}

/// A provider with all that is needed to call one of its models.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: String,
    pub format: Format,
    pub base_url: String,
    pub key: Key,
    pub headers: BTreeMap<String, String>,
    pub api_version: Option<String>,
    /// The name of the model at the provider.
    pub wire_model: String,
    pub facts: Facts,
}

/// What is known about the model besides the provider's own list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    pub vision: Option<bool>,
    pub images: ImageLimits,
    pub max_context_tokens: Option<u64>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
}

impl Target {
    /// Makes the target of a model that needs no server.
    pub fn built_in(format: Format, model: &str) -> Self {
        Self {
            name: model.to_owned(),
            format,
            base_url: String::new(),
            key: Key::None,
            headers: BTreeMap::new(),
            api_version: None,
            wire_model: model.to_owned(),
            facts: Facts::default(),
        }
    }

    /// Reads the configuration of a provider for one of its models.
    pub fn of_provider(config: &ProviderConfig, model: &str) -> Result<Self, ModelFailure> {
        let name = config.name();
        let Some(base_url) = config.base_url.as_ref().filter(|url| !url.is_empty()) else {
            return Err(refused(format!(
                "the provider `{name}` has no baseUrl; give it with session.create or session.resume"
            )));
        };
        Ok(Self {
            name: name.to_owned(),
            format: format(name, config.kind.as_deref(), config.wire_api.as_deref())?,
            base_url: base_url.clone(),
            key: key(config, base_url)?,
            headers: config.headers.clone().unwrap_or_default(),
            api_version: config
                .azure
                .as_ref()
                .and_then(|azure| azure.api_version.clone()),
            wire_model: model.to_owned(),
            facts: Facts {
                vision: None,
                images: ImageLimits::default(),
                max_context_tokens: None,
                max_prompt_tokens: config.max_prompt_tokens,
                max_output_tokens: config.max_output_tokens,
            },
        })
    }

    /// Adds what the configuration says about one model.
    #[must_use]
    pub fn for_model(mut self, model: &ModelConfig) -> Self {
        self.wire_model = model.wire_model.clone().unwrap_or_else(|| model.id.clone());
        self.facts = Facts::of_model(model).over(self.facts);
        self
    }
}

impl Facts {
    pub fn of_model(model: &ModelConfig) -> Self {
        let capabilities = model.capabilities.clone().unwrap_or_default();
        let limits = capabilities.limits.clone().unwrap_or_default();
        Self {
            vision: capabilities.vision(),
            images: images(&limits),
            max_context_tokens: model
                .max_context_window_tokens
                .or(limits.max_context_window_tokens),
            max_prompt_tokens: model.max_prompt_tokens.or(limits.max_prompt_tokens),
            max_output_tokens: model.max_output_tokens.or(limits.max_output_tokens),
        }
    }

    /// Returns these facts, with gaps filled from `others`.
    #[must_use]
    pub fn over(self, others: Self) -> Self {
        Self {
            vision: self.vision.or(others.vision),
            images: self.images.over(others.images),
            max_context_tokens: self.max_context_tokens.or(others.max_context_tokens),
            max_prompt_tokens: self.max_prompt_tokens.or(others.max_prompt_tokens),
            max_output_tokens: self.max_output_tokens.or(others.max_output_tokens),
        }
    }
}

/// Parses the type and the wire API of a provider.
pub fn format(
    name: &str,
    kind: Option<&str>,
    wire_api: Option<&str>,
) -> Result<Format, ModelFailure> {
    match (kind.unwrap_or("openai"), wire_api.unwrap_or("completions")) {
        ("openai", "completions") => Ok(Format::Completions),
        ("openai", "responses") => Ok(Format::Responses),
        ("azure", "completions") => Ok(Format::AzureCompletions),
        ("azure", "responses") => Ok(Format::AzureResponses),
        ("anthropic", _) => Ok(Format::Anthropic),
        ("openai" | "azure", wire) => Err(refused(format!(
            "the provider `{name}` has the wire API `{wire}`; use completions or responses"
        ))),
        (kind, _) => Err(refused(format!(
            "the provider `{name}` has the type `{kind}`; use openai, azure or anthropic"
        ))),
    }
}

fn key(config: &ProviderConfig, base_url: &str) -> Result<Key, ModelFailure> {
    if config.asks_for_tokens() {
        return Ok(Key::Asked);
    }
    if let Some(token) = &config.bearer_token {
        return Ok(Key::Bearer(Secret::new(token.as_str())));
    }
    if let Some(key) = &config.api_key {
        return Ok(Key::ApiKey(Secret::new(key.as_str())));
    }
    if config.secret_withheld == Some(true) && config.headers.is_none() {
        let name = config.name();
        return Err(ModelFailure {
            kind: "authentication".to_owned(),
            code: Some("provider_secret_missing".to_owned()),
            ..refused(format!(
                "the provider `{name}` at {base_url} needs its key again, because keys are never stored; \
                 resume the session with the same provider configuration"
            ))
        });
    }
    Ok(Key::None)
}

/// Returns what a configuration says about images.
pub fn images(limits: &LimitsOverride) -> ImageLimits {
    let Some(vision) = &limits.vision else {
        return ImageLimits::default();
    };
    let types = vision.supported_media_types.as_ref();
    ImageLimits {
        bytes: vision.max_prompt_image_size.filter(|bytes| *bytes > 0),
        count: vision.max_prompt_images.filter(|count| *count > 0),
        formats: types.and_then(|types| ImageFormats::of(types.iter().map(String::as_str))),
    }
}
