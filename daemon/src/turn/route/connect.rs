//! Makes a provider from a target: address, credential and headers as the format requires them.

use std::sync::Arc;

use super::target::{Format, Key, Target};
use super::token::ClientToken;
use super::{Route, failure, never_opened, refused};
use crate::launch::Launch;
use loopd_kernel::command::ModelFailure;
use loopd_model::Provider;
use loopd_model::client_http::RequestOrigin;
use loopd_model::endpoint::{Credential, Endpoint};
use loopd_model::offline::OfflineModel;
use loopd_model::vendor_api::{self, Citations, Flavor, VendorFormat};

impl Route {
    /// Builds the provider without sending anything.
    pub(super) fn connect(&self, target: &Target) -> Result<Arc<dyn Provider>, ModelFailure> {
        let limit = target.facts.max_output_tokens;
        let (format, limit) = match target.format {
            Format::Offline => return Ok(Arc::new(OfflineModel)),
            Format::Replay => return self.replay(),
            Format::Copilot => (VendorFormat::OpenAiChat(Flavor::Copilot), None),
            Format::Completions | Format::AzureCompletions => {
                (VendorFormat::OpenAiChat(Flavor::Plain), limit)
            }
            Format::Responses | Format::AzureResponses => (VendorFormat::OpenAiResponses, limit),
            Format::Anthropic => {
                let citations = match self.options.enable_citations {
                    Some(true) => Citations::Wanted,
                    Some(false) | None => Citations::Unwanted,
                };
                (VendorFormat::Anthropic(citations), limit)
            }
        };
        let endpoint = self.endpoint(target)?;
        Ok(vendor_api::connect(
            format,
            target.name.clone(),
            endpoint,
            limit,
        ))
    }

    fn endpoint(&self, target: &Target) -> Result<Endpoint, ModelFailure> {
        let launch = self.launch()?;
        let origin = self.session.as_ref().map(|session| RequestOrigin {
            session: session.to_string(),
            agent: self.agent.clone(),
        });
        let headers: Vec<(String, String)> = target.headers.clone().into_iter().collect();
        let endpoint = Endpoint::new(
            &base_url(target),
            self.credential(target)?,
            &headers,
            launch.carrier(origin),
        )
        .map_err(|error| failure(&error, Some(&target.wire_model)))?
        .with_user_agent(&self.user_agent());
        Ok(match (&target.api_version, target.format) {
            (Some(version), Format::AzureCompletions | Format::AzureResponses) => {
                endpoint.with_query("api-version", version)
            }
            _ => endpoint,
        })
    }

    pub(super) fn launch(&self) -> Result<&Arc<Launch>, ModelFailure> {
        self.launch.as_ref().ok_or_else(never_opened)
    }

    /// Returns the user agent: the client's name, if it gave one, and that of loopd.
    pub(super) fn user_agent(&self) -> String {
        let own = format!("loopd/{}", self.services.version);
        match self.options.client_name.as_deref().map(str::trim) {
            Some(client) if !client.is_empty() => format!("{client} {own}"),
            Some(_) | None => own,
        }
    }

    fn credential(&self, target: &Target) -> Result<Credential, ModelFailure> {
        let in_header = |name: &str, key: &loopd_model::secret::Secret| Credential::ApiKeyHeader {
            name: name.to_owned(),
            key: key.clone(),
        };
        Ok(match (&target.key, target.format) {
            (Key::None, _) => Credential::None,
            (Key::Asked, _) => {
                let session = self
                    .session
                    .clone()
                    .ok_or_else(|| refused("tokens are only handed out for sessions".to_owned()))?;
                let client = self.token_clients.get(&target.name).cloned();
                let source = ClientToken::new(session, target.name.clone(), client);
                Credential::Asked(Arc::new(source))
            }
            (Key::ApiKey(key), Format::Anthropic) => in_header("x-api-key", key),
            (Key::ApiKey(key), Format::AzureCompletions | Format::AzureResponses) => {
                in_header("api-key", key)
            }
            (Key::ApiKey(key) | Key::Bearer(key), _) => Credential::Bearer(key.clone()),
        })
    }
}

/// Returns the base URL; Azure has an additional part between the resource and the format's path.
fn base_url(target: &Target) -> String {
    let base = target.base_url.trim().trim_end_matches('/');
    let resource = base.strip_suffix("/openai").unwrap_or(base);
    match (target.format, &target.api_version) {
        (Format::AzureCompletions | Format::AzureResponses, None) => {
            if base.contains("/openai/") {
                base.to_owned()
            } else {
                format!("{resource}/openai/v1")
            }
        }
        (Format::AzureCompletions, Some(_)) if !base.contains("/deployments/") => {
            format!("{resource}/openai/deployments/{}", target.wire_model)
        }
        (Format::AzureResponses, Some(_)) if !base.contains("/openai/") => {
            format!("{resource}/openai")
        }
        _ => base.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_base_urls_get_the_openai_path() {
        let cases = [
            (
                Format::AzureCompletions,
                None,
                "https://r.azure.com",
                "https://r.azure.com/openai/v1",
            ),
            (
                Format::AzureResponses,
                None,
                "https://r.azure.com/openai/v1/",
                "https://r.azure.com/openai/v1",
            ),
            (
                Format::AzureCompletions,
                Some("v"),
                "https://r.azure.com/",
                "https://r.azure.com/openai/deployments/m",
            ),
            (
                Format::AzureCompletions,
                Some("v"),
                "https://r.azure.com/openai",
                "https://r.azure.com/openai/deployments/m",
            ),
            (
                Format::AzureResponses,
                Some("v"),
                "https://r.azure.com",
                "https://r.azure.com/openai",
            ),
            (
                Format::Completions,
                Some("v"),
                "https://r.azure.com/x",
                "https://r.azure.com/x",
            ),
        ];
        for (format, version, given, wanted) in cases {
            let target = Target {
                base_url: given.to_owned(),
                api_version: version.map(str::to_owned),
                ..Target::built_in(format, "m")
            };
            assert_eq!(base_url(&target), wanted, "{format:?} {given}");
        }
    }
}
