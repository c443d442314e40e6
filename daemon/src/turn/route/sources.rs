//! The providers that could be used and are not configured: those whose keys are in variables of the launch,
//! and servers on this machine.

use std::time::Duration;

use futures::future::join_all;

use super::Route;
use super::defaults::{LOCAL_SERVERS, OPENAI_URL};
use super::target::{Format, Key, Target};
use crate::launch::API_TOKENS;
use loopd_kernel::command::ModelFailure;
use loopd_model::secret::Secret;

/// How long a server on this machine may take to list its models.
const LOCAL_WAIT: Duration = Duration::from_secs(1);
/// The most models that are listed of one source.
const MOST_MODELS: usize = 200;

/// The address of the Copilot API.
pub(super) const COPILOT_URL: &str = "https://api.githubcopilot.com";

/// What runs at the addresses of `LOCAL_SERVERS`.
const LOCAL_NAMES: [(&str, &str); 2] = [("ollama", "Ollama"), ("llamacpp", "llama.cpp")];

/// The variable with which Ollama itself is told its address.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// Vendors that speak the format of OpenAI: the name, the variable with the key and the address.
const VENDORS: [(&str, &str, &str); 7] = [
    (
        "openrouter",
        "OPENROUTER_API_KEY",
        "https://openrouter.ai/api/v1",
    ),
    (
        "gemini",
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta/openai",
    ),
    ("mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
    ("groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
    (
        "deepseek",
        "DEEPSEEK_API_KEY",
        "https://api.deepseek.com/v1",
    ),
    ("xai", "XAI_API_KEY", "https://api.x.ai/v1"),
    (
        "together",
        "TOGETHER_API_KEY",
        "https://api.together.xyz/v1",
    ),
];

/// A provider that could be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    title: String,
    format: Format,
    pub base_url: String,
    /// The variable with its key.
    pub variable: Option<&'static str>,
    pub models: Vec<String>,
}

impl Source {
    /// Says why it is offered.
    pub fn found(&self) -> String {
        match self.variable {
            Some(variable) => format!("{}: {variable} is set", self.title),
            None => format!("{} runs at {}", self.title, self.base_url),
        }
    }

    /// Returns its table for the configuration file.
    pub fn config(&self) -> String {
        let mut table = format!("[provider.{}]\n", self.name);
        match self.format {
            Format::Copilot => table.push_str("type = \"copilot\"\n"),
            Format::Anthropic => table.push_str("type = \"anthropic\"\n"),
            _ => {}
        }
        if self.base_url != COPILOT_URL && self.base_url != OPENAI_URL {
            table.push_str(&format!("base_url = \"{}\"\n", self.base_url));
        }
        if let Some(variable) = self.variable {
            table.push_str(&format!("api_key_env = \"{variable}\"\n"));
        }
        table
    }
}

impl Route {
    /// Lists the providers that could be used. Only servers on this machine are asked anything.
    pub async fn sources(&self) -> Vec<Source> {
        let ollama = self.launch.as_ref();
        let ollama = ollama.and_then(|launch| launch.variable(OLLAMA_HOST));
        let own = [ollama.and_then(ollama_address), None];
        let local = LOCAL_SERVERS.iter().zip(own).zip(LOCAL_NAMES);
        let local = local.map(|((usual, own), (name, title))| async move {
            let mut source = Source {
                name: name.to_owned(),
                title: title.to_owned(),
                format: Format::Completions,
                base_url: own.unwrap_or_else(|| (*usual).to_owned()),
                variable: None,
                models: Vec::new(),
            };
            let models = tokio::time::timeout(LOCAL_WAIT, self.models_of(&source)).await;
            source.models = models.ok()?.ok()?;
            Some(source)
        });
        let mut sources: Vec<Source> = join_all(local).await.into_iter().flatten().collect();
        let is_set = |variable: &str| {
            let launch = self.launch.as_ref();
            launch.is_some_and(|launch| launch.variable(variable).is_some())
        };
        let vendors = VENDORS.iter().filter(|(_, variable, _)| is_set(variable));
        sources.extend(vendors.map(|(name, variable, address)| Source {
            name: (*name).to_owned(),
            title: (*name).to_owned(),
            format: Format::Completions,
            base_url: (*address).to_owned(),
            variable: Some(variable),
            models: Vec::new(),
        }));
        let token = API_TOKENS.into_iter().find(|variable| is_set(variable));
        sources.extend(token.map(|variable| Source {
            name: "copilot".to_owned(),
            title: "Copilot".to_owned(),
            format: Format::Copilot,
            base_url: COPILOT_URL.to_owned(),
            variable: Some(variable),
            models: Vec::new(),
        }));
        sources
    }

    /// Asks a source which models it has.
    pub async fn models_of(&self, source: &Source) -> Result<Vec<String>, ModelFailure> {
        let key = match (source.variable, &self.launch) {
            (Some(variable), Some(launch)) => launch.variable(variable),
            (_, None) | (None, _) => None,
        };
        let target = Target {
            name: source.name.clone(),
            base_url: source.base_url.clone(),
            key: key.map_or(Key::None, |key| Key::ApiKey(Secret::new(key))),
            ..Target::built_in(source.format, "")
        };
        let models = self.list(&target).await?;
        let ids = models.iter().map(|model| model.id.clone());
        Ok(ids.take(MOST_MODELS).collect())
    }
}

/// Returns the address for requests to Ollama; `None` if it is not on this machine.
fn ollama_address(host: &str) -> Option<String> {
    let host = host.trim().trim_end_matches('/');
    let host = host.strip_prefix("http://").unwrap_or(host);
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "11434"));
    let port: u16 = port.parse().ok()?;
    let is_here = matches!(
        name,
        "" | "localhost" | "127.0.0.1" | "0.0.0.0" | "[::1]" | "[::]"
    );
    is_here.then(|| format!("http://127.0.0.1:{port}/v1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProviderSettings;

    #[test]
    fn ollama_is_looked_for_on_this_machine_only() {
        let here = Some("http://127.0.0.1:11500/v1".to_owned());
        for host in [
            "127.0.0.1:11500",
            ":11500",
            "http://localhost:11500/",
            "0.0.0.0:11500",
        ] {
            assert_eq!(ollama_address(host), here, "{host}");
        }
        for host in ["gpu.example:11434", "http://10.0.0.3", "127.0.0.1:port"] {
            assert_eq!(ollama_address(host), None, "{host}");
        }
    }

    #[test]
    fn a_source_says_what_the_file_needs() {
        let source = |format, base_url: &str, variable| Source {
            name: "x".to_owned(),
            title: "X".to_owned(),
            format,
            base_url: base_url.to_owned(),
            variable,
            models: Vec::new(),
        };
        let local = source(Format::Completions, "http://127.0.0.1:11434/v1", None);
        assert_eq!(local.found(), "X runs at http://127.0.0.1:11434/v1");
        assert_eq!(
            local.config(),
            "[provider.x]\nbase_url = \"http://127.0.0.1:11434/v1\"\n"
        );
        let copilot = source(Format::Copilot, COPILOT_URL, Some("GH_TOKEN"));
        assert_eq!(copilot.found(), "X: GH_TOKEN is set");
        assert_eq!(
            copilot.config(),
            "[provider.x]\ntype = \"copilot\"\napi_key_env = \"GH_TOKEN\"\n"
        );
        for source in [local, copilot] {
            let (_, table) = source
                .config()
                .split_once('\n')
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .unwrap_or_default();
            assert!(
                toml::from_str::<ProviderSettings>(&table).is_ok(),
                "{table}"
            );
        }
    }
}
