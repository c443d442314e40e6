//! Whole exchanges with a server on loopback.

mod broken;

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::kernel::model::{Delivery, Finish, ModelMessage, Part};
use crate::provider::NoDeltas;
use crate::provider::endpoint::Credential;
use crate::provider::http::Timeouts;
use crate::provider::http_client::{HttpClient, HttpSettings};
use crate::provider::secret::Secret;
use crate::provider::test_server::{Ending, Scripted, TestServer};

const KEY: &str = "key-that-must-not-leak";

fn provider(server: &TestServer, flavor: Flavor) -> OpenAiChat {
    provider_within(Timeouts::default(), server, flavor)
}

fn provider_within(timeouts: Timeouts, server: &TestServer, flavor: Flavor) -> OpenAiChat {
    let carrier = Arc::new(HttpClient::new(HttpSettings::default()));
    let credential = Credential::Bearer(Secret::new(KEY));
    let endpoint =
        Endpoint::new(&format!("{}/v1/", server.url()), credential, &[], carrier).unwrap();
    OpenAiChat::new("test", endpoint.with_timeouts(timeouts), flavor)
}

fn request(delivery: Delivery) -> ModelRequest {
    ModelRequest {
        model: "gpt".to_owned(),
        messages: vec![ModelMessage::User(vec![Part::Text("hi".to_owned())])],
        tools: Vec::new(),
        delivery,
        reasoning_effort: None,
        headers: Vec::new(),
    }
}

#[derive(Default, Debug, PartialEq)]
struct Heard {
    text: String,
    reasoning: String,
    deltas: usize,
    bytes: u64,
}

impl DeltaSink for Heard {
    fn text(&mut self, delta: &str) {
        self.text.push_str(delta);
        self.deltas += 1;
    }
    fn reasoning(&mut self, delta: &str) {
        self.reasoning.push_str(delta);
    }
    fn received(&mut self, total_bytes: u64) {
        self.bytes = total_bytes;
    }
}

type Exchanged = (Result<ModelReply, ProviderError>, Heard);

/// Serves one reply to one call.
async fn exchange(delivery: Delivery, reply: Scripted) -> Exchanged {
    exchange_within(Timeouts::default(), delivery, reply).await
}

async fn exchange_within(timeouts: Timeouts, delivery: Delivery, reply: Scripted) -> Exchanged {
    let server = TestServer::start([reply]).await;
    let mut heard = Heard::default();
    let provider = provider_within(timeouts, &server, Flavor::Plain);
    let result = provider.call(&request(delivery), &mut heard).await;
    (result, heard)
}

fn completion(text: &str) -> Value {
    json!({ "id": "c1", "choices": [{ "message": { "content": text }, "finish_reason": "stop" }] })
}

fn text_event(text: &str) -> String {
    format!(
        "data: {}\n\n",
        json!({ "choices": [{ "index": 0, "delta": { "content": text } }] })
    )
}

const FINISH_EVENT: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn a_whole_reply_comes_without_deltas() {
    let reply = Scripted::json(200, &completion("hello")).header("x-request-id", "trace-1");
    let (result, heard) = exchange(Delivery::Whole, reply).await;
    let reply = result.unwrap();
    assert_eq!(reply.turn.text, "hello");
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.api_call_id.as_deref(), Some("c1"));
    assert_eq!(reply.provider_call_id.as_deref(), Some("trace-1"));
    assert_eq!(heard.deltas, 0);
    assert_eq!(heard.bytes, completion("hello").to_string().len() as u64);
}

#[tokio::test]
async fn the_request_has_its_address_key_and_body() {
    let server = TestServer::start([Scripted::json(200, &completion("a"))]).await;
    let mut call = request(Delivery::Whole);
    call.headers = vec![("X-Custom".to_owned(), "yes".to_owned())];
    provider(&server, Flavor::Plain)
        .call(&call, &mut NoDeltas)
        .await
        .unwrap();
    let received = server.received().remove(0);
    assert_eq!(received.line, "POST /v1/chat/completions");
    assert_eq!(
        received.header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(received.header("content-type"), Some("application/json"));
    assert_eq!(received.header("x-custom"), Some("yes"));
    assert_eq!(
        received.header("user-agent"),
        Some(concat!("loopd/", env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(received.header("x-initiator"), None);
    assert_eq!(
        received.json(),
        json!({ "model": "gpt", "messages": [{ "role": "user", "content": "hi" }] })
    );
}

#[tokio::test]
async fn copilot_gets_its_headers() {
    let list = json!({ "data": [{ "id": "m", "name": "M", "capabilities": { "supports": { "vision": true } } }] });
    let server = TestServer::start([
        Scripted::json(200, &completion("a")),
        Scripted::json(200, &list),
    ])
    .await;
    let provider = provider(&server, Flavor::Copilot);
    let mut call = request(Delivery::Whole);
    call.messages.push(ModelMessage::ToolResult {
        call: "c".into(),
        text: "out".to_owned(),
    });
    call.headers = vec![("x-interaction-id".to_owned(), "i-1".to_owned())];
    provider.call(&call, &mut NoDeltas).await.unwrap();
    let models = provider.models().await.unwrap();
    assert!(models.len() == 1 && models[0].vision);
    let received = server.received();
    let head = |name| received[0].header(name);
    assert_eq!(head("copilot-integration-id"), Some("loopd"));
    assert_eq!(
        head("editor-version"),
        Some(concat!("loopd/", env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(head("openai-intent"), Some("conversation-agent"));
    assert_eq!(head("x-initiator"), Some("agent"));
    assert_eq!(head("x-interaction-id"), Some("i-1"));
    assert_eq!(received[1].line, "GET /v1/models");
    assert_eq!(received[1].header("copilot-integration-id"), Some("loopd"));
    assert_eq!(
        received[1].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    assert_eq!(server.connections(), 1, "the connection is used again");
}

#[tokio::test]
async fn a_streamed_reply_is_passed_on_piece_by_piece() {
    let stream = [
        ": ping\n\n",
        &text_event("grüße "),
        &text_event("日本"),
        FINISH_EVENT,
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n",
    ]
    .concat();
    // Pieces of five bytes cut letters and events apart.
    let reply = Scripted::events(stream.as_bytes().chunks(5).map(<[u8]>::to_vec));
    let server = TestServer::start([reply]).await;
    let mut heard = Heard::default();
    let call = request(Delivery::Streamed);
    let reply = provider(&server, Flavor::Plain)
        .call(&call, &mut heard)
        .await
        .unwrap();
    assert_eq!(reply.turn.text, "grüße 日本");
    assert_eq!((heard.text.as_str(), heard.deltas), ("grüße 日本", 2));
    assert_eq!(
        (reply.usage.input_tokens, reply.usage.output_tokens),
        (3, 2)
    );
    assert!(heard.bytes > 0 && heard.bytes <= stream.len() as u64);
    let body = server.received().remove(0).json();
    assert_eq!(
        (&body["stream"], &body["stream_options"]["include_usage"]),
        (&json!(true), &json!(true))
    );
}

#[tokio::test]
async fn the_servers_media_type_decides_how_a_reply_is_read() {
    let (result, heard) = exchange(
        Delivery::Streamed,
        Scripted::json(200, &completion("at once")),
    )
    .await;
    assert_eq!(result.unwrap().turn.text, "at once");
    assert_eq!((heard.text.as_str(), heard.deltas), ("at once", 1));

    let stream = Scripted::events([text_event("in pieces"), FINISH_EVENT.to_owned()]);
    let (result, heard) = exchange(Delivery::Whole, stream).await;
    assert_eq!(result.unwrap().turn.text, "in pieces");
    assert_eq!(heard.deltas, 0);
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection() {
    let stall = Scripted::events([text_event("a")]).ending(Ending::Stall);
    let server = TestServer::start([stall, Scripted::json(200, &completion("b"))]).await;
    let provider = provider(&server, Flavor::Plain);
    let call = request(Delivery::Streamed);
    let mut heard = Heard::default();
    tokio::select! {
        biased;
        result = provider.call(&call, &mut heard) => panic!("the stalled call ended: {result:?}"),
        () = async { while server.received().is_empty() { tokio::task::yield_now().await; } } => {}
    }
    let reply = provider
        .call(&request(Delivery::Whole), &mut NoDeltas)
        .await
        .unwrap();
    assert_eq!(reply.turn.text, "b");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn the_description_and_debug_output_hold_no_key() {
    let server = TestServer::start([]).await;
    let provider = provider(&server, Flavor::Plain);
    assert_eq!(
        provider.describe(),
        EndpointDescription {
            provider_type: "openai",
            wire_api: Some("completions"),
            base_url: Some(format!("{}/v1", server.url())),
            path: Some("/chat/completions"),
        }
    );
    assert_eq!(provider.name(), "test");
    assert!(!format!("{provider:?}").contains(KEY));
}
