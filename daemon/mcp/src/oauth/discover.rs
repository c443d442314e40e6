//! Finds out who gives tokens for a server: its own description, and that of its authorization server.

use serde_json::{Map, Value};
use url::Url;

use super::challenge::Challenge;
use super::{OauthError, address, web};
use crate::port::HttpPort;

/// The most authorization servers of a resource that are looked at.
const MOST_SERVERS: usize = 5;

/// What is known of a login.
pub(super) struct Discovered {
    /// What tokens are for, if the server describes itself.
    pub(super) resource: Option<String>,
    /// The scopes that the server names for itself.
    pub(super) scopes: Vec<String>,
    pub(super) server: AuthorizationServer,
}

/// An authorization server.
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) scopes: Vec<String>,
    /// How programs may prove who they are, if it says so.
    pub(super) auth_methods: Option<Vec<String>>,
    /// Whether the address of a description may stand for a program.
    pub(super) takes_documents: bool,
    /// Whether it names itself when it sends a person back.
    pub(super) names_itself: bool,
}

/// What an authorization server has to call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Issuer {
    /// As it was named.
    Named,
    /// Nobody named it: any name on the host of the server.
    OnHost,
}

/// Looks for the authorization server of a server.
pub(super) async fn discover(
    http: &dyn HttpPort,
    server: &Url,
    challenge: &Challenge,
) -> Result<Discovered, OauthError> {
    let Some(resource) = resource(http, server, challenge).await? else {
        // Servers of 2025-03-26 are their own authorization servers and do not describe themselves.
        return Ok(Discovered {
            resource: None,
            scopes: Vec::new(),
            server: of_origin(http, server).await?,
        });
    };
    let named = texts(&resource, "authorization_servers").unwrap_or_default();
    let mut last = None;
    for issuer in named.iter().take(MOST_SERVERS) {
        let found = match address::checked(issuer, server) {
            Ok(url) => of_issuer(http, issuer, &url, server, Issuer::Named).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(Some(found)) => {
                return Ok(Discovered {
                    resource: text(&resource, "resource"),
                    scopes: texts(&resource, "scopes_supported").unwrap_or_default(),
                    server: found,
                });
            }
            Ok(None) => {}
            Err(error) => last = Some(error),
        }
    }
    if let Some(error) = last {
        return Err(error);
    }
    if named.is_empty() {
        return Ok(Discovered {
            resource: text(&resource, "resource"),
            scopes: texts(&resource, "scopes_supported").unwrap_or_default(),
            server: of_origin(http, server).await?,
        });
    }
    Err(OauthError::Unusable(
        "the authorization server that the server names does not describe itself".to_owned(),
    ))
}

/// Fetches what a server says about itself; `None` if it says nothing.
async fn resource(
    http: &dyn HttpPort,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<Map<String, Value>>, OauthError> {
    let mut places = Vec::new();
    if let Some(named) = &challenge.resource_metadata {
        places.push(address::checked(named, server)?);
    }
    places.extend(well_known(server, "oauth-protected-resource"));
    for place in places {
        let Some(described) = web::describe(http, &place, server).await? else {
            continue;
        };
        let Some(named) = text(&described, "resource") else {
            continue;
        };
        if !covers(&named, server) {
            return Err(OauthError::Unusable(format!(
                "the description of the login is about {named}, not about this server"
            )));
        }
        return Ok(Some(described));
    }
    Ok(None)
}

/// Whether a description of this resource is about a server: it is the server or stands above it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let (above, below) = (
        resource.path().trim_end_matches('/'),
        server.path().trim_end_matches('/'),
    );
    let is_above = below
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && is_above
}

/// Returns the places where a description may be: for the path, and for the host.
fn well_known(of: &Url, name: &str) -> Vec<Url> {
    let path = of.path().trim_end_matches('/');
    let mut places = Vec::new();
    for path in [path, ""] {
        let mut place = of.clone();
        place.set_path(&format!("/.well-known/{name}{path}"));
        place.set_query(None);
        place.set_fragment(None);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// Fetches the description of an authorization server; `None` if there is none.
async fn of_issuer(
    http: &dyn HttpPort,
    issuer: &str,
    url: &Url,
    server: &Url,
    expected: Issuer,
) -> Result<Option<AuthorizationServer>, OauthError> {
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        paths.push(format!("{path}/.well-known/openid-configuration"));
    }
    for path in paths {
        let mut place = url.clone();
        place.set_path(&path);
        place.set_query(None);
        if let Some(described) = web::describe(http, &place, server).await?
            && described.contains_key("token_endpoint")
        {
            return read(&described, issuer, server, expected).map(Some);
        }
    }
    Ok(None)
}

/// Returns the authorization server on the host of a server, with the addresses of the first version of
/// the protocol if it does not describe itself.
async fn of_origin(http: &dyn HttpPort, server: &Url) -> Result<AuthorizationServer, OauthError> {
    let mut base = server.clone();
    base.set_path("/");
    base.set_query(None);
    base.set_fragment(None);
    let issuer = base.origin().ascii_serialization();
    address::checked(base.as_str(), server)?;
    if let Some(found) = of_issuer(http, &issuer, &base, server, Issuer::OnHost).await? {
        return Ok(found);
    }
    let at = |path: &str| {
        let mut url = base.clone();
        url.set_path(path);
        url
    };
    Ok(AuthorizationServer {
        issuer,
        authorization_endpoint: Some(at("/authorize")),
        token_endpoint: at("/token"),
        registration_endpoint: Some(at("/register")),
        scopes: Vec::new(),
        auth_methods: None,
        takes_documents: false,
        names_itself: false,
    })
}

fn read(
    described: &Map<String, Value>,
    issuer: &str,
    server: &Url,
    expected: Issuer,
) -> Result<AuthorizationServer, OauthError> {
    let named = text(described, "issuer").unwrap_or_default();
    // A description that somebody else wrote must not pass for this one.
    let is_right = match expected {
        Issuer::Named => named.trim_end_matches('/') == issuer.trim_end_matches('/'),
        Issuer::OnHost => Url::parse(&named).is_ok_and(|url| url.origin() == server.origin()),
    };
    if !is_right {
        return Err(OauthError::Unusable(format!(
            "the authorization server {issuer} calls itself {named:?}"
        )));
    }
    let endpoint = |name: &str| {
        let url = text(described, name).map(|text| address::checked(&text, server));
        url.transpose()
    };
    let methods = texts(described, "code_challenge_methods_supported");
    if methods.is_some_and(|methods| !methods.iter().any(|it| it == "S256")) {
        return Err(OauthError::Unusable(format!(
            "the authorization server {issuer} does not take S256 code challenges"
        )));
    }
    let flag = |name: &str| described.get(name).and_then(Value::as_bool) == Some(true);
    Ok(AuthorizationServer {
        issuer: named,
        authorization_endpoint: endpoint("authorization_endpoint")?,
        token_endpoint: endpoint("token_endpoint")?.ok_or_else(|| {
            OauthError::Unusable(format!("the authorization server {issuer} gives no tokens"))
        })?,
        registration_endpoint: endpoint("registration_endpoint")?,
        scopes: texts(described, "scopes_supported").unwrap_or_default(),
        auth_methods: texts(described, "token_endpoint_auth_methods_supported"),
        takes_documents: flag("client_id_metadata_document_supported"),
        names_itself: flag("authorization_response_iss_parameter_supported"),
    })
}

fn text(object: &Map<String, Value>, name: &str) -> Option<String> {
    object.get(name)?.as_str().map(str::to_owned)
}

fn texts(object: &Map<String, Value>, name: &str) -> Option<Vec<String>> {
    let list = object.get(name)?.as_array()?.iter();
    let list = list.filter_map(|it| it.as_str().map(str::to_owned));
    Some(list.collect())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_about_its_server_or_what_stands_above_it() {
        let server = Url::parse("https://a.example/team/mcp").unwrap();
        for (resource, covered) in [
            ("https://a.example/team/mcp", true),
            ("https://a.example/team/mcp/", true),
            ("https://a.example/team", true),
            ("https://a.example", true),
            ("https://a.example/te", false),
            ("https://a.example/team/mcp/x", false),
            ("https://b.example/team/mcp", false),
            ("http://a.example/team/mcp", false),
            ("nothing", false),
        ] {
            assert_eq!(covers(resource, &server), covered, "{resource}");
        }
    }

    #[test]
    fn descriptions_are_looked_for_at_the_path_and_at_the_host() {
        let places = |server: &str| {
            let places = well_known(&Url::parse(server).unwrap(), "x");
            places.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let both = [
            "https://a.example/.well-known/x/mcp",
            "https://a.example/.well-known/x",
        ];
        assert_eq!(places("https://a.example/mcp?q=1"), both);
        assert_eq!(places("https://a.example/"), both[1..]);
    }
}
