//! What an entry says about the login at its server.

use serde_json::Value;

use super::members::Members;

/// What an entry says about the login at a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryOAuth {
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    pub private_key: Option<String>,
    pub is_public: Option<bool>,
    pub grant: EntryGrant,
    pub redirect_port: Option<u16>,
    pub scopes: Vec<String>,
    /// Whether nobody logs in at this server.
    pub is_off: bool,
}

/// Who logs in, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EntryGrant {
    /// A person, in a browser.
    #[default]
    Person,
    /// The program, with its secret or key.
    ClientCredentials,
    /// The program, with a statement that somebody else has signed.
    JwtBearer { assertion: String },
    /// The program, with what an identity provider says about a person.
    Enterprise {
        token_endpoint: String,
        client_id: Option<String>,
        id_token: String,
    },
}

/// Reads what an entry says about the login: in members of its own, and in one for all (`oauth`, `auth`).
pub(super) fn read(members: &mut Members<'_>) -> Result<EntryOAuth, String> {
    let grant = members.text(&["oauthGrantType"])?;
    let mut read = EntryOAuth {
        client_id: members.text(&["oauthClientId"])?,
        client_secret: members.text(&["oauthClientSecret"])?,
        private_key: members.text(&["oauthPrivateKey"])?,
        is_public: members.flag(&["oauthPublicClient"])?,
        grant: EntryGrant::Person,
        redirect_port: port(members, &["oauthRedirectPort"])?,
        scopes: members
            .texts(&["oauthScopes", "scopes"])?
            .unwrap_or_default(),
        is_off: false,
    };
    let mut grant = grant.map(|grant| ("oauthGrantType".to_owned(), grant));
    let mut with = GrantMembers::default();
    for name in ["auth", "oauth"] {
        let of = match members.get(&[name]) {
            // Where it is only named, how the login goes is found out.
            None | Some((_, Value::String(_))) => continue,
            Some((_, Value::Bool(on))) => {
                read.is_off |= !on;
                continue;
            }
            Some((_, Value::Object(of))) => of,
            Some(_) => {
                return Err(format!(
                    "has an `{name}` that is neither an object nor false"
                ));
            }
        };
        let mut inner = Members {
            config: of,
            taken: vec!["type", "redirectUri"],
            unknown: Vec::new(),
        };
        let wrong = |what: String| what.replacen('`', &format!("`{name}."), 1);
        let text =
            |inner: &mut Members<'_>, names: &[&'static str]| inner.text(names).map_err(wrong);
        let scope = text(&mut inner, &["scope"])?;
        let scope = scope.map(|scope| scope.split_whitespace().map(str::to_owned).collect());
        let scopes: Option<Vec<String>> = match scope {
            Some(scopes) => Some(scopes),
            None => inner.texts(&["scopes"]).map_err(wrong)?,
        };
        let id = text(&mut inner, &["clientId", "client_id"])?;
        let secret = text(&mut inner, &["clientSecret", "client_secret"])?;
        let port = port(&mut inner, &["redirectPort", "callbackPort"]).map_err(wrong)?;
        read.is_off |= inner.flag(&["enabled"]).map_err(wrong)? == Some(false);
        read.client_id = read.client_id.or(id);
        read.client_secret = read.client_secret.or(secret);
        let key = text(&mut inner, &["privateKey"])?;
        read.private_key = read.private_key.or(key);
        let kind = text(&mut inner, &["grantType"])?;
        grant = grant.or_else(|| Some((format!("{name}.grantType"), kind?)));
        with.assertion = text(&mut inner, &["assertion"])?.or(with.assertion);
        with.token_endpoint = text(&mut inner, &["idpTokenEndpoint"])?.or(with.token_endpoint);
        with.client_id = text(&mut inner, &["idpClientId"])?.or(with.client_id);
        with.id_token = text(&mut inner, &["idToken"])?.or(with.id_token);
        read.redirect_port = read.redirect_port.or(port);
        if read.scopes.is_empty() {
            read.scopes = scopes.unwrap_or_default();
        }
        let known = inner.taken;
        let unknown = of.keys().filter(|key| !known.contains(&key.as_str()));
        members
            .unknown
            .extend(unknown.map(|key| format!("{name}.{key}")));
    }
    if let Some((name, grant)) = grant {
        read.grant = with.grant(&name, &grant)?;
    }
    Ok(read)
}

/// What the different kinds of logins need.
#[derive(Default)]
struct GrantMembers {
    assertion: Option<String>,
    token_endpoint: Option<String>,
    client_id: Option<String>,
    id_token: Option<String>,
}

impl GrantMembers {
    fn grant(self, name: &str, grant: &str) -> Result<EntryGrant, String> {
        let needs = |member: &str| format!("has `{name}` {grant:?} and no `oauth.{member}`");
        Ok(match grant {
            "authorization_code" => EntryGrant::Person,
            "client_credentials" => EntryGrant::ClientCredentials,
            "jwt_bearer" => EntryGrant::JwtBearer {
                assertion: self.assertion.ok_or_else(|| needs("assertion"))?,
            },
            "enterprise" => EntryGrant::Enterprise {
                token_endpoint: self
                    .token_endpoint
                    .ok_or_else(|| needs("idpTokenEndpoint"))?,
                client_id: self.client_id,
                id_token: self.id_token.ok_or_else(|| needs("idToken"))?,
            },
            _ => {
                return Err(format!(
                    "has a `{name}` {grant:?}; authorization_code, client_credentials, jwt_bearer and enterprise \
                     are known"
                ));
            }
        })
    }
}

fn port<'a>(members: &mut Members<'a>, names: &[&'a str]) -> Result<Option<u16>, String> {
    let found = members.get(names);
    found
        .map(|(name, value)| {
            let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
            let port = port.filter(|port| *port > 0);
            port.ok_or_else(|| format!("has a `{name}` that is no port"))
        })
        .transpose()
}

#[cfg(test)]
#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a failed step fails the test"
)]
mod tests {
    use serde_json::json;

    use super::super::{EntryTransport, McpEntry};
    use super::*;

    fn entry(more: Value) -> Result<McpEntry, String> {
        let Value::Object(mut config) = more else {
            panic!("an entry is an object");
        };
        config.insert("url".to_owned(), json!("https://a.example"));
        McpEntry::read(&config)
    }

    fn login(more: Value) -> EntryOAuth {
        let EntryTransport::Http { oauth, .. } = entry(more).expect("an entry").transport else {
            panic!("an address");
        };
        oauth
    }

    #[test]
    fn the_login_is_read_in_the_words_of_several_programs() {
        let own = json!({"oauthClientId": "c", "oauthScopes": ["a", "b"], "oauthRedirectPort": 7});
        let inner = json!({"oauth": {"clientId": "c", "scope": "a b", "callbackPort": 7}});
        let other = json!({"auth": {"client_id": "c", "redirectPort": 7, "scopes": ["a", "b"]}});
        for config in [own, inner, other] {
            let read = login(config.clone());
            assert_eq!(read.client_id.as_deref(), Some("c"), "{config}");
            assert_eq!(read.scopes, ["a", "b"], "{config}");
            assert_eq!(
                (read.redirect_port, read.is_off),
                (Some(7), false),
                "{config}"
            );
        }
        assert_eq!(login(json!({"scopes": ["x"]})).scopes, ["x"]);
        for off in [
            json!({"oauth": false}),
            json!({"oauth": {"enabled": false}}),
        ] {
            assert!(login(off.clone()).is_off, "{off}");
        }
        assert!(!login(json!({"oauth": true, "auth": "oauth"})).is_off);
    }

    #[test]
    fn what_is_not_known_about_the_login_is_named() {
        let read = entry(json!({"oauth": {"clientId": "c", "tokenUrl": "https://b.example"}}));
        assert_eq!(read.expect("an entry").unknown, ["oauth.tokenUrl"]);
        for (config, expected) in [
            (
                json!({"oauth": {"clientId": 7}}),
                "`oauth.clientId` that is no text",
            ),
            (
                json!({"oauth": []}),
                "`oauth` that is neither an object nor false",
            ),
            (
                json!({"oauthRedirectPort": 70_000}),
                "`oauthRedirectPort` that is no port",
            ),
            (
                json!({"oauth": {"callbackPort": 0}}),
                "`oauth.callbackPort` that is no port",
            ),
            (
                json!({"oauthGrantType": "password"}),
                "`oauthGrantType` \"password\"",
            ),
        ] {
            let error = entry(config.clone()).expect_err("a mistake");
            assert!(error.contains(expected), "{config}: {error}");
        }
    }
}
