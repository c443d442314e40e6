//! Which provider answers, by the environment. Keys go to the daemon with each session and stay in
//! its memory.

use std::collections::BTreeMap;

use loopd_sdk::proto::session::ProviderConfig;

/// Where a key for OpenAI's own service is good.
const OPENAI_URL: &str = "https://api.openai.com/v1";

/// Who answers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Provider {
    /// Nothing is configured: the built-in model, which only carries out commands.
    Offline,
    /// The daemon finds it in the launch's environment.
    Copilot,
    OpenAi(Box<ProviderConfig>),
}

impl Provider {
    pub(crate) fn of(env: &BTreeMap<String, String>) -> Self {
        let variable = |name: &str| env.get(name).filter(|value| !value.is_empty()).cloned();
        let (url, key) = (variable("OPENAI_BASE_URL"), variable("OPENAI_API_KEY"));
        if url.is_some() || key.is_some() {
            return Self::OpenAi(Box::new(ProviderConfig {
                kind: Some("openai".to_owned()),
                base_url: Some(url.unwrap_or_else(|| OPENAI_URL.to_owned())),
                api_key: key,
                ..ProviderConfig::default()
            }));
        }
        if variable("COPILOT_API_URL").is_some() {
            Self::Copilot
        } else {
            Self::Offline
        }
    }

    /// One line for whoever talks to the built-in model without having chosen it.
    pub(crate) fn hint(&self, model: Option<&str>) -> Option<&'static str> {
        let unchosen = *self == Self::Offline && model.is_none();
        unchosen.then_some(
            "no model is configured, so the built-in `offline` answers; for a real one set OPENAI_API_KEY \
             (or OPENAI_BASE_URL of any compatible server) and LOOP_MODEL",
        )
    }

    /// What the doctor says of it.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Offline => "the built-in model `offline`".to_owned(),
            Self::Copilot => "the API at COPILOT_API_URL".to_owned(),
            Self::OpenAi(config) => {
                let url = config.base_url.as_deref().unwrap_or_default();
                let key = if config.api_key.is_some() {
                    "with OPENAI_API_KEY"
                } else {
                    "without a key"
                };
                format!("{url}, {key}")
            }
        }
    }
}
