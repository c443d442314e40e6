//! Chooses which provider answers for a session, and which of its models by default.

use std::sync::Arc;

use loopd_proto::session::{ProviderConfig, SessionOptions};

use crate::kernel::command::ModelFailure;
use crate::kernel::model::ModelInfo;
use crate::launch::Launch;
use crate::provider::endpoint::{Credential, Endpoint};
use crate::provider::model_lists::ModelLists;
use crate::provider::offline::OfflineModel;
use crate::provider::openai_chat::{Flavor, OpenAiChat};
use crate::provider::secret::Secret;
use crate::provider::{Provider, ProviderError};

/// Where the API of Copilot is, when a launch has it.
const COPILOT_API_URL: &str = "COPILOT_API_URL";

/// What a session's configuration and its launch say about providers.
#[derive(Clone)]
pub struct Route {
    /// With secrets.
    pub options: SessionOptions,
    pub launch: Option<Arc<Launch>>,
    pub api_token: Option<Secret>,
    pub model_lists: Arc<ModelLists>,
}

impl Route {
    /// The provider for the next model call.
    pub fn provider(&self) -> Result<Arc<dyn Provider>, ModelFailure> {
        let Some(launch) = &self.launch else {
            return Ok(Arc::new(OfflineModel));
        };
        if let Some(config) = &self.options.provider {
            return Self::configured(config, launch);
        }
        let wants_offline = self.options.model.as_deref() == Some(crate::provider::offline::MODEL);
        match launch.variable(COPILOT_API_URL) {
            Some(url) if !wants_offline => self.copilot(url, launch),
            _ => Ok(Arc::new(OfflineModel)),
        }
    }

    fn copilot(&self, url: &str, launch: &Arc<Launch>) -> Result<Arc<dyn Provider>, ModelFailure> {
        let token = self.api_token.as_ref().or(launch.api_token.as_ref());
        let credential = token.map_or(Credential::None, |token| Credential::Bearer(token.clone()));
        let endpoint = Endpoint::new(url, credential, &[], Arc::new(launch.http.clone()))
            .map_err(|error| failure(&error, None))?;
        Ok(Arc::new(OpenAiChat::new(
            "copilot",
            endpoint,
            Flavor::Copilot,
        )))
    }

    fn configured(
        config: &ProviderConfig,
        launch: &Arc<Launch>,
    ) -> Result<Arc<dyn Provider>, ModelFailure> {
        let name = config
            .name
            .clone()
            .or_else(|| config.kind.clone())
            .unwrap_or_else(|| "openai".to_owned());
        let kind = config.kind.as_deref().unwrap_or("openai");
        let wire = config.wire_api.as_deref().unwrap_or("completions");
        if kind == "anthropic" || wire != "completions" {
            return Err(refused(format!(
                "the provider `{name}` speaks {kind}/{wire}, which this build does not; use an OpenAI-compatible \
                 chat completions endpoint"
            )));
        }
        let Some(base_url) = &config.base_url else {
            return Err(refused(format!(
                "the provider `{name}` has no baseUrl; give it with session.create or session.resume"
            )));
        };
        let secret = config.bearer_token.as_ref().or(config.api_key.as_ref());
        if secret.is_none() && config.secret_withheld == Some(true) {
            return Err(ModelFailure {
                kind: "authentication".to_owned(),
                code: Some("provider_secret_missing".to_owned()),
                ..refused(format!(
                    "the provider `{name}` at {base_url} needs its key again, because keys are never stored; \
                     resume the session with the same `provider` configuration"
                ))
            });
        }
        let credential = secret.map_or(Credential::None, |secret| {
            Credential::Bearer(Secret::new(secret.as_str()))
        });
        let headers: Vec<(String, String)> = config
            .headers
            .clone()
            .unwrap_or_default()
            .into_iter()
            .collect();
        let endpoint = Endpoint::new(
            base_url,
            credential,
            &headers,
            Arc::new(launch.http.clone()),
        )
        .map_err(|error| failure(&error, None))?;
        Ok(Arc::new(OpenAiChat::new(name, endpoint, Flavor::Plain)))
    }

    /// The models on offer, asked once per provider address.
    pub async fn models(&self) -> Result<Arc<Vec<ModelInfo>>, ModelFailure> {
        let provider = self.provider()?;
        let about = provider.describe();
        let key = format!(
            "{}|{}",
            about.provider_type,
            about.base_url.unwrap_or_default()
        );
        if let Some(list) = self.model_lists.known(&key) {
            return Ok(list);
        }
        let list = provider
            .models()
            .await
            .map_err(|error| failure(&error, None))?;
        let list = Arc::new(list);
        self.model_lists.learn(key, list.clone());
        Ok(list)
    }

    /// What is known about a model without asking anybody.
    pub fn known_model(&self, id: &str) -> Option<ModelInfo> {
        let about = self.provider().ok()?.describe();
        let key = format!(
            "{}|{}",
            about.provider_type,
            about.base_url.unwrap_or_default()
        );
        let list = self.model_lists.known(&key)?;
        list.iter().find(|model| model.id == id).cloned()
    }

    /// The model to use when nobody chose one.
    pub async fn default_model(&self) -> Result<String, ModelFailure> {
        if let Some(config) = &self.options.provider
            && let Some(model) = config.model_id.as_ref().or(config.wire_model.as_ref())
        {
            return Ok(model.clone());
        }
        let models = self.models().await?;
        models.first().map(|model| model.id.clone()).ok_or_else(|| {
            refused("the provider offers no models; name one with `model`".to_owned())
        })
    }
}

/// A failure that is the configuration's fault.
fn refused(message: String) -> ModelFailure {
    ModelFailure {
        kind: "configuration".to_owned(),
        code: None,
        message,
        status: None,
        provider_call_id: None,
        model: None,
    }
}

/// A provider's error in the words of the log.
pub(super) fn failure(error: &ProviderError, model: Option<&str>) -> ModelFailure {
    ModelFailure {
        kind: error.kind().as_str().to_owned(),
        code: error.error_code().map(str::to_owned),
        message: error.to_string(),
        status: error.status(),
        provider_call_id: error.provider_call_id().map(str::to_owned),
        model: model.map(str::to_owned),
    }
}
