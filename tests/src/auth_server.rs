//! An MCP server on the loopback interface that wants a login, and its authorization server, whose
//! refresh tokens rotate: one that is used twice ends the whole login.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The server. It ends when it is dropped.
pub struct AuthServer {
    url: String,
    state: Arc<Mutex<AuthState>>,
    task: JoinHandle<()>,
}

/// What the server knows and counts. Tests change it.
#[derive(Default)]
pub struct AuthState {
    base: String,
    made: usize,
    /// Access tokens with their scopes.
    pub access: HashMap<String, String>,
    /// The refresh token that counts, with its scopes.
    refresh: Option<(String, String)>,
    used: BTreeSet<String>,
    codes: HashMap<String, String>,
    sessions: BTreeSet<String>,
    /// The scope that calls of tools need.
    pub call_scope: Option<String>,
    /// The status of every answer of the token endpoint.
    pub token_failure: Option<u16>,
    /// Where the server says that it describes its login, if not where it does.
    pub metadata_url: Option<String>,
    /// Whether people refuse.
    pub person_refuses: bool,
    pub registrations: usize,
    pub refreshes: usize,
    /// Refresh tokens that were used again.
    pub reuses: usize,
    pub greetings: usize,
    pub calls: usize,
}

impl AuthState {
    fn new_name(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}-secret-{:04}", self.made)
    }

    /// Lets all access tokens end.
    pub fn expire(&mut self) {
        self.access.clear();
    }

    /// Lets the refresh token end.
    pub fn revoke(&mut self) {
        self.refresh = None;
    }

    /// Forgets all connections.
    pub fn forget_connections(&mut self) {
        self.sessions.clear();
    }

    /// Returns every token that was ever given.
    pub fn made(&self) -> Vec<String> {
        let numbers = 1..=self.made;
        numbers
            .map(|number| format!("secret-{number:04}"))
            .collect()
    }
}

struct Request {
    method: String,
    path: String,
    query: HashMap<String, String>,
    headers: HashMap<String, String>,
    body: String,
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    fn json(status: u16, body: &Value) -> Self {
        let kind = ("Content-Type".to_owned(), "application/json".to_owned());
        Self {
            status,
            headers: vec![kind],
            body: body.to_string(),
        }
    }

    fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    fn with(mut self, name: &str, value: String) -> Self {
        self.headers.push((name.to_owned(), value));
        self
    }
}

impl AuthServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(AuthState {
            base: base.clone(),
            ..AuthState::default()
        }));
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self {
            url: format!("{base}/mcp"),
            state,
            task,
        }
    }

    /// Returns the address of the MCP server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the configuration of the MCP server.
    pub fn config(&self) -> Value {
        json!({"type": "http", "url": self.url, "tools": ["*"], "lifecycle": "initialize"})
    }

    /// Looks at what the server knows, or changes it.
    pub fn with<T>(&self, look: impl FnOnce(&mut AuthState) -> T) -> T {
        look(&mut self.state.lock().unwrap())
    }
}

impl Drop for AuthServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Fetches an address as a browser does, and where it redirects to; returns the last status and page.
pub async fn visit(url: &str) -> (u16, String) {
    let mut url = url.to_owned();
    for _ in 0..5 {
        let (status, headers, body) = get(&url).await;
        match headers.get("location") {
            Some(to) if status == 302 => url.clone_from(to),
            _ => return (status, body),
        }
    }
    panic!("redirects in a circle");
}

async fn get(url: &str) -> (u16, HashMap<String, String>, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    (status, headers.collect(), body.to_owned())
}

fn pairs(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut left = text.bytes();
    while let Some(byte) = left.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [left.next().unwrap(), left.next().unwrap()];
                let digits = std::str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

async fn serve(stream: TcpStream, state: Arc<Mutex<AuthState>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        let answer = state.lock().unwrap().answer(&request);
        let mut head = format!("HTTP/1.1 {} X\r\n", answer.status);
        for (name, value) in &answer.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        write!(head, "Content-Length: {}\r\n\r\n", answer.body.len()).unwrap();
        let sent = stream.write_all((head + &answer.body).as_bytes()).await;
        if sent.is_err()
            || request
                .headers
                .get("connection")
                .is_some_and(|it| it == "close")
        {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    if stream.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let mut words = line.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length");
    let length = length.and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Request {
        method,
        path: path.to_owned(),
        query: pairs(query),
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

impl AuthState {
    fn answer(&mut self, request: &Request) -> Answer {
        let base = self.base.clone();
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") => Answer::json(
                200,
                &json!({"resource": format!("{base}/mcp"), "authorization_servers": [base],
                        "scopes_supported": ["read"]}),
            ),
            ("GET", "/.well-known/oauth-authorization-server") => Answer::json(
                200,
                &json!({
                    "issuer": base,
                    "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"),
                    "registration_endpoint": format!("{base}/register"),
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": true,
                }),
            ),
            ("POST", "/register") => {
                self.registrations += 1;
                let mut said: Value = serde_json::from_str(&request.body).unwrap();
                said["client_id"] = json!(format!("client-{}", self.registrations));
                Answer::json(201, &said)
            }
            ("GET", "/authorize") => self.authorize(&request.query),
            ("POST", "/token") => self.token(&pairs(&request.body)),
            (method, "/mcp") => self.mcp(method, request),
            _ => Answer::empty(404),
        }
    }

    fn authorize(&mut self, query: &HashMap<String, String>) -> Answer {
        let (redirect, state) = (&query["redirect_uri"], &query["state"]);
        assert_eq!(query["code_challenge_method"], "S256");
        assert_eq!(query["resource"], format!("{}/mcp", self.base));
        let issuer = self.base.replace(':', "%3A").replace('/', "%2F");
        let to = if self.person_refuses {
            format!("{redirect}?error=access_denied&state={state}&iss={issuer}")
        } else {
            let code = self.new_name("code");
            let scope = query.get("scope").cloned().unwrap_or_default();
            self.codes.insert(code.clone(), scope);
            format!("{redirect}?code={code}&state={state}&iss={issuer}")
        };
        Answer::empty(302).with("Location", to)
    }

    fn token(&mut self, form: &HashMap<String, String>) -> Answer {
        if let Some(status) = self.token_failure {
            return Answer::empty(status);
        }
        let refused = |error: &str| Answer::json(400, &json!({"error": error}));
        let scope = match form["grant_type"].as_str() {
            "authorization_code" => match self.codes.remove(&form["code"]) {
                Some(scope) if form.contains_key("code_verifier") => scope,
                _ => return refused("invalid_grant"),
            },
            "refresh_token" => {
                let given = &form["refresh_token"];
                if self.used.contains(given) {
                    // Somebody has stolen it: the whole login ends.
                    self.reuses += 1;
                    self.refresh = None;
                    self.access.clear();
                    return refused("invalid_grant");
                }
                match self.refresh.take() {
                    Some((token, scope)) if token == *given => {
                        self.refreshes += 1;
                        self.used.insert(token);
                        scope
                    }
                    other => {
                        self.refresh = other;
                        return refused("invalid_grant");
                    }
                }
            }
            _ => return refused("unsupported_grant_type"),
        };
        let (access, refresh) = (self.new_name("access"), self.new_name("refresh"));
        self.access.insert(access.clone(), scope.clone());
        self.refresh = Some((refresh.clone(), scope.clone()));
        Answer::json(
            200,
            &json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600,
                    "refresh_token": refresh, "scope": scope}),
        )
    }

    fn mcp(&mut self, method: &str, request: &Request) -> Answer {
        let described = format!("{}/.well-known/oauth-protected-resource/mcp", self.base);
        let described = self.metadata_url.clone().unwrap_or(described);
        let challenge = |more: &str| format!("Bearer resource_metadata=\"{described}\"{more}");
        let token = request.headers.get("authorization");
        let token = token.and_then(|it| it.strip_prefix("Bearer "));
        let Some(scope) = token.and_then(|token| self.access.get(token)).cloned() else {
            return Answer::empty(401).with("WWW-Authenticate", challenge(", scope=\"read\""));
        };
        if method != "POST" {
            return Answer::empty(405);
        }
        let message: Value = serde_json::from_str(&request.body).unwrap();
        let called = message["method"].as_str().unwrap_or_default().to_owned();
        let reply = |result: Value| {
            Answer::json(
                200,
                &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
            )
        };
        if called == "initialize" {
            self.greetings += 1;
            let session = format!("connection-{}", self.greetings);
            self.sessions.insert(session.clone());
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "auth", "version": "1"}});
            return reply(result).with("Mcp-Session-Id", session);
        }
        let session = request.headers.get("mcp-session-id");
        if !session.is_some_and(|session| self.sessions.contains(session)) {
            return Answer::empty(404);
        }
        match called.as_str() {
            "tools/list" => {
                let tool = json!({"name": "count", "description": "Counts.",
                                  "inputSchema": {"type": "object"}});
                reply(json!({"tools": [tool]}))
            }
            "tools/call" => {
                let needed = self.call_scope.clone().unwrap_or_default();
                if !needed
                    .split(' ')
                    .all(|it| it.is_empty() || scope.split(' ').any(|has| has == it))
                {
                    let more = format!(", error=\"insufficient_scope\", scope=\"{needed}\"");
                    return Answer::empty(403).with("WWW-Authenticate", challenge(&more));
                }
                self.calls += 1;
                let text = json!({"type": "text", "text": format!("call {}", self.calls)});
                reply(json!({"content": [text]}))
            }
            _ if message.get("id").is_none() => Answer::empty(202),
            _ => reply(json!({})),
        }
    }
}
