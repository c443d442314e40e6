//! The named providers of a session and their models: finding a model by its id, and checking them.

use loopd_proto::session::{ModelConfig, ProviderConfig, SessionOptions};

use super::refused;
use super::target::{Facts, Target};
use loopd_kernel::command::ModelFailure;
use loopd_kernel::model::ModelInfo;

/// Finds the named provider that a model id refers to; `None` if the id does not refer to one.
pub(super) fn find(options: &SessionOptions, model: &str) -> Result<Option<Target>, ModelFailure> {
    let providers = options.providers.as_deref().unwrap_or_default();
    let models = options.models.as_deref().unwrap_or_default();
    if providers.is_empty() {
        return Ok(None);
    }
    if let Some(entry) = entry(models, model) {
        let provider = providers
            .iter()
            .find(|provider| provider.name() == entry.provider)
            .ok_or_else(|| {
                refused(format!(
                    "the model `{model}` names the provider `{}`, which this session does not have; it has {}",
                    entry.provider,
                    names(providers)
                ))
            })?;
        return Ok(Some(Target::of_provider(provider, model)?.for_model(entry)));
    }
    let Some((prefix, rest)) = model.split_once('/') else {
        return Ok(None);
    };
    match providers.iter().find(|provider| provider.name() == prefix) {
        Some(provider) => Target::of_provider(provider, rest).map(Some),
        None => Ok(None),
    }
}

/// Makes the failure for an unknown model; it lists the providers and models of the session.
pub(super) fn unknown(options: &SessionOptions, model: &str) -> ModelFailure {
    let providers = options.providers.as_deref().unwrap_or_default();
    let models = options.models.as_deref().unwrap_or_default();
    let listed: Vec<String> = models.iter().map(ModelConfig::selection_id).collect();
    ModelFailure {
        kind: "model_not_found".to_owned(),
        model: Some(model.to_owned()),
        ..refused(format!(
            "the model `{model}` belongs to no provider of this session; its providers are {}, its models are {}",
            names(providers),
            list(&listed)
        ))
    }
}

/// Finds the entry of an id: its full id, or its short id if only one provider has it.
fn entry<'a>(models: &'a [ModelConfig], id: &str) -> Option<&'a ModelConfig> {
    let full = models.iter().find(|model| model.selection_id() == id);
    full.or_else(|| {
        let mut short = models.iter().filter(|model| model.id == id);
        short.next().filter(|_| short.next().is_none())
    })
}

/// Lists the models of the named providers.
pub(super) fn listed(options: &SessionOptions) -> Vec<ModelInfo> {
    options.models.iter().flatten().map(info).collect()
}

/// Describes one model of a named provider.
pub fn info(model: &ModelConfig) -> ModelInfo {
    let facts = Facts::of_model(model);
    let id = model.selection_id();
    let thinks = model
        .capabilities
        .as_ref()
        .and_then(|capabilities| capabilities.supports.as_ref())
        .and_then(|supports| supports.reasoning_effort)
        .unwrap_or(false);
    let efforts: &[&str] = if thinks {
        &["low", "medium", "high"]
    } else {
        &[]
    };
    ModelInfo {
        name: model.name.clone().unwrap_or_else(|| id.clone()),
        id,
        vision: facts.vision.unwrap_or(false),
        images: facts.images,
        max_context_tokens: facts.max_context_tokens.or(facts.max_prompt_tokens),
        max_output_tokens: facts.max_output_tokens,
        reasoning_efforts: efforts.iter().map(|&effort| effort.to_owned()).collect(),
    }
}

/// Checks the providers and models of a client; `known` are the options of the session so far.
pub fn check(
    known: &SessionOptions,
    providers: &[ProviderConfig],
    models: &[ModelConfig],
) -> Result<(), String> {
    let mut seen: Vec<&str> = Vec::new();
    for (index, provider) in providers.iter().enumerate() {
        let name = provider.name.as_deref().unwrap_or_default();
        if name.is_empty() || name.contains('/') {
            return Err(format!(
                "providers[{index}].name: give it a name without `/`"
            ));
        }
        if seen.contains(&name) {
            return Err(format!("providers[{index}].name: `{name}` is given twice"));
        }
        if provider.base_url.as_deref().unwrap_or_default().is_empty() {
            return Err(format!("providers[{index}].baseUrl: must not be empty"));
        }
        seen.push(name);
    }
    let mut ids: Vec<String> = Vec::new();
    for (index, model) in models.iter().enumerate() {
        if model.id.is_empty() {
            return Err(format!("models[{index}].id: must not be empty"));
        }
        let found = seen.contains(&model.provider.as_str())
            || known
                .providers
                .iter()
                .flatten()
                .any(|provider| provider.name() == model.provider);
        if !found {
            return Err(format!(
                "models[{index}].provider: there is no provider `{}`; add it to `providers`",
                model.provider
            ));
        }
        let id = model.selection_id();
        if ids.contains(&id) {
            return Err(format!("models[{index}].id: `{id}` is given twice"));
        }
        ids.push(id);
    }
    Ok(())
}

fn names(providers: &[ProviderConfig]) -> String {
    let names: Vec<String> = providers
        .iter()
        .map(|provider| provider.name().to_owned())
        .collect();
    list(&names)
}

fn list(words: &[String]) -> String {
    if words.is_empty() {
        return "none".to_owned();
    }
    format!("`{}`", words.join("`, `"))
}
