//! How this program makes itself known to an authorization server: by an id from the configuration, by
//! the address of a description of itself, or by registering.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::discover::AuthorizationServer;
use super::{OauthError, web};
use crate::config::OAuthClient;
use crate::port::HttpPort;

/// This program as an authorization server knows it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Client {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The private key. It stays in the configuration.
    #[serde(skip)]
    pub(super) key: Option<String>,
    pub auth: ClientAuth,
    pub origin: ClientOrigin,
    /// Where a person is sent back to.
    pub redirect_uri: String,
}

/// How the program proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// Not at all: what proves it is the code verifier.
    None,
    ClientSecretBasic,
    ClientSecretPost,
    /// With a statement that it signs.
    PrivateKeyJwt,
}

impl ClientAuth {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let all = [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost];
        all.into_iter().find(|it| it.name() == name)
    }

    /// Chooses a way for a program with a secret.
    fn with_secret(server: &AuthorizationServer) -> Self {
        let methods = server.auth_methods.as_deref().unwrap_or_default();
        let takes = |auth: Self| methods.iter().any(|it| it == auth.name());
        if takes(Self::ClientSecretPost) && !takes(Self::ClientSecretBasic) {
            Self::ClientSecretPost
        } else {
            Self::ClientSecretBasic
        }
    }
}

/// Where the id of the program comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientOrigin {
    Configured,
    /// The address of a description of the program.
    Document,
    Registered,
}

/// What a program says about itself when it registers.
pub(super) struct Registration<'a> {
    pub(super) configured: &'a OAuthClient,
    /// The address of a description of this program.
    pub(super) document: Option<&'a str>,
    pub(super) redirect_uri: &'a str,
    /// The program as this authorization server knew it before.
    pub(super) known: Option<&'a Client>,
    /// The name that people are shown.
    pub(super) name: &'a str,
    pub(super) scopes: &'a [String],
}

/// Returns the id of the program from the configuration.
pub(super) fn configured(
    client: &OAuthClient,
    server: &AuthorizationServer,
    redirect_uri: &str,
) -> Option<Client> {
    let is_public = client.is_public == Some(true);
    let secret = client.client_secret.clone().filter(|_| !is_public);
    let key = client.private_key.clone().filter(|_| !is_public);
    Some(Client {
        id: client.client_id.clone()?,
        auth: match (&key, &secret) {
            (Some(_), _) => ClientAuth::PrivateKeyJwt,
            (None, Some(_)) => ClientAuth::with_secret(server),
            (None, None) => ClientAuth::None,
        },
        secret,
        key,
        origin: ClientOrigin::Configured,
        redirect_uri: redirect_uri.to_owned(),
    })
}

/// Makes the program known to an authorization server.
pub(super) async fn make_known(
    http: &dyn HttpPort,
    server: &AuthorizationServer,
    as_what: Registration<'_>,
) -> Result<Client, OauthError> {
    if let Some(client) = configured(as_what.configured, server, as_what.redirect_uri) {
        return Ok(client);
    }
    if let Some(document) = as_what.document
        && server.takes_documents
    {
        if !document.starts_with("https://") {
            return Err(OauthError::Unusable(
                "the address of the description of this program has to be https".to_owned(),
            ));
        }
        return Ok(Client {
            id: document.to_owned(),
            secret: None,
            key: None,
            auth: ClientAuth::None,
            origin: ClientOrigin::Document,
            redirect_uri: as_what.redirect_uri.to_owned(),
        });
    }
    let is_same = |known: &&Client| {
        known.origin == ClientOrigin::Registered && known.redirect_uri == as_what.redirect_uri
    };
    if let Some(known) = as_what.known.filter(is_same) {
        return Ok(known.clone());
    }
    register(http, server, &as_what).await
}

async fn register(
    http: &dyn HttpPort,
    server: &AuthorizationServer,
    as_what: &Registration<'_>,
) -> Result<Client, OauthError> {
    let Some(endpoint) = &server.registration_endpoint else {
        return Err(OauthError::Unusable(format!(
            "the authorization server {} takes no program that it does not know; register one there and \
             write its id into the server's entry as `oauthClientId`",
            server.issuer
        )));
    };
    let methods = server.auth_methods.as_deref();
    let wanted = [
        ClientAuth::None,
        ClientAuth::ClientSecretBasic,
        ClientAuth::ClientSecretPost,
    ];
    let wanted = wanted.into_iter().find(|auth| {
        methods.is_none_or(|methods| methods.iter().any(|method| method == auth.name()))
    });
    let wanted = wanted.unwrap_or(ClientAuth::None);
    let mut said = json!({
        "client_name": as_what.name,
        "redirect_uris": [as_what.redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted.name(),
        "application_type": "native",
    });
    if let Some(said) = said.as_object_mut().filter(|_| !as_what.scopes.is_empty()) {
        let scope = Value::String(as_what.scopes.join(" "));
        said.insert("scope".to_owned(), scope);
    }
    let answer = web::post_json(http, endpoint, &said).await?;
    let answered = answer.object().unwrap_or_default();
    let text = |name: &str| answered.get(name)?.as_str().map(str::to_owned);
    if !answer.is_success() {
        return Err(match text("error") {
            Some(code) => OauthError::Refused {
                code,
                why: text("error_description").unwrap_or_default(),
            },
            None => OauthError::Unusable(format!(
                "the registration at {} failed with HTTP {}",
                server.issuer, answer.status
            )),
        });
    }
    let id = text("client_id").ok_or_else(|| {
        OauthError::Unusable(format!("the registration at {} gave no id", server.issuer))
    })?;
    let secret = text("client_secret");
    let auth = text("token_endpoint_auth_method");
    let auth = auth.and_then(|name| ClientAuth::named(&name));
    let auth = auth.unwrap_or(match (wanted, &secret) {
        (ClientAuth::None, Some(_)) => ClientAuth::with_secret(server),
        (wanted, _) => wanted,
    });
    Ok(Client {
        id,
        key: None,
        // Without a secret there is nothing to prove.
        auth: if secret.is_some() {
            auth
        } else {
            ClientAuth::None
        },
        secret,
        origin: ClientOrigin::Registered,
        redirect_uri: as_what.redirect_uri.to_owned(),
    })
}
