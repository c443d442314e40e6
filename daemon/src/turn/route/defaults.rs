//! The providers for sessions that define none: from the configuration file, from keys in the
//! environment of the launch, or a local server.
//!
//! The header of `config` documents the order.

use std::time::Duration;

use super::sources::COPILOT_URL;
use super::target::{self, Facts, Format, Key, Target};
use super::{Route, refused};
use crate::config::ProviderSettings;
use crate::launch::Launch;
use loopd_kernel::command::ModelFailure;
use loopd_kernel::model::ModelInfo;
use loopd_model::http::{HeaderMap, HttpCarrier, HttpMethod, HttpRequest, Url};
use loopd_model::offline;
use loopd_model::secret::Secret;

pub(super) const OPENAI_URL: &str = "https://api.openai.com/v1";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
/// The default model of OpenAI, because OpenAI lists its models in no useful order.
const OPENAI_MODEL: &str = "gpt-5";

/// The variable that enables the search for a local server: `1`, or the address of the server.
const LOCAL: &str = "LOOPD_LOCAL";
/// The default addresses of Ollama and llama.cpp.
pub(super) const LOCAL_SERVERS: [&str; 2] =
    ["http://127.0.0.1:11434/v1", "http://127.0.0.1:8080/v1"];
/// How long a local server may take to answer.
const LOCAL_WAIT: Duration = Duration::from_millis(150);
/// The variable with the model for sessions that name none.
const MODEL: &str = "LOOPD_MODEL";

/// A provider of the launch.
struct Default {
    /// The target without the name of a model.
    target: Target,
    model: Option<String>,
}

impl Route {
    /// Finds the target of a model among the providers of the launch.
    pub(super) fn default_target(&self, model: &str) -> Result<Target, ModelFailure> {
        let defaults = self.defaults()?;
        let named = model.split_once('/').and_then(|(prefix, rest)| {
            let found = defaults.iter().find(|known| known.target.name == prefix)?;
            Some((found, rest))
        });
        let is_claude = |known: &&Default| {
            known.target.format == Format::Anthropic && model.starts_with("claude")
        };
        let found = named.or_else(|| {
            let fitting = defaults.iter().find(is_claude).or(defaults.first())?;
            Some((fitting, model))
        });
        match found {
            Some((known, wire_model)) => Ok(Target {
                wire_model: wire_model.to_owned(),
                ..known.target.clone()
            }),
            None => Err(unavailable(model)),
        }
    }

    /// Lists the models of all of them; with several providers, ids begin with the provider's name.
    pub(super) async fn default_models(&self) -> Result<Vec<ModelInfo>, ModelFailure> {
        let defaults = self.defaults()?;
        if let [only] = defaults.as_slice() {
            return Ok(self.list(&only.target).await?.to_vec());
        }
        if defaults.is_empty() {
            let built_in = Target::built_in(Format::Offline, offline::MODEL);
            return Ok(self.list(&built_in).await?.to_vec());
        }
        let mut models = Vec::new();
        let mut last_failure = None;
        for known in &defaults {
            match self.list(&known.target).await {
                Ok(list) => models.extend(list.iter().cloned().map(|model| ModelInfo {
                    id: format!("{}/{}", known.target.name, model.id),
                    ..model
                })),
                // A failing provider must not hide the others.
                Err(failure) => last_failure = Some(failure),
            }
        }
        match last_failure {
            Some(failure) if models.is_empty() => Err(failure),
            Some(_) | None => Ok(models),
        }
    }

    /// Returns the model that the launch or the file names, else that of the first provider.
    pub(super) fn default_model_of_launch(&self) -> Result<Option<String>, ModelFailure> {
        let named = self
            .launch
            .as_ref()
            .and_then(|launch| launch.variable(MODEL));
        if let Some(model) = named.or(self.services.config.models.model.as_deref()) {
            return Ok(Some(model.to_owned()));
        }
        let defaults = self.defaults()?;
        Ok(defaults.first().and_then(|first| {
            let model = first.model.as_ref()?;
            Some(format!("{}/{model}", first.target.name))
        }))
    }

    fn defaults(&self) -> Result<Vec<Default>, ModelFailure> {
        let Some(launch) = &self.launch else {
            return Ok(Vec::new());
        };
        let settings = &self.services.config.models;
        if let Some(problem) = &settings.problem {
            return Err(refused(problem.clone()));
        }
        let mut defaults = Vec::new();
        for (name, provider) in &settings.providers {
            defaults.push(from_file(name, provider, launch)?);
        }
        let first = settings
            .model
            .as_deref()
            .and_then(|model| model.split_once('/'))
            .map(|(prefix, _)| prefix);
        defaults.sort_by_key(|known| Some(known.target.name.as_str()) != first);
        for known in [openai(launch), anthropic(launch), local(launch)] {
            let Some(known) = known else { continue };
            let taken = defaults
                .iter()
                .any(|other: &Default| other.target.name == known.target.name);
            if !taken {
                defaults.push(known);
            }
        }
        Ok(defaults)
    }

    /// Looks for a local server once, and only if that is enabled.
    pub(super) async fn look_for_local_server(&self) {
        let Some(launch) = &self.launch else { return };
        let wanted = launch.variable(LOCAL);
        let enabled = match wanted {
            Some("0" | "false" | "no") => false,
            Some(_) => true,
            None => self.services.config.models.local,
        };
        if !enabled || launch.local_server.initialized() {
            return;
        }
        let named = wanted.filter(|value| value.starts_with("http"));
        let candidates: Vec<&str> = match named {
            Some(address) => vec![address],
            None => LOCAL_SERVERS.to_vec(),
        };
        for address in candidates {
            if answers(launch, address).await {
                // Another task may have found the server in the meantime.
                launch.local_server.set(address.to_owned()).ok();
                return;
            }
        }
    }
}

/// Refuses a model that was named although no provider is configured. Another model must never
/// answer in its place.
fn unavailable(model: &str) -> ModelFailure {
    let vendor = model.split_once('/').map_or(model, |(vendor, _)| vendor);
    let keys = if vendor.starts_with("claude") || vendor == "anthropic" {
        "ANTHROPIC_API_KEY"
    } else if vendor.starts_with("gpt") || vendor == "openai" {
        "OPENAI_API_KEY"
    } else {
        "OPENAI_API_KEY or ANTHROPIC_API_KEY"
    };
    ModelFailure {
        kind: "model_not_found".to_owned(),
        ..refused(format!(
            "no provider is configured that could answer as the model `{model}`; set {keys}, or \
             OPENAI_BASE_URL for a compatible server, or add a [provider] to config.toml in the home; \
             the model `offline` works without any"
        ))
    }
}

async fn answers(launch: &Launch, address: &str) -> bool {
    let address = format!("{}/models", address.trim_end_matches('/'));
    let Ok(url) = Url::parse(&address) else {
        return false;
    };
    let request = HttpRequest {
        method: HttpMethod::Get,
        url,
        headers: HeaderMap::new(),
        body: bytes::Bytes::new(),
    };
    let answer = tokio::time::timeout(LOCAL_WAIT, launch.http.send(request)).await;
    matches!(answer, Ok(Ok(response)) if (200..300).contains(&response.status))
}

fn from_file(
    name: &str,
    settings: &ProviderSettings,
    launch: &Launch,
) -> Result<Default, ModelFailure> {
    let format = target::format(name, settings.kind.as_deref(), settings.wire_api.as_deref())?;
    let base_url = match (&settings.base_url, format) {
        (Some(url), _) => url.clone(),
        (None, Format::Anthropic) => ANTHROPIC_URL.to_owned(),
        (None, Format::Copilot) => COPILOT_URL.to_owned(),
        (None, Format::Completions | Format::Responses) => OPENAI_URL.to_owned(),
        (None, _) => {
            return Err(refused(format!(
                "provider.{name} in config.toml has no base_url; add it"
            )));
        }
    };
    let key = match &settings.api_key_env {
        None => Key::None,
        Some(variable) => match launch.variable(variable) {
            Some(key) => Key::ApiKey(Secret::new(key)),
            None => {
                return Err(refused(format!(
                    "provider.{name} in config.toml takes its key from the variable {variable}, which is not set; \
                     set it where loopd is started"
                )));
            }
        },
    };
    Ok(Default {
        target: Target {
            name: name.to_owned(),
            base_url,
            key,
            api_version: settings.azure_api_version.clone(),
            facts: Facts {
                max_output_tokens: settings.max_output_tokens,
                max_context_tokens: settings.max_context_tokens,
                vision: settings.vision,
                ..Facts::default()
            },
            ..Target::built_in(format, "")
        },
        model: settings.model.clone(),
    })
}

fn openai(launch: &Launch) -> Option<Default> {
    let key = launch.variable("OPENAI_API_KEY");
    let address = launch.variable("OPENAI_BASE_URL");
    // Many self-hosted servers need no key, so their address is enough.
    if key.is_none() && address.is_none() {
        return None;
    }
    Some(Default {
        target: Target {
            name: "openai".to_owned(),
            base_url: address.unwrap_or(OPENAI_URL).to_owned(),
            key: key.map_or(Key::None, |key| Key::ApiKey(Secret::new(key))),
            ..Target::built_in(Format::Completions, "")
        },
        model: address.is_none().then(|| OPENAI_MODEL.to_owned()),
    })
}

fn anthropic(launch: &Launch) -> Option<Default> {
    let key = launch.variable("ANTHROPIC_API_KEY")?;
    let address = launch.variable("ANTHROPIC_BASE_URL");
    Some(Default {
        target: Target {
            name: "anthropic".to_owned(),
            base_url: address.unwrap_or(ANTHROPIC_URL).to_owned(),
            key: Key::ApiKey(Secret::new(key)),
            ..Target::built_in(Format::Anthropic, "")
        },
        model: None,
    })
}

fn local(launch: &Launch) -> Option<Default> {
    let address = launch.local_server.get()?;
    Some(Default {
        target: Target {
            name: "local".to_owned(),
            base_url: address.clone(),
            ..Target::built_in(Format::Completions, "")
        },
        model: None,
    })
}
