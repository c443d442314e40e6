//! Logins of a program as itself, without a person.

use url::Url;

use super::challenge::Challenge;
use super::client::{self, Client, ClientAuth, ClientOrigin};
use super::discover::discover;
use super::login::{Login, login, scopes, server_url};
use super::{OauthError, address, token, web};
use crate::config::{IdentityProvider, OAuthClient, ProgramLogin};
use crate::port::HttpPort;

const BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Logs in as the program itself.
pub async fn log_in_as_program(
    http: &dyn HttpPort,
    url: &str,
    (client, how): (&OAuthClient, &ProgramLogin),
    challenge: &Challenge,
    now_ms: u64,
) -> Result<Login, OauthError> {
    let server = server_url(url)?;
    let found = discover(http, &server, challenge).await?;
    let known = client::configured(client, &found.server, "");
    let known = match (known, how) {
        (Some(known), _) => known,
        // The statement says who the program is.
        (None, ProgramLogin::Assertion(_)) => Client {
            id: String::new(),
            secret: None,
            key: None,
            auth: ClientAuth::None,
            origin: ClientOrigin::Configured,
            redirect_uri: String::new(),
        },
        (None, ProgramLogin::ClientCredentials | ProgramLogin::Organisation(_)) => {
            let why = "a login without a person needs `oauthClientId`".to_owned();
            return Err(OauthError::Unusable(why));
        }
    };
    let scopes = scopes(&found, client, challenge, None);
    let (mut login, _) = login(found.server, found.resource, known, scopes);
    let assertion = match how {
        ProgramLogin::ClientCredentials => None,
        ProgramLogin::Assertion(assertion) => Some(assertion.clone()),
        ProgramLogin::Organisation(provider) => {
            let resource = login.resource.clone().unwrap_or_else(|| url.to_owned());
            Some(vouched(http, provider, &login, &resource).await?)
        }
    };
    let mut form = match &assertion {
        None => vec![("grant_type", "client_credentials")],
        Some(assertion) => vec![("grant_type", BEARER), ("assertion", assertion.as_str())],
    };
    let scope = login.scopes.join(" ");
    if !scope.is_empty() {
        form.push(("scope", &scope));
    }
    let granted = login.ask(http, form, now_ms).await?;
    login.take(granted);
    Ok(login)
}

/// Lets the organisation say to an authorization server who the person is.
async fn vouched(
    http: &dyn HttpPort,
    provider: &IdentityProvider,
    login: &Login,
    resource: &str,
) -> Result<String, OauthError> {
    let endpoint = Url::parse(&provider.token_endpoint).ok();
    let endpoint = endpoint.filter(|url| url.scheme() == "https" || address::is_here(url));
    let endpoint = endpoint.ok_or_else(|| {
        OauthError::Unusable("`idpTokenEndpoint` has to be an https address".to_owned())
    })?;
    let scope = login.scopes.join(" ");
    let mut form = vec![
        ("grant_type", EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("subject_token", provider.id_token.as_str()),
        ("subject_token_type", ID_TOKEN),
        ("audience", login.issuer.as_str()),
        ("resource", resource),
    ];
    if let Some(client) = &provider.client_id {
        form.push(("client_id", client));
    }
    if !scope.is_empty() {
        form.push(("scope", &scope));
    }
    let answer = web::post_form(http, &endpoint, &form, None).await?;
    let answered = token::granted(&answer)?;
    let text = |name: &str| answered.get(name)?.as_str().map(str::to_owned);
    if text("issued_token_type").is_some_and(|kind| kind != ID_JAG) {
        return Err(OauthError::Unusable(
            "the identity provider gave a token of another kind than was asked for".to_owned(),
        ));
    }
    text("access_token")
        .ok_or_else(|| OauthError::Unusable("the identity provider gave no token".to_owned()))
}
