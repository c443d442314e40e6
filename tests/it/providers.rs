//! Providers of sessions and launches over the wire: several in one session, tokens that a client
//! is asked for, requests that a client carries, and who may see where calls go.

use loopd_tests::{Client, Daemon, Script, Turn};
use serde_json::{Value, json};

/// A provider and its one model, as a client describes them.
fn provided(name: &str, url: &str) -> Value {
    json!({
        "providers": [{"name": name, "type": "openai", "baseUrl": url, "apiKey": "second-key"}],
        "models": [{"id": "m", "provider": name, "name": "The second"}],
    })
}

#[tokio::test]
async fn a_provider_that_is_added_later_answers_when_its_model_is_chosen() {
    let daemon = Daemon::playing([Turn::user("one").says("1")]).await;
    let mut second = Script::play([Turn::user("two").says("2")]).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    let added = session
        .call("session.provider.add", provided("second", second.url()))
        .await;
    assert_eq!(added["models"][0]["id"], "second/m");
    let switch = json!({"modelId": "second/m"});
    session.call("session.model.switchTo", switch).await;
    session.ask("two").await;
    let request = second.last_request();
    assert_eq!(request.body["model"], "m");
    assert_eq!(request.header("authorization"), Some("Bearer second-key"));
    assert_eq!(session.count("session.error"), 0);
    second.finish();
    daemon.finish().await;
}

#[tokio::test]
async fn a_provider_that_cannot_be_is_refused_and_changes_nothing() {
    let daemon = Daemon::playing([Turn::user("one").says("1")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let mut unknown = provided("second", "http://127.0.0.1:1");
    unknown["models"][0]["provider"] = "third".into();
    let error = session.refused("session.provider.add", unknown).await;
    assert!(error.message.contains("third"), "{error}");
    let listed = session.call("session.model.list", json!({})).await;
    assert!(!listed.to_string().contains("second"), "{listed}");
    session.ask("one").await;
    daemon.finish().await;
}

#[tokio::test]
async fn keys_are_shown_only_where_the_launch_allows_it() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let error = session
        .refused("session.provider.getEndpoint", json!({}))
        .await;
    assert!(
        error
            .message
            .contains("COPILOT_ALLOW_GET_PROVIDER_ENDPOINT"),
        "{error}"
    );
    assert!(!error.message.contains("secret-key"), "{error}");
    daemon.finish().await;

    let daemon = Daemon::builder()
        .script(Script::play([]).await)
        .env("COPILOT_ALLOW_GET_PROVIDER_ENDPOINT", "true")
        .start()
        .await;
    let session = daemon.client().create(json!({})).await;
    let endpoint = session
        .call("session.provider.getEndpoint", json!({}))
        .await;
    assert_eq!(
        (&endpoint["type"], &endpoint["apiKey"], &endpoint["baseUrl"]),
        (
            &json!("openai"),
            &json!("secret-key"),
            &json!(daemon.script().url())
        )
    );
    daemon.finish().await;
}

/// Takes one model request off the wire, whole, and returns its head and body.
async fn carried(client: &Client) -> (Value, String) {
    let start = client.request("llmInference.httpRequestStart").await;
    let head = start.params.clone();
    start.answer(json!({}));
    let mut body = String::new();
    loop {
        let chunk = client.request("llmInference.httpRequestChunk").await;
        let params = chunk.params.clone();
        assert_eq!(params["requestId"], head["requestId"]);
        body.push_str(params["data"].as_str().unwrap_or_default());
        chunk.answer(json!({}));
        if params["end"] == true {
            return (head, body);
        }
    }
}

/// Answers a carried request with JSON, in two pieces, and says whether all of it was wanted.
async fn reply(client: &Client, head: &Value, answer: &Value) -> bool {
    let id = &head["requestId"];
    let text = answer.to_string();
    let (one, other) = text.split_at(text.len() / 2);
    let headers = json!({"content-type": ["application/json"]});
    let started = json!({"requestId": id, "status": 200, "headers": headers});
    let first = json!({"requestId": id, "data": one});
    let last = json!({"requestId": id, "data": other, "end": true});
    let answers = [
        client.call("llmInference.httpResponseStart", started).await,
        client.call("llmInference.httpResponseChunk", first).await,
        client.call("llmInference.httpResponseChunk", last).await,
    ];
    answers.iter().all(|answer| answer["accepted"] == true)
}

#[tokio::test]
async fn a_client_carries_the_model_requests_of_its_launch() {
    let daemon = Daemon::builder()
        .env("COPILOT_API_URL", "http://models.invalid")
        .env("GITHUB_TOKEN", "a-token")
        .start()
        .await;
    let client = daemon.client();
    let set = client.call("llmInference.setProvider", json!({})).await;
    assert_eq!(set, json!({"success": true}));
    let mut session = client.create(json!({"model": "carried"})).await;
    session.send("hello").await;
    loop {
        let (head, body) = carried(&client).await;
        let url = head["url"].as_str().unwrap();
        if url.ends_with("/models") {
            let models = json!({"data": [{"id": "carried", "name": "Carried"}]});
            assert!(reply(&client, &head, &models).await);
            continue;
        }
        assert_eq!(url, "http://models.invalid/chat/completions");
        assert_eq!(head["headers"]["authorization"], json!(["Bearer a-token"]));
        assert_eq!(head["sessionId"], session.id.as_str());
        assert!(body.contains("hello"), "{body}");
        let answer = json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "carried home"}}]});
        assert!(reply(&client, &head, &answer).await);
        // Nobody waits for it any more.
        let late = json!({"requestId": head["requestId"], "data": "late"});
        let answer = client.call("llmInference.httpResponseChunk", late).await;
        assert_eq!(answer, json!({"accepted": false}));
        break;
    }
    let message = session.next("assistant.message").await;
    assert_eq!(message["data"]["content"], "carried home");
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn one_client_of_a_launch_carries_and_no_other_answers_for_it() {
    let daemon = Daemon::builder()
        .env("COPILOT_API_URL", "http://models.invalid")
        .start()
        .await;
    let carrier = daemon.client();
    carrier.call("llmInference.setProvider", json!({})).await;
    let other = daemon.client();
    let error = other.refused("llmInference.setProvider", json!({})).await;
    assert!(error.message.contains("already"), "{error}");
    let mut session = carrier.create(json!({"model": "carried"})).await;
    session.send("hello").await;
    let (head, _) = carried(&carrier).await;
    let forged = json!({"requestId": head["requestId"], "status": 200, "headers": {}});
    let answer = other.call("llmInference.httpResponseStart", forged).await;
    assert_eq!(answer, json!({"accepted": false}));
    // The carrier says that it could not; the session says why, and goes on.
    let id = &head["requestId"];
    let started = json!({"requestId": id, "status": 400, "headers": {}});
    carrier
        .call("llmInference.httpResponseStart", started)
        .await;
    let end = json!({"requestId": id, "data": "no such model", "end": true});
    carrier.call("llmInference.httpResponseChunk", end).await;
    session.next("session.error").await;
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_is_told_who_would_answer() {
    let daemon = Daemon::builder().start().await;
    let choice = daemon.client().call("loopd.modelChoice", json!({})).await;
    let nobody = json!({"provider": "offline", "model": "offline", "hasKey": false});
    assert_eq!(choice, nobody);
    daemon.finish().await;

    let script = Script::play([]).await;
    let url = script.url().to_owned();
    let daemon = Daemon::builder()
        .script(script)
        .env("OPENAI_BASE_URL", &url)
        .start()
        .await;
    let client = daemon.client();
    let choice = client.call("loopd.modelChoice", json!({})).await;
    let first = json!({"provider": "openai", "model": "scripted", "baseUrl": url, "hasKey": false});
    assert_eq!(choice, first);
    let named = json!({"model": "scripted-small"});
    let choice = client.call("loopd.modelChoice", named).await;
    assert_eq!(choice["model"], "scripted-small");
    daemon.finish().await;
}
