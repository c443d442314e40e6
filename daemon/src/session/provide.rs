//! Providers and models that clients bring while a session runs, in memory only.

use loopd_proto::session::{CapabilitiesOverride, ModelConfig, ProviderConfig, SessionOptions};
use loopd_proto::wire::Peer;

use super::SessionError;
use super::actor::Actor;
use crate::turn::route::registry;

/// What changes.
pub enum ProviderChange {
    /// More providers and models, from a connection that hands out their tokens.
    Add {
        providers: Vec<ProviderConfig>,
        models: Vec<ModelConfig>,
        peer: Peer,
    },
    /// What the model that was just chosen can do, as far as the client knows better.
    Capabilities(Option<CapabilitiesOverride>),
}

impl Actor {
    /// Remembers whom to ask for the tokens of which provider.
    pub(super) fn learn_token_peers(&mut self, options: &SessionOptions, peer: &Peer) {
        for provider in options
            .provider
            .iter()
            .chain(options.providers.iter().flatten())
        {
            let name = provider.name().to_owned();
            if provider.asks_for_tokens() {
                self.token_peers.insert(name, peer.clone());
            } else {
                self.token_peers.remove(&name);
            }
        }
    }

    pub(super) fn provide(&mut self, change: ProviderChange) -> Result<(), SessionError> {
        match change {
            ProviderChange::Capabilities(capabilities) => {
                self.options.model_capabilities = capabilities;
            }
            ProviderChange::Add {
                providers,
                models,
                peer,
            } => {
                registry::check(&self.options, &providers, &models)
                    .map_err(SessionError::Invalid)?;
                let brought = SessionOptions {
                    providers: Some(providers),
                    ..SessionOptions::default()
                };
                self.learn_token_peers(&brought, &peer);
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
