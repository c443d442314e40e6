//! One login: it begins with an address that a person visits, ends with tokens, and is renewed.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::header::WWW_AUTHENTICATE;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use url::Url;

use super::challenge::Challenge;
use super::client::{self, Client, Registration};
use super::discover::{AuthorizationServer, Discovered, discover};
use super::token::{self, Granted, Tokens};
use super::{OauthError, address, random, web};
use crate::config::OAuthClient;
use crate::port::HttpPort;

/// The scope that lets a login be renewed without a person.
const OFFLINE: &str = "offline_access";

/// What is kept of a login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    pub issuer: String,
    token_endpoint: String,
    /// What the tokens are for, if the server describes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
    pub client: Client,
    /// The scopes that were given, or else asked for.
    pub scopes: Vec<String>,
    /// `None` once they are known to be of no use any more.
    pub tokens: Option<Tokens>,
}

/// What a login is for.
pub struct LoginRequest<'a> {
    pub server_url: &'a str,
    pub client: &'a OAuthClient,
    /// What the server said last when it refused a request; without it the server is asked.
    pub challenge: Option<Challenge>,
    pub redirect_uri: &'a str,
    /// The address of a description of this program.
    pub document: Option<&'a str>,
    /// The name that people are shown.
    pub name: &'a str,
    /// The login before this one.
    pub known: Option<&'a Login>,
}

/// A login that waits for a person.
pub struct PendingLogin {
    url: Url,
    state: String,
    verifier: String,
    /// Whether the authorization server has to name itself.
    names_itself: bool,
    /// The login without its tokens.
    login: Login,
}

/// What a person is sent back with.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Callback {
    pub code: Option<String>,
    pub state: Option<String>,
    pub issuer: Option<String>,
    pub error: Option<String>,
    pub why: Option<String>,
}

impl Callback {
    /// Reads the query of the address that a person was sent back to.
    pub fn read(query: &str) -> Self {
        let mut read = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let slot = match &*name {
                "code" => &mut read.code,
                "state" => &mut read.state,
                "iss" => &mut read.issuer,
                "error" => &mut read.error,
                "error_description" => &mut read.why,
                _ => continue,
            };
            slot.get_or_insert_with(|| value.into_owned());
        }
        read
    }
}

/// Begins a login: finds out where, makes the program known there, and makes the address to visit.
pub async fn begin(
    http: &dyn HttpPort,
    request: LoginRequest<'_>,
) -> Result<PendingLogin, OauthError> {
    let server = server_url(request.server_url)?;
    let challenge = match request.challenge {
        Some(challenge) => challenge,
        None => asked(http, &server).await?,
    };
    let found = discover(http, &server, &challenge).await?;
    let Some(endpoint) = found.server.authorization_endpoint.clone() else {
        return Err(OauthError::Unusable(format!(
            "the authorization server {} lets no person log in",
            found.server.issuer
        )));
    };
    // What another authorization server knows says nothing here.
    let known = request.known.filter(|it| it.issuer == found.server.issuer);
    let scopes = scopes(&found, request.client, &challenge, known);
    let client = client::make_known(
        http,
        &found.server,
        Registration {
            configured: request.client,
            document: request.document,
            redirect_uri: request.redirect_uri,
            known: known.map(|known| &known.client),
            name: request.name,
            scopes: &scopes,
        },
    )
    .await?;
    let (state, verifier) = (random()?, random()?);
    let login = login(found.server, found.resource, client, scopes);
    Ok(PendingLogin {
        url: address_to_visit(endpoint, &login.0, &state, &verifier),
        state,
        verifier,
        names_itself: login.1,
        login: login.0,
    })
}

/// Gets new tokens with the refresh token; `None` if there is none.
pub async fn renew(
    http: &dyn HttpPort,
    login: &Login,
    now_ms: u64,
) -> Result<Option<Login>, OauthError> {
    let tokens = login.tokens.as_ref();
    let Some(refresh) = tokens.and_then(|tokens| tokens.refresh.clone()) else {
        return Ok(None);
    };
    let form = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.as_str()),
    ];
    let mut granted = login.ask(http, form, now_ms).await?;
    // One that is not replaced stays valid.
    granted.tokens.refresh.get_or_insert(refresh);
    let mut renewed = login.clone();
    renewed.take(granted);
    Ok(Some(renewed))
}

impl PendingLogin {
    /// Returns the address that a person visits.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Whether an answer belongs to this login.
    pub fn is_answered_by(&self, callback: &Callback) -> bool {
        callback.state.as_deref() == Some(&*self.state)
    }

    /// Turns what a person was sent back with into a login.
    pub async fn finish(
        self,
        http: &dyn HttpPort,
        callback: Callback,
        now_ms: u64,
    ) -> Result<Login, OauthError> {
        if !self.is_answered_by(&callback) {
            let why = "the answer belongs to another login".to_owned();
            return Err(OauthError::Unusable(why));
        }
        let is_right = match &callback.issuer {
            Some(issuer) => *issuer == self.login.issuer,
            None => !self.names_itself,
        };
        if !is_right {
            return Err(OauthError::Unusable(format!(
                "the answer does not come from the authorization server {}",
                self.login.issuer
            )));
        }
        if let Some(code) = callback.error {
            let why = callback.why.unwrap_or_default();
            return Err(OauthError::Refused { code, why });
        }
        let Some(code) = callback.code else {
            let why = "the answer has no code".to_owned();
            return Err(OauthError::Unusable(why));
        };
        let mut login = self.login;
        let form = vec![
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("code_verifier", self.verifier.as_str()),
            ("redirect_uri", login.client.redirect_uri.as_str()),
        ];
        let granted = login.ask(http, form, now_ms).await?;
        login.take(granted);
        Ok(login)
    }
}

impl Login {
    /// Returns the login with the private key of the configuration, which is not kept with it.
    #[must_use]
    pub fn with_key(mut self, client: &OAuthClient) -> Self {
        self.client.key.clone_from(&client.private_key);
        self
    }

    pub(super) async fn ask(
        &self,
        http: &dyn HttpPort,
        mut form: Vec<(&str, &str)>,
        now_ms: u64,
    ) -> Result<Granted, OauthError> {
        if let Some(resource) = &self.resource {
            form.push(("resource", resource));
        }
        let endpoint = Url::parse(&self.token_endpoint);
        let endpoint = endpoint.map_err(|error| {
            OauthError::Unusable(format!("the address for tokens is not valid: {error}"))
        })?;
        let server = (&endpoint, self.issuer.as_str());
        token::request(http, server, &self.client, &form, now_ms).await
    }

    pub(super) fn take(&mut self, granted: Granted) {
        if let Some(scopes) = granted.scopes {
            self.scopes = scopes;
        }
        self.tokens = Some(granted.tokens);
    }
}

/// Returns the login at an authorization server without tokens, and whether that names itself.
pub(super) fn login(
    server: AuthorizationServer,
    resource: Option<String>,
    client: Client,
    scopes: Vec<String>,
) -> (Login, bool) {
    let login = Login {
        issuer: server.issuer,
        token_endpoint: server.token_endpoint.into(),
        resource,
        client,
        scopes,
        tokens: None,
    };
    (login, server.names_itself)
}

pub(super) fn server_url(text: &str) -> Result<Url, OauthError> {
    let url = Url::parse(text);
    let url =
        url.map_err(|error| OauthError::Unusable(format!("the address of the server: {error}")))?;
    if url.scheme() == "https" || address::is_here(&url) {
        return Ok(url);
    }
    Err(OauthError::Unusable(
        "a login needs a server with https, because its token goes to the server".to_owned(),
    ))
}

/// Asks a server for what it says about its login.
async fn asked(http: &dyn HttpPort, server: &Url) -> Result<Challenge, OauthError> {
    let answer = web::probe(http, server).await?;
    let header = answer.headers.get(WWW_AUTHENTICATE);
    let header = header.and_then(|header| header.to_str().ok());
    Ok(header.map(Challenge::read).unwrap_or_default())
}

/// Chooses the scopes to ask for: those of the configuration, else those that the server wants for the
/// request, else all that it names. What the login had before stays.
pub(super) fn scopes(
    found: &Discovered,
    client: &OAuthClient,
    challenge: &Challenge,
    known: Option<&Login>,
) -> Vec<String> {
    let wanted = challenge.scopes();
    let mut scopes = if !client.scopes.is_empty() {
        client.scopes.clone()
    } else if !wanted.is_empty() {
        Vec::new()
    } else {
        found.scopes.clone()
    };
    let is_wider = challenge.error.as_deref() == Some("insufficient_scope");
    let before = known.filter(|_| is_wider).map(|known| known.scopes.clone());
    let offline = found.server.scopes.iter().filter(|it| *it == OFFLINE);
    let more = before.unwrap_or_default().into_iter().chain(wanted);
    for scope in more.chain(offline.cloned()) {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
}

fn address_to_visit(mut url: Url, login: &Login, state: &str, verifier: &str) -> Url {
    let challenge = digest(&SHA256, verifier.as_bytes());
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(challenge);
    let scope = login.scopes.join(" ");
    {
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &login.client.id)
            .append_pair("redirect_uri", &login.client.redirect_uri)
            .append_pair("state", state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if !scope.is_empty() {
            query.append_pair("scope", &scope);
        }
        if login.scopes.iter().any(|scope| scope == OFFLINE) {
            // Some give a refresh token only to a person who was asked.
            query.append_pair("prompt", "consent");
        }
        if let Some(resource) = &login.resource {
            query.append_pair("resource", resource);
        }
    }
    url
}
