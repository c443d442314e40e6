//! Exchanges with a client that a test plays.

use std::time::Duration;

use reqwest::Url;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::*;

/// A client that takes everything and tells the test what came.
struct TestClient {
    came: mpsc::UnboundedSender<(&'static str, Value)>,
    gone: watch::Sender<bool>,
}

impl TestClient {
    fn take(&self, what: &'static str, message: &impl Serialize) -> Taking {
        let message = serde_json::to_value(message).unwrap();
        self.came.send((what, message)).ok();
        futures::future::ready(Ok(())).boxed()
    }
}

impl CarryingClient for TestClient {
    fn start_http(&self, start: &RequestStart<'_>) -> Taking {
        self.take("start", start)
    }

    fn send_http_chunk(&self, chunk: &RequestChunk<'_>) -> Taking {
        self.take("chunk", chunk)
    }

    fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }

    fn gone(&self) -> BoxFuture<'static, ()> {
        let mut gone = self.gone.subscribe();
        async move { gone.wait_for(|gone| *gone).await.map(|_| ()).unwrap() }.boxed()
    }
}

struct Pair {
    http: Arc<ClientHttp>,
    came: UnboundedReceiver<(&'static str, Value)>,
    client: Arc<TestClient>,
}

fn pair() -> Pair {
    let (sender, came) = mpsc::unbounded_channel();
    let client = Arc::new(TestClient {
        came: sender,
        gone: watch::Sender::new(false),
    });
    Pair {
        http: Arc::new(ClientHttp::new(client.clone(), "7".to_owned())),
        came,
        client,
    }
}

fn request(body: &str) -> HttpRequest {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer k"));
    HttpRequest {
        method: if body.is_empty() {
            HttpMethod::Get
        } else {
            HttpMethod::Post
        },
        url: Url::parse("https://example.invalid/v1/chat").unwrap(),
        headers,
        body: body.to_owned().into(),
    }
}

fn start(id: &str, status: u16) -> ResponseStart {
    serde_json::from_value(json!({
        "requestId": id, "status": status, "headers": { "content-type": ["text/plain"], "bad name": ["x"] },
    }))
    .unwrap()
}

fn chunk(id: &str, more: Value) -> ResponseChunk {
    let mut value = json!({ "requestId": id });
    value
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

impl Pair {
    fn carrier(&self) -> ClientCarrier {
        self.http.clone().carrier(Some(RequestOrigin {
            agent: None,
            session: "s1".to_owned(),
        }))
    }

    /// Starts a request and waits until the client has all of it.
    async fn begin(
        &mut self,
        body: &str,
    ) -> (
        tokio::task::JoinHandle<Result<HttpResponse, ProviderError>>,
        Value,
        String,
    ) {
        let carrier = self.carrier();
        let request = request(body);
        let call = tokio::spawn(async move { carrier.send(request).await });
        let (what, head) = self.came.recv().await.unwrap();
        assert_eq!(what, "start");
        let mut sent = String::new();
        loop {
            let (what, piece) = self.came.recv().await.unwrap();
            assert_eq!(what, "chunk");
            assert_eq!(piece["cancel"], false);
            sent.push_str(piece["data"].as_str().unwrap());
            if piece["end"] == true {
                return (call, head, sent);
            }
        }
    }
}

#[tokio::test]
async fn a_request_goes_out_and_its_response_comes_back() {
    let mut pair = pair();
    let (call, head, sent) = pair.begin("{\"a\":1}").await;
    assert_eq!(sent, "{\"a\":1}");
    assert_eq!(head["method"], "POST");
    assert_eq!(head["url"], "https://example.invalid/v1/chat");
    assert_eq!(head["headers"]["authorization"], json!(["Bearer k"]));
    assert_eq!(head["sessionId"], "s1");
    assert_eq!(head["agentId"], "s1");
    assert_eq!(head["interactionType"], "conversation-agent");
    let id = head["requestId"].as_str().unwrap();
    assert!(pair.http.take_head(start(id, 200)).await);
    let pieces = [
        json!({ "data": "he" }),
        json!({ "data": STANDARD.encode("llo"), "binary": true }),
        json!({ "end": true }),
    ];
    for piece in pieces {
        assert!(pair.http.take_chunk(chunk(id, piece)).await);
    }
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.status, 200);
    assert_eq!(response.headers["content-type"], "text/plain");
    let body: Vec<Bytes> = response.body.map(Result::unwrap).collect().await;
    assert_eq!(body.concat(), b"hello");
    assert!(
        !pair
            .http
            .take_chunk(chunk(id, json!({ "data": "late" })))
            .await
    );
}

#[tokio::test]
async fn a_request_for_nobody_names_nobody_and_large_bodies_go_in_pieces() {
    let mut pair = pair();
    let (_call, head, sent) = pair.begin("").await;
    assert_eq!(head["method"], "GET");
    assert_eq!(head.get("sessionId"), None);
    assert_eq!(sent, "");
    let large = "ä".repeat(PIECE_OF_BODY);
    let (_call, _, sent) = pair.begin(&large).await;
    assert_eq!(sent, large);
}

#[tokio::test]
async fn failures_of_the_client_are_errors() {
    let failed = json!({ "end": true, "error": { "message": "no route" } });
    let cancelled = json!({ "end": true, "error": { "message": "x", "code": "cancelled" } });
    let cases = [
        (None, failed.clone(), "no route"),
        (Some(502), failed, "no route"),
        (Some(499), cancelled, "cancelled"),
    ];
    for (status, error, words) in cases {
        let mut pair = pair();
        let (call, head, _) = pair.begin("{}").await;
        let id = head["requestId"].as_str().unwrap();
        if let Some(status) = status {
            pair.http.take_head(start(id, status)).await;
        }
        pair.http.take_chunk(chunk(id, error)).await;
        let Err(error) = call.await.unwrap() else {
            panic!("the call succeeded");
        };
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_truncated() {
    let mut pair = pair();
    let (call, head, _) = pair.begin("{}").await;
    let id = head["requestId"].as_str().unwrap();
    pair.http.take_head(start(id, 200)).await;
    let error = json!({ "error": { "message": "reset" } });
    pair.http.take_chunk(chunk(id, error)).await;
    let mut body = call.await.unwrap().unwrap().body;
    assert!(matches!(
        body.next().await,
        Some(Err(ProviderError::Truncated { .. }))
    ));
}

#[tokio::test]
async fn dropping_a_response_withdraws_the_request() {
    let mut pair = pair();
    let (call, head, _) = pair.begin("{}").await;
    let id = head["requestId"].as_str().unwrap();
    pair.http.take_head(start(id, 200)).await;
    drop(call.await.unwrap().unwrap());
    let (what, piece) = pair.came.recv().await.unwrap();
    assert_eq!(what, "chunk");
    assert_eq!(piece["cancel"], true);
    assert_eq!(piece["requestId"], id);
    let (call, head, _) = pair.begin("{}").await;
    call.abort();
    let (_, piece) = pair.came.recv().await.unwrap();
    assert_eq!(piece["requestId"], head["requestId"]);
    assert_eq!(piece["cancel"], true);
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_exchanges() {
    let mut pair = pair();
    let (call, _, _) = pair.begin("{}").await;
    pair.client.gone.send_replace(true);
    let outcome = tokio::time::timeout(Duration::from_secs(5), call).await;
    let Err(error) = outcome.unwrap().unwrap() else {
        panic!("the call succeeded");
    };
    assert!(error.to_string().contains("gone"), "{error}");
    assert!(pair.http.is_gone());
}

#[tokio::test]
async fn a_client_that_has_yet_to_come_back_carries_nothing() {
    let http = Arc::new(ClientHttp::awaiting());
    assert!(http.is_gone());
    let Err(error) = http.carrier(None).send(request("{}")).await else {
        panic!("the call succeeded");
    };
    assert!(error.to_string().contains("gone"), "{error}");
}

#[tokio::test]
async fn a_fast_client_waits_for_a_slow_reader() {
    let mut pair = pair();
    let (call, head, _) = pair.begin("{}").await;
    let id = head["requestId"].as_str().unwrap();
    pair.http.take_head(start(id, 200)).await;
    let mut body = call.await.unwrap().unwrap().body;
    for _ in 0..WAITING_PIECES {
        assert!(
            pair.http
                .take_chunk(chunk(id, json!({ "data": "x" })))
                .await
        );
    }
    let more = pair.http.take_chunk(chunk(id, json!({ "data": "x" })));
    let mut more = std::pin::pin!(more);
    assert!(futures::poll!(&mut more).is_pending());
    body.next().await.unwrap().unwrap();
    assert!(more.await);
}
