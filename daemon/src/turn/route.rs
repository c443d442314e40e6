//! Chooses the provider for a session's model calls, the name of the model at that provider, and
//! the default model.
//!
//! `turn` and `front/rpc` use it; [`Route`] holds all that it needs. First come the session's own
//! providers (`route/registry`, `provider`), then the built-in models, then the Copilot API of the
//! launch, then the launch's environment and the configuration file (`route/defaults`). The offline
//! model is the default only if no model is named; a named model is never replaced. `route/target` defines a choice, `route/connect` makes a provider from
//! it, `route/token` asks clients for tokens.

mod connect;
mod defaults;
pub mod registry;
pub mod target;
mod token;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use loopd_proto::id::SessionId;
use loopd_proto::session::{ProviderConfig, SessionOptions};

use crate::client::Client;
use crate::launch::Launch;
use crate::services::Services;
use loopd_kernel::command::ModelFailure;
use loopd_kernel::model::ModelInfo;
use loopd_model::client_http::SubagentOrigin;
use loopd_model::replay::{self, Recorder, ReplayModel};
use loopd_model::secret::Secret;
use loopd_model::{Provider, ProviderError, offline};
use target::{Facts, Format, Key, Target};

/// The variable with the address of the Copilot API.
const COPILOT_API_URL: &str = "COPILOT_API_URL";
/// The variable with the path of the recorded conversations for the model `replay`.
const REPLAY: &str = "LOOPD_REPLAY";
/// The variable with the path where the conversations of a launch are recorded.
const RECORD: &str = "LOOPD_REPLAY_RECORD";

/// The clients that supply tokens, by provider.
pub type TokenClients = BTreeMap<String, Arc<dyn Client>>;

/// What a session's configuration and its launch say about providers.
#[derive(Clone)]
pub struct Route {
    /// `None` for requests that belong to no session.
    pub session: Option<SessionId>,
    /// The sub-agent that makes the requests, if it is one.
    pub agent: Option<SubagentOrigin>,
    /// The configuration with its secrets.
    pub options: SessionOptions,
    pub cwd: String,
    pub launch: Option<Arc<Launch>>,
    pub api_token: Option<Secret>,
    pub token_clients: TokenClients,
    pub services: Arc<Services>,
}

/// A provider for one model, the name of the model there, and what is known about the model.
pub struct Chosen {
    pub provider: Arc<dyn Provider>,
    pub wire_model: String,
    pub facts: Facts,
}

impl Route {
    /// Returns the provider for the next call to a model.
    pub async fn choose(&self, model: &str) -> Result<Chosen, ModelFailure> {
        let target = self.find_target(model).await?;
        let provider = self.connect(&target)?;
        let provider = match self.path_in(RECORD) {
            Some(path) if target.format != Format::Replay => {
                let lock = self.services.recording.clone();
                Arc::new(Recorder::new(provider, &path, &self.cwd, lock))
            }
            Some(_) | None => provider,
        };
        Ok(Chosen {
            provider,
            wire_model: target.wire_model,
            facts: target.facts,
        })
    }

    /// Finds the target of a model, and a local server first if one is to be looked for.
    pub async fn find_target(&self, model: &str) -> Result<Target, ModelFailure> {
        self.look_for_local_server().await;
        self.target(model)
    }

    /// Finds the target of a model from what is known now, without a request.
    pub fn target(&self, model: &str) -> Result<Target, ModelFailure> {
        let mut target = self.found(model)?;
        if let Some(capabilities) = &self.options.model_capabilities {
            let limits = capabilities.limits.clone().unwrap_or_default();
            let said = Facts {
                vision: capabilities.vision(),
                images: target::images(&limits),
                max_context_tokens: limits.max_context_window_tokens,
                max_prompt_tokens: limits.max_prompt_tokens,
                max_output_tokens: limits.max_output_tokens,
            };
            target.facts = said.over(target.facts);
        }
        Ok(target)
    }

    fn found(&self, model: &str) -> Result<Target, ModelFailure> {
        let Some(launch) = &self.launch else {
            return match model {
                offline::MODEL => Ok(Target::built_in(Format::Offline, model)),
                _ => Err(never_opened()),
            };
        };
        if let Some(target) = registry::find(&self.options, model)? {
            return Ok(target);
        }
        if let Some(config) = &self.options.provider {
            let wire_model = own_model(config).unwrap_or(model);
            return Target::of_provider(config, wire_model);
        }
        if model == offline::MODEL {
            return Ok(Target::built_in(Format::Offline, model));
        }
        if model == replay::MODEL {
            return Ok(Target::built_in(Format::Replay, model));
        }
        let brings_providers = self.options.providers.iter().flatten().next().is_some();
        if brings_providers && model.contains('/') {
            return Err(registry::unknown(&self.options, model));
        }
        match launch.variable(COPILOT_API_URL) {
            Some(url) => Ok(self.copilot(url, launch, model)),
            None => self.default_target(model),
        }
    }

    fn copilot(&self, url: &str, launch: &Launch, model: &str) -> Target {
        let token = self.api_token.as_ref().or(launch.api_token.as_ref());
        Target {
            name: "copilot".to_owned(),
            base_url: url.to_owned(),
            key: token.map_or(Key::None, |token| Key::Bearer(token.clone())),
            ..Target::built_in(Format::Copilot, model)
        }
    }

    fn replay(&self) -> Result<Arc<dyn Provider>, ModelFailure> {
        let path = self.path_in(REPLAY).ok_or_else(|| {
            refused(format!(
                "the model `replay` repeats recorded conversations; say where they are with {REPLAY}"
            ))
        })?;
        Ok(Arc::new(ReplayModel::new(&path, &self.cwd)))
    }

    /// Returns the path in a variable, relative to the directory of the launch.
    fn path_in(&self, variable: &str) -> Option<PathBuf> {
        let launch = self.launch.as_ref()?;
        Some(launch.cwd.join(launch.variable(variable)?))
    }

    /// Lists the available models: those of the default provider, and the session's own.
    pub async fn models(&self) -> Result<Vec<ModelInfo>, ModelFailure> {
        self.look_for_local_server().await;
        let own = registry::listed(&self.options);
        let mut models = match self.listed_by_providers().await {
            Ok(models) => models,
            // A failed list must not hide the models that the session itself defines.
            Err(failure) if !own.is_empty() => {
                tracing::debug!(message = %failure.message, "a list of models is left out");
                Vec::new()
            }
            Err(failure) => return Err(failure),
        };
        models.extend(own);
        Ok(models)
    }

    async fn listed_by_providers(&self) -> Result<Vec<ModelInfo>, ModelFailure> {
        if let Some(config) = &self.options.provider {
            let model = own_model(config).or(self.options.model.as_deref());
            let target = Target::of_provider(config, model.unwrap_or_default())?;
            return match (self.list(&target).await, model) {
                (Ok(list), _) => Ok(list.to_vec()),
                // Many small servers have no list of models; the model in use exists all the same.
                (Err(_), Some(model)) => Ok(vec![described(model, target.facts)]),
                (Err(failure), None) => Err(failure),
            };
        }
        let copilot = self
            .launch
            .as_ref()
            .and_then(|launch| Some(self.copilot(launch.variable(COPILOT_API_URL)?, launch, "")));
        match copilot {
            Some(target) => Ok(self.list(&target).await?.to_vec()),
            None => self.default_models().await,
        }
    }

    /// Returns a provider's list of models; asks once per address.
    async fn list(&self, target: &Target) -> Result<Arc<Vec<ModelInfo>>, ModelFailure> {
        let provider = self.connect(target)?;
        let key = list_key(target);
        let lists = &self.services.model_lists;
        if let Some(list) = lists.known(&key) {
            return Ok(list);
        }
        let list = provider
            .models()
            .await
            .map_err(|error| failure(&error, None))?;
        let list = Arc::new(list);
        lists.learn(key, list.clone());
        Ok(list)
    }

    /// Returns what is known about a model without a request.
    pub fn known_model(&self, id: &str) -> Option<ModelInfo> {
        let target = self.target(id).ok()?;
        let facts = target.facts;
        let listed = self
            .services
            .model_lists
            .known(&list_key(&target))
            .and_then(|list| {
                list.iter()
                    .find(|model| model.id == target.wire_model)
                    .cloned()
            });
        let mut known = listed.unwrap_or_else(|| described(id, Facts::default()));
        known.max_context_tokens = facts
            .max_context_tokens
            .or(facts.max_prompt_tokens)
            .or(known.max_context_tokens);
        known.max_output_tokens = facts.max_output_tokens.or(known.max_output_tokens);
        known.images = facts.images.over(known.images);
        known.vision = facts.vision.unwrap_or(known.vision);
        Some(known)
    }

    /// Returns the model to use when none was chosen.
    pub async fn default_model(&self) -> Result<String, ModelFailure> {
        if let Some(config) = &self.options.provider
            && let Some(model) = config.model_id.as_ref().or(config.wire_model.as_ref())
        {
            return Ok(model.clone());
        }
        let has_copilot = self
            .launch
            .as_ref()
            .is_some_and(|launch| launch.variable(COPILOT_API_URL).is_some());
        if self.options.provider.is_none() && !has_copilot {
            if let Some(own) = registry::listed(&self.options).into_iter().next() {
                return Ok(own.id);
            }
            self.look_for_local_server().await;
            if let Some(model) = self.default_model_of_launch()? {
                return Ok(model);
            }
        }
        let models = self.models().await?;
        models.first().map(|model| model.id.clone()).ok_or_else(|| {
            refused("the provider offers no models; name one with `model`".to_owned())
        })
    }
}

/// Returns the name of the model at a provider that serves a whole session.
fn own_model(config: &ProviderConfig) -> Option<&str> {
    let model = config.wire_model.as_ref().or(config.model_id.as_ref());
    model.map(String::as_str)
}

fn list_key(target: &Target) -> String {
    format!("{:?}|{}", target.format, target.base_url)
}

fn described(id: &str, facts: Facts) -> ModelInfo {
    ModelInfo {
        id: id.to_owned(),
        name: id.to_owned(),
        vision: facts.vision.unwrap_or(false),
        images: facts.images,
        max_context_tokens: facts.max_context_tokens.or(facts.max_prompt_tokens),
        max_output_tokens: facts.max_output_tokens,
        reasoning_efforts: Vec::new(),
    }
}

/// The failure of a session that no client has opened since the daemon started: its keys and its
/// environment are not known.
fn never_opened() -> ModelFailure {
    refused("no client has opened this session yet; resume it".to_owned())
}

/// Makes a failure that is caused by the configuration.
fn refused(message: String) -> ModelFailure {
    ModelFailure {
        kind: "configuration".to_owned(),
        code: None,
        message,
        status: None,
        provider_call_id: None,
        model: None,
        retry_after_seconds: None,
    }
}

/// Turns a provider's error into the form that the log stores.
pub(super) fn failure(error: &ProviderError, model: Option<&str>) -> ModelFailure {
    ModelFailure {
        kind: error.kind().as_str().to_owned(),
        code: error.error_code().map(str::to_owned),
        message: error.to_string(),
        status: error.status(),
        provider_call_id: error.provider_call_id().map(str::to_owned),
        model: model.map(str::to_owned),
        retry_after_seconds: error.retry_after().map(|wait| wait.as_secs()),
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]
mod tests;
