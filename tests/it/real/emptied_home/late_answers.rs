//! Answers to the daemon before: its questions and those of the next one have different numbers.

use std::process::Stdio;

use loopd_proto::wire::{FrameReader, Framing};
use loopd_tests::binary::Loopd;
use loopd_tests::within;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};

use super::Place;

/// A client that sees the numbers of requests.
struct Raw {
    frames: FrameReader<ChildStdout>,
    stdin: ChildStdin,
}

impl Raw {
    async fn send(&mut self, message: Value) {
        let mut out = Vec::new();
        Framing::ContentLength.encode(message.to_string().as_bytes(), &mut out);
        self.stdin.write_all(&out).await.unwrap();
    }

    async fn find(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let finding = async {
            loop {
                let frame = self
                    .frames
                    .next()
                    .await
                    .unwrap()
                    .expect("the stream goes on");
                let message: Value = serde_json::from_slice(&frame).unwrap();
                if fits(&message) {
                    return message;
                }
            }
        };
        within(what, finding).await
    }

    /// Creates a session that asks its model through the client; the number of that question.
    async fn question(&mut self, session: &str) -> u64 {
        let provider = json!({"type": "openai", "baseUrl": "http://model.invalid", "apiKey": "k"});
        let params = json!({"sessionId": session, "model": "m", "provider": provider});
        let create =
            json!({"jsonrpc": "2.0", "id": session, "method": "session.create", "params": params});
        self.send(create).await;
        let answer = self.find("a session", |message| message["id"] == session);
        let answer = answer.await;
        assert!(answer["error"].is_null(), "{answer}");
        let params = json!({"sessionId": session, "prompt": "hello"});
        let send = json!({"jsonrpc": "2.0", "id": 1, "method": "session.send", "params": params});
        self.send(send).await;
        let asks = |message: &Value| message["method"] == "llmInference.httpRequestStart";
        let question = self.find("a question", asks).await;
        question["id"].as_u64().unwrap()
    }

    async fn answer(&mut self, number: u64, text: &str) {
        let error = json!({"code": -32603, "message": text});
        self.send(json!({"jsonrpc": "2.0", "id": number, "error": error}))
            .await;
    }
}

#[tokio::test]
async fn a_late_answer_to_the_daemon_before_answers_nothing() {
    let place = Place::new();
    let mut child = place
        .command()
        .args(["--headless", "--stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut client = Raw {
        frames: FrameReader::new(child.stdout.take().unwrap(), 1 << 24, 64),
        stdin: child.stdin.take().unwrap(),
    };
    let method = "llmInference.setProvider";
    client
        .send(json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": {}}))
        .await;
    let old = client
        .question("11111111-1111-4111-8111-111111111111")
        .await;
    place.empty();
    let new = client
        .question("22222222-2222-4222-8222-222222222222")
        .await;
    client.answer(old, "late").await;
    client.answer(new, "asked").await;
    let retries = |message: &Value| message["params"]["event"]["type"] == "assistant.turn_retry";
    let retry = client.find("the answer to be heard", retries).await;
    assert!(retry.to_string().contains("asked"), "{retry}");
    Loopd { child }.kill_hard().await;
}
