//! Bearer tokens that the client which brought a provider hands out, one per request.

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::id::SessionId;
use loopd_proto::wire::Peer;
use serde::{Deserialize, Serialize};

use loopd_model::ProviderError;
use loopd_model::endpoint::TokenSource;
use loopd_model::secret::Secret;

/// Asks a client; nothing is remembered between requests.
pub(super) struct ClientToken {
    session: SessionId,
    provider: String,
    /// None when nobody who could be asked is here.
    peer: Option<Peer>,
}

impl ClientToken {
    pub(super) fn new(session: SessionId, provider: String, peer: Option<Peer>) -> Self {
        Self {
            session,
            provider,
            peer,
        }
    }

    async fn ask(&self) -> Result<Secret, ProviderError> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a SessionId,
            provider_name: &'a str,
        }
        #[derive(Deserialize)]
        struct Answer {
            token: String,
        }
        let name = &self.provider;
        let Some(peer) = self.peer.as_ref().filter(|peer| !peer.is_closed()) else {
            return Err(ProviderError::Misconfigured {
                detail: format!(
                    "the client that hands out tokens for the provider `{name}` is gone; resume the session with \
                     the same provider configuration"
                ),
            });
        };
        let params = Params {
            session_id: &self.session,
            provider_name: name,
        };
        let answer: Answer = peer
            .request("providerToken.getToken", &params)
            .await
            .map_err(|error| ProviderError::Misconfigured {
                detail: format!("the client gave no token for the provider `{name}`: {error}"),
            })?;
        if answer.token.is_empty() {
            return Err(ProviderError::Misconfigured {
                detail: format!("the client gave an empty token for the provider `{name}`"),
            });
        }
        Ok(Secret::new(answer.token))
    }
}

impl TokenSource for ClientToken {
    fn token(&self) -> BoxFuture<'_, Result<Secret, ProviderError>> {
        self.ask().boxed()
    }
}
