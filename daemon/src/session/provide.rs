//! Providers and models that clients add while a session runs; kept in memory only.

use std::sync::Arc;

use loopd_proto::session::{ModelConfig, ProviderConfig, SessionOptions};

use super::SessionError;
use super::actor::Actor;
use crate::client::Client;
use crate::turn::route::registry;
use loopd_kernel::command::Command;

/// A change of the providers.
pub enum ProviderChange {
    /// Adds providers and models of a client that supplies their tokens.
    Add {
        providers: Vec<ProviderConfig>,
        models: Vec<ModelConfig>,
        client: Arc<dyn Client>,
    },
}

impl Actor {
    /// Returns the configuration with its secrets after a command, if the command changes it.
    pub(super) fn options_after(&self, command: &Command) -> Option<SessionOptions> {
        match command {
            Command::UpdateOptions(patch) => Some(patch.applied_to(self.options.clone())),
            Command::SetModel(choice) => Some(SessionOptions {
                model_capabilities: choice.capabilities.clone(),
                ..self.options.clone()
            }),
            _ => None,
        }
    }

    pub(super) fn provide(&mut self, change: ProviderChange) -> Result<(), SessionError> {
        match change {
            ProviderChange::Add {
                providers,
                models,
                client,
            } => {
                self.check_own("providers")?;
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
