//! Our own calls: answered, refused, cancelled, ended by a close. None of these needs the pump.

use futures::FutureExt;
use serde_json::{Value, json};

use super::super::envelope::{Message, RequestId, parse};
use super::*;

fn peer() -> Peer {
    Peer::new(Limits {
        outgoing_limit: 3,
        request_limit: 1000,
        ..Limits::default()
    })
}

fn answer(peer: &Peer, frame: Value) {
    let Ok(Message::Response(response)) = parse(frame.to_string().as_bytes()) else {
        unreachable!();
    };
    peer.resolve(response);
}

/// Closes the peer and returns everything it wanted to send.
async fn sent(peer: &Peer) -> Vec<Value> {
    peer.close(CloseReason::Done);
    let mut out = std::io::Cursor::new(Vec::new());
    let framing = super::super::Framing::Lines.into();
    super::super::outbox::write_out(peer.outbox(), &framing, &mut out)
        .await
        .unwrap();
    let text = String::from_utf8(out.into_inner()).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn calls_are_answered_by_id_in_any_order() {
    let peer = peer();
    let first = peer.request::<_, u32>("a", &json!({ "x": 1 }));
    let second = peer.request::<_, String>("b", &());
    answer(&peer, json!({ "id": 2, "result": "two" }));
    answer(&peer, json!({ "id": 1, "result": 1 }));
    assert_eq!(second.await.unwrap(), "two");
    assert_eq!(first.await.unwrap(), 1);
    assert_eq!(
        sent(&peer).await,
        [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "a", "params": { "x": 1 } }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "b" }),
        ]
    );
}

#[tokio::test]
async fn errors_and_unexpected_results_are_told_apart() {
    let peer = peer();
    let refused = peer.request::<_, u32>("a", &());
    let odd = peer.request::<_, u32>("b", &());
    answer(
        &peer,
        json!({ "id": 1, "error": { "code": -5, "message": "no" } }),
    );
    answer(&peer, json!({ "id": 2, "result": "two" }));
    let refused = refused.await.unwrap_err();
    assert!(matches!(&refused, CallError::Remote(error) if *error == ErrorObject::new(-5, "no")));
    assert!(matches!(odd.await.unwrap_err(), CallError::Decode(_)));
}

#[tokio::test]
async fn answers_nobody_waits_for_are_ignored() {
    let peer = peer();
    let call = peer.start_request("a", &()).unwrap();
    answer(&peer, json!({ "id": 99, "result": 1 }));
    answer(&peer, json!({ "id": "1", "result": 1 }));
    answer(
        &peer,
        json!({ "id": null, "error": { "code": -32700, "message": "what?" } }),
    );
    answer(&peer, json!({ "id": 1, "result": 2 }));
    answer(&peer, json!({ "id": 1, "result": 3 }));
    assert_eq!(call.await.unwrap().get(), "2");
    assert!(!peer.is_closed());
}

#[tokio::test]
async fn dropping_an_unanswered_call_cancels_it() {
    let peer = peer();
    drop(peer.start_request("a", &()).unwrap());
    let answered = peer.start_request("b", &()).unwrap();
    answer(&peer, json!({ "id": 2, "result": 1 }));
    drop(answered);
    drop(peer.request::<_, Value>("c", &()));
    assert!(!peer.awaits_answers());
    let methods: Vec<_> = sent(&peer).await;
    assert_eq!(
        methods,
        [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "a" }),
            json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": 1 } }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "b" }),
            json!({ "jsonrpc": "2.0", "id": 3, "method": "c" }),
            json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": 3 } }),
        ]
    );
}

#[tokio::test]
async fn unanswered_calls_are_bounded_in_number() {
    let peer = peer();
    let calls: Vec<_> = (0..3)
        .map(|_| peer.start_request("a", &()).unwrap())
        .collect();
    let refused = peer.start_request("a", &()).unwrap().await;
    assert!(matches!(refused.unwrap_err(), CallError::Overloaded));
    drop(calls);
    let accepted = peer.start_request("a", &()).unwrap();
    assert!(accepted.now_or_never().is_none());
}

#[tokio::test]
async fn unwritten_calls_are_bounded_in_bytes() {
    let peer = peer();
    let large = "x".repeat(2000);
    // Given up at once, so that the number of unanswered calls does not grow.
    drop(peer.start_request("a", &large).unwrap());
    let refused = peer.start_request("a", &()).unwrap().await;
    assert!(matches!(refused.unwrap_err(), CallError::Overloaded));
}

#[tokio::test]
async fn params_that_are_not_json_fail_the_call_only() {
    let peer = peer();
    let not_json = HashMap::from([((1, 2), 3)]);
    let failed = peer.request::<_, Value>("a", &not_json).await;
    assert!(matches!(failed.unwrap_err(), CallError::Encode(_)));
    peer.notify("a", &not_json).unwrap();
    assert!(sent(&peer).await.is_empty());
}

#[tokio::test]
async fn closing_ends_calls_and_refuses_new_ones() {
    let peer = peer();
    let call = peer.request::<_, Value>("a", &());
    assert!(peer.closed().now_or_never().is_none());
    peer.close(CloseReason::Done);
    peer.fail_calls();
    assert!(matches!(call.await.unwrap_err(), CallError::Closed));
    assert!(matches!(peer.start_request("a", &()), Err(Closed)));
    assert!(!peer.awaits_answers());
    assert_eq!(peer.notify("a", &()), Err(Closed));
    assert_eq!(peer.closed().await, CloseReason::Done);
}

#[test]
fn peers_have_unique_ids() {
    let (one, other) = (peer(), peer());
    assert_ne!(one.id(), other.id());
    assert_eq!(one.id(), one.clone().id());
}

#[test]
fn only_plain_numbers_can_be_ids_of_ours() {
    for (id, number) in [("7", Some(7)), ("\"7\"", None), ("-7", None), ("7.0", None)] {
        let raw: Box<RawValue> = serde_json::from_str(id).unwrap();
        assert_eq!(RequestId::from_raw(&raw).unwrap().as_number(), number);
    }
}
