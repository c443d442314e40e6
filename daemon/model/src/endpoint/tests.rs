//! Addresses, credentials and headers, with a recording carrier.

use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;

use super::*;
use crate::http::HttpResponse;

/// A carrier that keeps requests and answers with one status and body.
#[derive(Default)]
struct Recorder {
    sent: Mutex<Vec<HttpRequest>>,
    failure: Option<ProviderError>,
    status: u16,
    body: &'static [u8],
}

impl HttpCarrier for Recorder {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, ProviderError>> {
        self.sent.lock().push(request);
        let result = match &self.failure {
            Some(error) => Err(error.clone()),
            None => Ok(HttpResponse {
                status: self.status,
                headers: HeaderMap::new(),
                body: futures::stream::iter([Ok(Bytes::from_static(self.body))]).boxed(),
            }),
        };
        futures::future::ready(result).boxed()
    }
}

impl Recorder {
    fn answering(status: u16, body: &'static [u8]) -> Arc<Self> {
        Arc::new(Self {
            status,
            body,
            ..Self::default()
        })
    }

    fn last(&self) -> HttpRequest {
        self.sent.lock().last().unwrap().clone()
    }
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

async fn get(endpoint: &Endpoint, extra: &[(&str, &str)]) -> Result<u16, ProviderError> {
    let outgoing = Outgoing {
        path: "/chat/completions",
        query: &[],
        defaults: &[
            ("x-default", "format".to_owned()),
            ("x-both", "format".to_owned()),
        ],
        extra: &pairs(extra),
        expecting: Expecting::WholeReply,
    };
    endpoint
        .get(outgoing)
        .await
        .map(|answer| answer.reply.status)
}

fn detail(result: Result<impl Sized, ProviderError>) -> String {
    match result {
        Err(ProviderError::Misconfigured { detail }) => detail,
        Err(other) => panic!("not a configuration error: {other}"),
        Ok(_) => panic!("no error"),
    }
}

#[tokio::test]
async fn paths_are_added_to_any_base() {
    let cases = [
        ("http://h:1", "http://h:1/chat/completions"),
        ("http://h:1/", "http://h:1/chat/completions"),
        (" https://h/v1/ ", "https://h/v1/chat/completions"),
        (
            "https://h/openai/x?api-version=1",
            "https://h/openai/x/chat/completions?api-version=1",
        ),
    ];
    for (base, expected) in cases {
        let carrier = Recorder::answering(200, b"");
        let endpoint = Endpoint::new(base, Credential::None, &[], carrier.clone()).unwrap();
        get(&endpoint, &[]).await.unwrap();
        assert_eq!(carrier.last().url.as_str(), expected);
    }
}

#[test]
fn bases_that_cannot_work_are_refused() {
    for base in [
        "",
        "localhost:8080",
        "ftp://h/",
        "file:///x",
        "http://",
        "unix:/x",
    ] {
        let result = Endpoint::new(base, Credential::None, &[], Recorder::answering(200, b""));
        assert!(detail(result).contains("base URL"), "{base}");
    }
}

#[tokio::test]
async fn configuration_beats_the_format_and_a_client_beats_both() {
    let carrier = Recorder::answering(200, b"");
    let fixed = pairs(&[("X-Both", "configured"), ("X-Fixed", "configured")]);
    let endpoint = Endpoint::new("http://h", Credential::None, &fixed, carrier.clone()).unwrap();
    get(&endpoint, &[("x-fixed", "client"), ("x-new", "client")])
        .await
        .unwrap();
    let headers = carrier.last().headers;
    let of = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(of("x-default"), "format");
    assert_eq!(of("x-both"), "configured");
    assert_eq!(of("x-fixed"), "client");
    assert_eq!(of("x-new"), "client");
}

struct Tokens(Mutex<u32>);

impl TokenSource for Tokens {
    fn token(&self) -> BoxFuture<'_, Result<Secret, ProviderError>> {
        let mut count = self.0.lock();
        *count += 1;
        futures::future::ready(Ok(Secret::new(format!("asked-token-{count}")))).boxed()
    }
}

#[tokio::test]
async fn each_credential_is_sent_in_its_way() {
    let key = || Secret::new("the-secret-key");
    let cases = [
        (Credential::None, "authorization", None),
        (
            Credential::Bearer(key()),
            "authorization",
            Some("Bearer the-secret-key"),
        ),
        (
            Credential::ApiKeyHeader {
                name: "api-key".to_owned(),
                key: key(),
            },
            "api-key",
            Some("the-secret-key"),
        ),
    ];
    for (credential, name, expected) in cases {
        let carrier = Recorder::answering(200, b"");
        let endpoint = Endpoint::new("http://h", credential, &[], carrier.clone()).unwrap();
        get(&endpoint, &[]).await.unwrap();
        let request = carrier.last();
        assert_eq!(
            request
                .headers
                .get(name)
                .map(|value| value.to_str().unwrap()),
            expected
        );
        assert!(!format!("{request:?} {endpoint:?}").contains("the-secret-key"));
    }
}

#[tokio::test]
async fn a_token_is_asked_for_before_each_request_and_hidden_in_errors() {
    let carrier = Recorder::answering(400, b"bad token asked-token-2, not asked-token-1");
    let source = Credential::Asked(Arc::new(Tokens(Mutex::new(0))));
    let endpoint = Endpoint::new("http://h", source, &[], carrier.clone()).unwrap();
    get(&endpoint, &[]).await.unwrap_err();
    let error = get(&endpoint, &[]).await.unwrap_err();
    assert_eq!(
        carrier.last().headers.get("authorization").unwrap(),
        "Bearer asked-token-2"
    );
    assert_eq!(
        error.provider_message(),
        Some("bad token ***, not asked-token-1")
    );
}

struct Silent;

impl TokenSource for Silent {
    fn token(&self) -> BoxFuture<'_, Result<Secret, ProviderError>> {
        futures::future::pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_never_comes_ends_the_call() {
    let carrier = Recorder::answering(200, b"");
    let source = Credential::Asked(Arc::new(Silent));
    let endpoint = Endpoint::new("http://h", source, &[], carrier.clone()).unwrap();
    let limit = Timeouts::default().token;
    let late = ProviderError::Timeout {
        phase: TimeoutPhase::Token,
        limit,
    };
    assert_eq!(get(&endpoint, &[]).await, Err(late));
    assert!(carrier.sent.lock().is_empty());
}

#[tokio::test]
async fn a_client_cannot_change_who_we_are() {
    let key = Credential::ApiKeyHeader {
        name: "Api-Key".to_owned(),
        key: Secret::new("secret-value"),
    };
    let carrier = Recorder::answering(200, b"");
    let endpoint = Endpoint::new("http://h", key, &[], carrier.clone()).unwrap();
    for name in [
        "Authorization",
        "HOST",
        "api-key",
        "content-length",
        "Cookie",
        "proxy-authorization",
    ] {
        let message = detail(get(&endpoint, &[(name, "x")]).await);
        assert!(message.contains(&name.to_lowercase()), "{message}");
    }
    for (name, value) in [
        ("bad name", "x"),
        ("", "x"),
        ("x-ok", "line\nbreak"),
        ("x\r\ny", "z"),
    ] {
        detail(get(&endpoint, &[(name, value)]).await);
    }
    assert!(carrier.sent.lock().is_empty(), "nothing may be sent");
}

#[test]
fn configured_headers_may_authenticate_but_not_frame() {
    let make = |name: &str, value: &str| {
        Endpoint::new(
            "http://h",
            Credential::None,
            &pairs(&[(name, value)]),
            Recorder::answering(200, b""),
        )
    };
    assert!(make("Authorization", "Basic abc").is_ok());
    assert!(make("user-agent", "mine").is_ok());
    assert!(detail(make("Host", "x")).contains("host"));
    assert!(detail(make("x y", "x")).contains("x y"));
    assert!(!format!("{:?}", make("x-token", "hidden-value").unwrap()).contains("hidden-value"));
}

#[tokio::test]
async fn a_key_that_cannot_be_sent_is_not_quoted() {
    let endpoint = Endpoint::new(
        "http://h",
        Credential::Bearer(Secret::new("secret\nvalue")),
        &[],
        Recorder::answering(200, b""),
    )
    .unwrap();
    let message = detail(get(&endpoint, &[]).await);
    assert!(
        message.contains("key") && !message.contains("secret"),
        "{message}"
    );
}

#[tokio::test]
async fn network_errors_name_the_address_without_its_password() {
    let carrier = Recorder {
        failure: Some(ProviderError::Network {
            detail: "refused pass-word-1".to_owned(),
        }),
        ..Recorder::default()
    };
    let base = "http://user:pass-word-1@h:9/v1/?q=1#f";
    let endpoint = Endpoint::new(base, Credential::None, &[], Arc::new(carrier)).unwrap();
    assert_eq!(endpoint.public_url(), "http://h:9/v1");
    let error = get(&endpoint, &[]).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model provider could not be reached: http://h:9/v1: refused ***"
    );
}
