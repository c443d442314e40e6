//! Providers and models that clients bring while a session runs, in memory only.

use std::sync::Arc;

use loopd_proto::session::{CapabilitiesOverride, ModelConfig, ProviderConfig, SessionOptions};

use super::SessionError;
use super::actor::Actor;
use crate::client::Client;
use crate::turn::route::registry;

/// What changes.
pub enum ProviderChange {
    /// More providers and models, from a client that hands out their tokens.
    Add {
        providers: Vec<ProviderConfig>,
        models: Vec<ModelConfig>,
        client: Arc<dyn Client>,
    },
    /// What the model that was just chosen can do, as far as the client knows better.
    Capabilities(Option<CapabilitiesOverride>),
}

impl Actor {
    pub(super) fn provide(&mut self, change: ProviderChange) -> Result<(), SessionError> {
        match change {
            ProviderChange::Capabilities(capabilities) => {
                self.options.model_capabilities = capabilities;
            }
            ProviderChange::Add {
                providers,
                models,
                client,
            } => {
                registry::check(&self.options, &providers, &models)
                    .map_err(SessionError::Invalid)?;
                let brought = SessionOptions {
                    providers: Some(providers),
                    ..SessionOptions::default()
                };
                self.clients.learn_tokens(&brought, &client);
                let known = self.options.providers.get_or_insert_default();
                for provider in brought.providers.into_iter().flatten() {
                    known.retain(|other| other.name() != provider.name());
                    known.push(provider);
                }
                let known = self.options.models.get_or_insert_default();
                for model in models {
                    let id = model.selection_id();
                    known.retain(|other| other.selection_id() != id);
                    known.push(model);
                }
            }
        }
        Ok(())
    }
}
