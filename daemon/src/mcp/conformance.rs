//! Drives the client of MCP servers for the public conformance tool, without a daemon: it connects to a
//! server, lists its tools and calls them. A login is visited by a request instead of a person.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderMap;
use http::header::LOCATION;
use loopd_exec::clock::Clock;
use loopd_mcp::config::{
    Endpoint, IdentityProvider, LONGEST_CALL, Lifecycle, OAuthClient, ProgramLogin, STARTUP,
    ServerConfig, ToolFilter, Transport, Trust,
};
use loopd_mcp::oauth::{self, Callback, Challenge, Login, LoginRequest};
use loopd_mcp::port::{
    AuthChallenge, AuthReason, CallRef, Elicitation, ElicitationAnswer, HostSession, HttpMethod,
    HttpPort, HttpRequest, Launcher, Ports, ProgramSpec, ServerNews, ServerProcess, TokenError,
    TokenSource,
};
use loopd_mcp::{Call, CallError, Called, Host, Server, ServerTool, TaskSupport, ToolCache};
use loopd_model::http_client::HttpClient;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::web::LaunchWeb;

/// Where logins send people back to. Nobody listens there: the answer is read from the redirect.
const REDIRECT: &str = "http://127.0.0.1:3000/callback";
/// The description of a client that the tool expects to be named.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
const CALL_WITHIN: Duration = Duration::from_secs(60);

/// What the tool says about a scenario.
#[derive(Default)]
pub struct Scenario {
    pub name: String,
    pub context: Map<String, Value>,
    pub protocol_version: Option<String>,
}

impl Scenario {
    fn text(&self, name: &str) -> Option<String> {
        self.context.get(name)?.as_str().map(str::to_owned)
    }

    fn client(&self) -> OAuthClient {
        OAuthClient {
            client_id: self.text("client_id"),
            client_secret: self.text("client_secret"),
            private_key: self.text("private_key_pem"),
            as_program: self.as_program(),
            ..OAuthClient::default()
        }
    }

    fn as_program(&self) -> Option<ProgramLogin> {
        if let Some(id_token) = self.text("idp_id_token") {
            return Some(ProgramLogin::Organisation(IdentityProvider {
                token_endpoint: self.text("idp_token_endpoint").unwrap_or_default(),
                client_id: self.text("idp_client_id"),
                id_token,
            }));
        }
        if let Some(assertion) = self.text("valid_jwt") {
            return Some(ProgramLogin::Assertion(assertion));
        }
        let is_program = self.name.contains("client-credentials");
        is_program.then_some(ProgramLogin::ClientCredentials)
    }
}

/// Runs one scenario. The error says what did not work.
pub async fn run(url: &str, scenario: Scenario, http: HttpClient) -> Result<(), String> {
    let http: Arc<dyn HttpPort> = Arc::new(LaunchWeb(Arc::new(http)));
    let endpoint = Endpoint {
        url: url.to_owned(),
        headers: Vec::new(),
        oauth: scenario.client(),
    };
    let tokens = Arc::new(VisitedLogin {
        endpoint: endpoint.clone(),
        http: http.clone(),
        clock: Clock::default(),
        login: Mutex::default(),
        obtaining: tokio::sync::Mutex::default(),
    });
    let ports = Ports {
        launcher: Arc::new(NoPrograms),
        http,
        session: Arc::new(NobodyThere),
    };
    let cache = ToolCache::new(std::env::temp_dir().join("loopd-mcp-conformance"));
    let host = Host::new(ports, cache, LONGEST_CALL);
    let is_new = scenario.protocol_version.as_deref() == Some("2026-07-28");
    let config = ServerConfig {
        name: "server".to_owned(),
        display_name: None,
        transport: Transport::Http(endpoint),
        startup_timeout: STARTUP,
        call_timeout: CALL_WITHIN,
        tools: ToolFilter::default(),
        lifecycle: if is_new {
            Lifecycle::Discover
        } else {
            Lifecycle::Initialize
        },
        keeps_tools: false,
        is_shared: false,
        may_push: false,
        trust: Trust::default(),
    };
    let server = host.add(config, Some(tokens)).await;
    let done = use_it(&server, &scenario).await;
    host.close().await;
    done
}

/// Lists the tools of a server and calls them.
async fn use_it(server: &Arc<Server>, scenario: &Scenario) -> Result<(), String> {
    server
        .connected()
        .await
        .map_err(|error| error.to_string())?;
    let tools = server.list_tools().await;
    let tools = tools.map_err(|error| error.to_string())?;
    let named = scenario.context.get("toolCalls").and_then(Value::as_array);
    let calls: Vec<(String, Map<String, Value>)> = match named {
        Some(named) => named.iter().filter_map(named_call).collect(),
        None => tools
            .iter()
            .map(|tool| (tool.name.clone(), arguments(&tool.schema, &tools)))
            .collect(),
    };
    for (tool, arguments) in calls {
        let called = server.call(Call {
            tool: tool.clone(),
            arguments,
            meta: None,
            label: CallRef::default(),
            timeout: CALL_WITHIN,
            progress: None,
            cancel: CancellationToken::new(),
            task: TaskSupport::Forbidden,
        });
        match called.await {
            Ok(Called::Result(_)) => {}
            Ok(Called::Task(_)) => return Err(format!("{tool} was not wanted as a task")),
            // The model would be told, and would go on.
            Err(CallError::Refused { code, message }) => {
                tracing::warn!(tool, code, message, "a call was refused");
            }
            Err(error) => return Err(format!("{tool}: {error}")),
        }
    }
    Ok(())
}

fn named_call(call: &Value) -> Option<(String, Map<String, Value>)> {
    let arguments = call.get("arguments").and_then(Value::as_object).cloned();
    let name = call.get("name")?.as_str()?.to_owned();
    Some((name, arguments.unwrap_or_default()))
}

/// Makes arguments that fit a schema. Who wants to see a schema gets that of the first tool.
fn arguments(schema: &Value, tools: &[ServerTool]) -> Map<String, Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let fields = fields.into_iter().flatten();
    fields
        .map(|(name, field)| {
            if let Some(default) = field.get("default") {
                return (name.clone(), default.clone());
            }
            let value = match field.get("type").and_then(Value::as_str) {
                Some("integer" | "number") => json!(5),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") if name == "schema" => tools
                    .first()
                    .map(|tool| tool.schema.clone())
                    .unwrap_or_default(),
                Some("object") => json!({}),
                Some(_) | None => json!("text"),
            };
            (name.clone(), value)
        })
        .collect()
}

/// A login that a request visits.
struct VisitedLogin {
    endpoint: Endpoint,
    http: Arc<dyn HttpPort>,
    clock: Clock,
    login: Mutex<Option<Login>>,
    /// One at a time.
    obtaining: tokio::sync::Mutex<()>,
}

impl VisitedLogin {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().0).unwrap_or(0)
    }

    fn access(&self) -> Option<String> {
        let login = self.login.lock();
        let tokens = login.as_ref()?.tokens.as_ref()?;
        Some(tokens.access.clone())
    }

    async fn log_in(&self, challenge: AuthChallenge) -> Result<Login, oauth::OauthError> {
        let header = challenge.www_authenticate.as_deref();
        let read = header.map(Challenge::read).unwrap_or_default();
        let (url, client) = (self.endpoint.url.as_str(), &self.endpoint.oauth);
        if let Some(how) = &client.as_program {
            let now = self.now_ms();
            return oauth::log_in_as_program(&*self.http, url, (client, how), &read, now).await;
        }
        let known = self.login.lock().clone();
        if let (Some(login), AuthReason::Refresh) = (&known, challenge.reason)
            && let Ok(Some(renewed)) = oauth::renew(&*self.http, login, self.now_ms()).await
        {
            return Ok(renewed);
        }
        let pending = oauth::begin(
            &*self.http,
            LoginRequest {
                server_url: url,
                client,
                challenge: Some(read),
                redirect_uri: REDIRECT,
                document: Some(DOCUMENT),
                name: "loopd",
                known: known.as_ref(),
            },
        )
        .await?;
        let callback = self.visit(pending.url()).await?;
        pending.finish(&*self.http, callback, self.now_ms()).await
    }

    /// Visits the address of a login and returns where that leads.
    async fn visit(&self, url: &str) -> Result<Callback, oauth::OauthError> {
        let request = HttpRequest {
            method: HttpMethod::Get,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            body: bytes::Bytes::new(),
        };
        let wrong = |why: String| oauth::OauthError::Unusable(why);
        let response = self.http.send(request).await;
        let response = response.map_err(|error| wrong(error.to_string()))?;
        let to = response.headers.get(LOCATION);
        let to = to.and_then(|to| to.to_str().ok()).unwrap_or_default();
        let query = to.split_once('?').map(|(_, query)| query);
        let query = query.ok_or_else(|| wrong("the page of the login leads nowhere".to_owned()))?;
        Ok(Callback::read(query))
    }
}

impl TokenSource for VisitedLogin {
    fn current(&self) -> BoxFuture<'_, Option<String>> {
        async { self.access() }.boxed()
    }

    fn obtain(&self, challenge: AuthChallenge) -> BoxFuture<'_, Result<String, TokenError>> {
        async move {
            let _alone = self.obtaining.lock().await;
            let newer = self.access();
            if let Some(newer) = newer.filter(|it| Some(it) != challenge.rejected.as_ref()) {
                return Ok(newer);
            }
            let login = self.log_in(challenge).await;
            let login = login.map_err(|error| TokenError::NeedsLogin(error.to_string()))?;
            *self.login.lock() = Some(login);
            let none = || TokenError::NeedsLogin("there is no token".to_owned());
            self.access().ok_or_else(none)
        }
        .boxed()
    }

    fn renewed(&self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }
}

/// A session without people: every form is accepted as it is.
struct NobodyThere;

impl HostSession for NobodyThere {
    fn elicit(
        &self,
        _server: &str,
        _call: CallRef,
        _asked: Elicitation,
    ) -> BoxFuture<'_, ElicitationAnswer> {
        async { ElicitationAnswer::Accepted(None) }.boxed()
    }

    fn sample(
        &self,
        _server: &str,
        _call: CallRef,
        _request: Value,
    ) -> BoxFuture<'_, Result<Value, String>> {
        async { Err("there is no model here".to_owned()) }.boxed()
    }

    fn now_ms(&self) -> u64 {
        0
    }

    fn roots(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn servers_changed(&self) {}

    fn news(&self, _server: &str, _news: ServerNews) {}
}

struct NoPrograms;

impl Launcher for NoPrograms {
    fn launch(&self, _spec: ProgramSpec) -> BoxFuture<'_, Result<Box<dyn ServerProcess>, String>> {
        async { Err("no programs are started here".to_owned()) }.boxed()
    }
}
