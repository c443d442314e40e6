//! Whole exchanges with a server on loopback, the same for every vendor.

mod broken;

use serde_json::json;

use super::*;
use crate::endpoint::Credential;
use crate::http::Timeouts;
use crate::http_client::{HttpClient, HttpSettings};
use crate::secret::Secret;
use crate::test_server::{Ending, Received, Scripted, TestServer};
use loopd_kernel::model::{Delivery, Part};

pub(super) const KEY: &str = "key-that-must-not-leak";
pub(super) const CHAT: VendorFormat = VendorFormat::OpenAiChat(Flavor::Plain);
pub(super) const RESPONSES: VendorFormat = VendorFormat::OpenAiResponses;
pub(super) const ANTHROPIC: VendorFormat = VendorFormat::Anthropic(Citations::Unwanted);

pub(super) type Exchanged = (Result<ModelReply, ProviderError>, Collected);

/// A sink that keeps what it is given.
#[derive(Default, Debug, PartialEq)]
pub(super) struct Collected {
    pub(super) text: Vec<String>,
    pub(super) thinking: Vec<String>,
    pub(super) bytes: u64,
}

impl DeltaSink for Collected {
    fn text(&mut self, delta: &str) {
        self.text.push(delta.to_owned());
    }
    fn reasoning(&mut self, delta: &str) {
        self.thinking.push(delta.to_owned());
    }
    fn received(&mut self, total_bytes: u64) {
        self.bytes = total_bytes;
    }
}

pub(super) fn conversation(model: &str, messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        model: model.to_owned(),
        messages,
        tools: Vec::new(),
        delivery: Delivery::Whole,
        reasoning_effort: None,
        reasoning_summary: None,
        max_output_tokens: None,
        tool_use: loopd_kernel::model::ToolUse::Free,
        headers: Vec::new(),
    }
}

pub(super) fn request(delivery: Delivery) -> ModelRequest {
    let said = ModelMessage::User(vec![Part::Text("hi".to_owned())]);
    ModelRequest {
        delivery,
        ..conversation("m", vec![said])
    }
}

fn connected(base: &str, timeouts: Timeouts, format: VendorFormat) -> Arc<dyn Provider> {
    let credential = match format {
        VendorFormat::Anthropic(_) => Credential::ApiKeyHeader {
            name: "x-api-key".to_owned(),
            key: Secret::new(KEY),
        },
        VendorFormat::OpenAiChat(_) | VendorFormat::OpenAiResponses => {
            Credential::Bearer(Secret::new(KEY))
        }
    };
    let carrier = Arc::new(HttpClient::new(HttpSettings::default()));
    let endpoint = Endpoint::new(base, credential, &[], carrier).unwrap();
    connect(
        format,
        "test".to_owned(),
        endpoint.with_timeouts(timeouts),
        None,
    )
}

pub(super) fn provider(format: VendorFormat, server: &TestServer) -> Arc<dyn Provider> {
    connected(
        &format!("{}/v1/", server.url()),
        Timeouts::default(),
        format,
    )
}

/// Serves one reply to one call.
pub(super) async fn exchange(
    format: VendorFormat,
    delivery: Delivery,
    reply: Scripted,
) -> Exchanged {
    exchange_within(Timeouts::default(), format, delivery, reply).await
}

async fn exchange_within(
    timeouts: Timeouts,
    format: VendorFormat,
    delivery: Delivery,
    reply: Scripted,
) -> Exchanged {
    let server = TestServer::start([reply]).await;
    let mut collected = Collected::default();
    let provider = connected(&server.url(), timeouts, format);
    let result = provider.call(&request(delivery), &mut collected).await;
    (result, collected)
}

/// Writes an event whose name is the type of its document.
pub(super) fn event(document: &Value) -> String {
    format!("event: {}\ndata: {document}\n\n", word(document, "type"))
}

/// The same reply in the words of one vendor: `grüße 日本`, 3 tokens in, 2 out.
struct Sample {
    format: VendorFormat,
    whole: Value,
    /// The stream up to the last piece of text.
    pieces: String,
    /// The event after which the reply is usable.
    finish: String,
    /// What a server sends after that.
    rest: String,
    /// An error inside a stream.
    error: String,
}

impl Sample {
    fn stream(&self) -> String {
        [
            self.pieces.as_str(),
            self.finish.as_str(),
            self.rest.as_str(),
        ]
        .concat()
    }
}

fn samples() -> [Sample; 3] {
    [chat_sample(), responses_sample(), anthropic_sample()]
}

fn chat_sample() -> Sample {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2 });
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "id": "id-1", "choices": [choice] }))
    };
    let text = |text: &str| chunk(json!({ "content": text }), None);
    let counts = json!({ "choices": [], "usage": usage });
    Sample {
        format: CHAT,
        whole: json!({
            "id": "id-1", "usage": usage,
            "choices": [{ "message": { "content": "grüße 日本" }, "finish_reason": "stop" }],
        }),
        pieces: [": ping\n\n", &text("grüße "), &text(""), &text("日本")].concat(),
        finish: chunk(json!({}), Some("stop")),
        rest: format!("data: {counts}\n\ndata: [DONE]\n\n"),
        error: "event: error\ndata: {\"type\":\"overloaded_error\",\"message\":\"full\"}\n\n"
            .to_owned(),
    }
}

fn responses_sample() -> Sample {
    let item = |text: &str| json!({ "type": "message", "content": [{ "type": "output_text", "text": text }] });
    let whole = json!({
        "id": "id-1", "status": "completed", "error": null, "output": [item("grüße 日本")],
        "usage": { "input_tokens": 3, "output_tokens": 2 },
    });
    let text = |text: &str| {
        event(&json!({ "type": "response.output_text.delta", "output_index": 0, "delta": text }))
    };
    let started =
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item("") });
    Sample {
        format: RESPONSES,
        pieces: [event(&started), text("grüße "), text("日本")].concat(),
        finish: event(&json!({ "type": "response.completed", "response": whole })),
        rest: String::new(),
        error: event(&json!({ "type": "error", "code": "server_error", "message": "full" })),
        whole,
    }
}

fn anthropic_sample() -> Sample {
    let text = |text: &str| {
        let delta = json!({ "type": "text_delta", "text": text });
        event(&json!({ "type": "content_block_delta", "index": 0, "delta": delta }))
    };
    let message =
        json!({ "id": "id-1", "content": [], "usage": { "input_tokens": 3, "output_tokens": 1 } });
    let block = json!({ "type": "text", "text": "" });
    let pieces = [
        event(&json!({ "type": "message_start", "message": message })),
        event(&json!({ "type": "content_block_start", "index": 0, "content_block": block })),
        text("grüße "),
        event(&json!({ "type": "ping" })),
        text("日本"),
    ];
    let stop = json!({ "stop_reason": "end_turn" });
    let overloaded = json!({ "type": "overloaded_error", "message": "full" });
    Sample {
        format: ANTHROPIC,
        whole: json!({
            "id": "id-1", "content": [{ "type": "text", "text": "grüße 日本" }], "stop_reason": "end_turn",
            "usage": { "input_tokens": 3, "output_tokens": 2 },
        }),
        pieces: pieces.concat(),
        finish: event(
            &json!({ "type": "message_delta", "delta": stop, "usage": { "output_tokens": 2 } }),
        ),
        rest: event(&json!({ "type": "message_stop" })),
        error: event(&json!({ "type": "error", "error": overloaded })),
    }
}

fn assert_is_sample(reply: &ModelReply, format: VendorFormat) {
    assert_eq!(reply.turn.text, "grüße 日本", "{format:?}");
    assert_eq!(reply.turn.reasoning, None, "{format:?}");
    assert_eq!(reply.finish, Finish::Stop, "{format:?}");
    assert_eq!(reply.api_call_id.as_deref(), Some("id-1"), "{format:?}");
    assert_eq!(reply.provider_call_id.as_deref(), Some("trace-1"));
    let counts = (reply.usage.input_tokens, reply.usage.output_tokens);
    assert_eq!(counts, (3, 2), "{format:?}");
}

#[tokio::test]
async fn a_whole_reply_comes_without_deltas() {
    for sample in samples() {
        let reply = Scripted::json(200, &sample.whole).header("x-request-id", "trace-1");
        let (result, collected) = exchange(sample.format, Delivery::Whole, reply).await;
        assert_is_sample(&result.unwrap(), sample.format);
        let only_bytes = Collected {
            bytes: sample.whole.to_string().len() as u64,
            ..Collected::default()
        };
        assert_eq!(collected, only_bytes);
    }
}

#[tokio::test]
async fn a_streamed_reply_is_passed_on_piece_by_piece() {
    for sample in samples() {
        let stream = sample.stream();
        // Pieces of five bytes cut letters and events apart.
        let reply = Scripted::events(stream.as_bytes().chunks(5).map(<[u8]>::to_vec))
            .header("x-request-id", "trace-1");
        let (result, collected) = exchange(sample.format, Delivery::Streamed, reply).await;
        assert_is_sample(&result.unwrap(), sample.format);
        assert_eq!(collected.text, ["grüße ", "日本"], "{:?}", sample.format);
        assert!(collected.bytes > 0 && collected.bytes <= stream.len() as u64);
    }
}

#[tokio::test]
async fn the_servers_media_type_decides_how_a_reply_is_read() {
    for sample in samples() {
        let whole = Scripted::json(200, &sample.whole);
        let (result, collected) = exchange(sample.format, Delivery::Streamed, whole).await;
        assert_eq!(result.unwrap().turn.text, "grüße 日本");
        assert_eq!(collected.text, ["grüße 日本"], "{:?}", sample.format);

        let stream = Scripted::events([sample.stream()]);
        let (result, collected) = exchange(sample.format, Delivery::Whole, stream).await;
        assert_eq!(result.unwrap().turn.text, "grüße 日本");
        assert_eq!(collected.text, [""; 0], "{:?}", sample.format);
    }
}

/// The headers of a request that vendors differ in, and those that all want.
fn headers_of(received: &Received) -> Vec<(&str, &str)> {
    let names = [
        "accept",
        "content-type",
        "authorization",
        "x-api-key",
        "anthropic-version",
        "x-initiator",
        "x-custom",
        "user-agent",
    ];
    names
        .into_iter()
        .filter_map(|name| Some((name, received.header(name)?)))
        .collect()
}

#[tokio::test]
async fn a_request_has_its_address_headers_and_body() {
    let bearer = format!("Bearer {KEY}");
    let agent = concat!("loopd/", env!("CARGO_PKG_VERSION"));
    let openai = [("authorization", bearer.as_str())];
    let anthropic = [("x-api-key", KEY), ("anthropic-version", "2023-06-01")];
    let hi = json!({ "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" } });
    let input = json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] });
    let cases = [
        (
            "POST /v1/chat/completions",
            &openai[..],
            json!({
                "model": "m", "messages": [{ "role": "user", "content": "hi" }],
                "stream": true, "stream_options": { "include_usage": true },
            }),
        ),
        (
            "POST /v1/responses",
            &openai[..],
            json!({
                "model": "m", "input": [input], "store": false,
                "include": ["reasoning.encrypted_content"], "stream": true,
            }),
        ),
        (
            "POST /v1/messages",
            &anthropic[..],
            json!({
                "model": "m", "max_tokens": 8192, "messages": [{ "role": "user", "content": [hi] }],
                "stream": true,
            }),
        ),
    ];
    for (sample, (line, own, body)) in samples().into_iter().zip(cases) {
        let server = TestServer::start([Scripted::events([sample.stream()])]).await;
        let mut call = request(Delivery::Streamed);
        call.headers = vec![("X-Custom".to_owned(), "yes".to_owned())];
        let provider = provider(sample.format, &server);
        provider.call(&call, &mut NoDeltas).await.unwrap();
        let received = server.received().remove(0);
        assert_eq!(received.line, line);
        let mut expected = vec![
            ("accept", "text/event-stream"),
            ("content-type", "application/json"),
        ];
        expected.extend(own);
        expected.extend([("x-custom", "yes"), ("user-agent", agent)]);
        assert_eq!(headers_of(&received), expected, "{line}");
        // As text, so that the order of members counts too.
        assert_eq!(String::from_utf8(received.body).unwrap(), body.to_string());
    }
}

#[tokio::test]
async fn the_base_address_may_name_the_version_of_anthropic_or_not() {
    for below in ["", "/", "/v1", "/v1/"] {
        let sample = anthropic_sample();
        let server = TestServer::start([Scripted::json(200, &sample.whole)]).await;
        let base = format!("{}{below}", server.url());
        connected(&base, Timeouts::default(), ANTHROPIC)
            .call(&request(Delivery::Whole), &mut NoDeltas)
            .await
            .unwrap();
        assert_eq!(server.received()[0].line, "POST /v1/messages", "{below}");
    }
}

#[tokio::test]
async fn the_models_are_listed() {
    let cases = [
        (CHAT, "GET /v1/models"),
        (RESPONSES, "GET /v1/models"),
        (ANTHROPIC, "GET /v1/models?limit=1000"),
    ];
    for (format, line) in cases {
        let list =
            json!({ "data": [{ "id": "b" }, { "id": "" }, { "name": "no id" }, { "id": "a" }] });
        let server = TestServer::start([Scripted::json(200, &list)]).await;
        let models = provider(format, &server).models().await.unwrap();
        let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!(ids, ["b", "a"], "{format:?}");
        let received = server.received().remove(0);
        assert_eq!(received.line, line);
        assert_eq!(received.header("accept"), Some("application/json"));
        assert_eq!(received.header("content-type"), None);
    }
}

#[test]
fn a_list_of_models_is_an_array_or_has_one() {
    let read = |body: &str| model_list(body.as_bytes(), openai::models::model_info);
    assert_eq!(read(r#"[{"id":"a"}]"#), read(r#"{"data":[{"id":"a"}]}"#));
    assert_eq!(read("[]"), Ok(Vec::new()));
    for body in ["<html>", "{}", r#"{"data":{}}"#, ""] {
        let error = read(body).unwrap_err();
        assert!(matches!(error, ProviderError::Malformed { .. }), "{body}");
    }
}

#[tokio::test]
async fn copilot_gets_its_headers() {
    let list = json!({ "data": [{ "id": "m" }] });
    let script = [
        Scripted::json(200, &chat_sample().whole),
        Scripted::json(200, &list),
    ];
    let server = TestServer::start(script).await;
    let provider = provider(VendorFormat::OpenAiChat(Flavor::Copilot), &server);
    let mut call = request(Delivery::Whole);
    call.messages.push(ModelMessage::ToolResult {
        call: "c".into(),
        text: "out".to_owned(),
    });
    call.headers = vec![("x-interaction-id".to_owned(), "i-1".to_owned())];
    provider.call(&call, &mut NoDeltas).await.unwrap();
    provider.models().await.unwrap();
    let received = server.received();
    assert_eq!(received[1].line, "GET /v1/models");
    let bearer = format!("Bearer {KEY}");
    for request in &received {
        let header = |name| request.header(name);
        assert_eq!(header("authorization"), Some(bearer.as_str()));
        assert_eq!(header("copilot-integration-id"), Some("loopd"));
        assert_eq!(
            header("editor-version"),
            Some(concat!("loopd/", env!("CARGO_PKG_VERSION")))
        );
        assert_eq!(header("openai-intent"), Some("conversation-agent"));
    }
    assert_eq!(received[0].header("x-initiator"), Some("agent"));
    assert_eq!(received[0].header("x-interaction-id"), Some("i-1"));
    assert_eq!(received[1].header("x-initiator"), None);
    assert_eq!(server.connections(), 1, "the connection is used again");
}

#[tokio::test]
async fn dropping_the_call_closes_the_connection() {
    let sample = chat_sample();
    let stall = Scripted::events([sample.pieces]).ending(Ending::Stall);
    let server = TestServer::start([stall, Scripted::json(200, &sample.whole)]).await;
    let provider = provider(CHAT, &server);
    let call = request(Delivery::Streamed);
    let mut collected = Collected::default();
    tokio::select! {
        biased;
        result = provider.call(&call, &mut collected) => panic!("the stalled call ended: {result:?}"),
        () = async { while server.received().is_empty() { tokio::task::yield_now().await; } } => {}
    }
    let call = request(Delivery::Whole);
    provider.call(&call, &mut NoDeltas).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn each_format_describes_its_endpoint() {
    let cases = [
        (CHAT, "openai", Some("completions"), "/chat/completions"),
        (RESPONSES, "openai", Some("responses"), "/responses"),
        (ANTHROPIC, "anthropic", None, "/v1/messages"),
    ];
    for (format, provider_type, wire_api, path) in cases {
        let provider = connected("http://user:secret@h/v1/?q", Timeouts::default(), format);
        let expected = EndpointDescription {
            provider_type,
            wire_api,
            base_url: Some("http://h/v1".to_owned()),
            path: Some(path),
        };
        assert_eq!(provider.describe(), expected);
        assert_eq!(provider.name(), "test");
    }
}
