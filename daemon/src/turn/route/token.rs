//! Bearer tokens that the client that defined a provider supplies, one per request.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::id::SessionId;

use crate::client::Client;
use loopd_model::ProviderError;
use loopd_model::endpoint::TokenSource;
use loopd_model::secret::Secret;

/// Asks a client for tokens; keeps none between requests.
pub(super) struct ClientToken {
    session: SessionId,
    provider: String,
    /// `None` if no attached client can be asked.
    client: Option<Arc<dyn Client>>,
}

impl ClientToken {
    pub(super) fn new(
        session: SessionId,
        provider: String,
        client: Option<Arc<dyn Client>>,
    ) -> Self {
        Self {
            session,
            provider,
            client,
        }
    }

    async fn ask(&self) -> Result<Secret, ProviderError> {
        let name = &self.provider;
        let Some(client) = self.client.as_ref().filter(|client| !client.is_gone()) else {
            return Err(ProviderError::Misconfigured {
                detail: format!(
                    "the client that hands out tokens for the provider `{name}` is gone; resume the session with \
                     the same provider configuration"
                ),
            });
        };
        let token = client
            .ask_token(&self.session, name)
            .await
            .map_err(|error| ProviderError::Misconfigured {
                detail: format!("the client gave no token for the provider `{name}`: {error}"),
            })?;
        if token.is_empty() {
            return Err(ProviderError::Misconfigured {
                detail: format!("the client gave an empty token for the provider `{name}`"),
            });
        }
        Ok(Secret::new(token))
    }
}

impl TokenSource for ClientToken {
    fn token(&self) -> BoxFuture<'_, Result<Secret, ProviderError>> {
        self.ask().boxed()
    }
}
