//! A side that refuses requests from some moment on: each is answered once, with that error.
#![expect(clippy::indexing_slicing, reason = "a failed index is a failed test")]

use super::super::RefuseUntil;
use super::*;

const GONE: i64 = -32_003;

fn gone() -> ErrorObject {
    ErrorObject::new(GONE, "the home was emptied")
}

/// Never answers, and tells when it has begun with a request.
fn begun() -> (Arc<Script>, mpsc::Receiver<()>) {
    let (sender, begun) = mpsc::channel(10);
    let service = script(move |_, _| {
        sender.try_send(()).unwrap();
        std::future::pending().boxed()
    });
    (service, begun)
}

#[tokio::test]
async fn running_and_later_requests_get_the_refusal() {
    let (service, mut begun) = begun();
    let reason = connected(service, Limits::default(), async |mut client| {
        client.request(1, "slow").await;
        client.request("two", "slow").await;
        begun.recv().await.unwrap();
        begun.recv().await.unwrap();
        client
            .peer
            .refuse_requests(gone(), RefuseUntil::EndOfStream);
        client.request(3, "late").await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            let answer = client.receive().await;
            assert_eq!(answer["error"]["code"], GONE, "{answer}");
            ids.push(answer["id"].clone());
        }
        ids.sort_by_key(Value::to_string);
        assert_eq!(ids, [json!("two"), json!(1), json!(3)]);
        client.write.shutdown().await.unwrap();
        assert_eq!(client.next().await, None, "nothing is answered twice");
    })
    .await;
    assert_eq!(reason, CloseReason::EndOfStream);
}

#[tokio::test]
async fn a_caller_that_closes_its_half_at_once_gets_its_answers() {
    for _ in 0..50 {
        let (service, mut begun) = begun();
        connected(service, Limits::default(), async |mut client| {
            client.request(1, "slow").await;
            begun.recv().await.unwrap();
            client
                .peer
                .refuse_requests(gone(), RefuseUntil::EndOfStream);
            client.write.shutdown().await.unwrap();
            assert_eq!(client.receive().await["error"]["code"], GONE);
            assert_eq!(client.next().await, None);
        })
        .await;
    }
}

#[tokio::test]
async fn a_parked_request_is_refused_with_the_others() {
    let limits = Limits {
        incoming_limit: 1,
        ..Limits::default()
    };
    let (service, mut begun) = begun();
    connected(service, limits, async |mut client| {
        client.request(1, "slow").await;
        client.request(2, "parked").await;
        begun.recv().await.unwrap();
        // Both were written in one piece of the stream's buffer: let the second be read, too.
        tokio::task::yield_now().await;
        client.peer.refuse_requests(gone(), RefuseUntil::Answered);
        let answers = [client.receive().await, client.receive().await];
        assert!(answers.iter().all(|answer| answer["error"]["code"] == GONE));
        assert_eq!(client.next().await, None, "it closes by itself");
    })
    .await;
}

#[tokio::test]
async fn requests_that_were_read_ahead_are_refused_too() {
    let limits = Limits {
        incoming_limit: 1,
        ..Limits::default()
    };
    let (service, mut begun) = begun();
    connected(service, limits, async |mut client| {
        for id in 1..=4 {
            client.request(id, "any").await;
        }
        begun.recv().await.unwrap();
        tokio::task::yield_now().await;
        client
            .peer
            .refuse_requests(gone(), RefuseUntil::EndOfStream);
        client.write.shutdown().await.unwrap();
        let mut ids = Vec::new();
        while let Some(answer) = client.next().await {
            assert_eq!(answer["error"]["code"], GONE, "{answer}");
            ids.push(answer["id"].as_u64().unwrap());
        }
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3, 4]);
    })
    .await;
}

#[tokio::test]
async fn work_after_the_refusal_is_not_reported_as_done() {
    let service = script(|peer, request| {
        // The moment between a handler's work and its answer.
        peer.refuse_requests(gone(), RefuseUntil::Answered);
        futures::future::ready(Reply::result(&request.id, &json!("done"))).boxed()
    });
    connected(service, Limits::default(), async |mut client| {
        client.request(1, "set").await;
        assert_eq!(client.receive().await["error"]["code"], GONE);
        assert_eq!(client.next().await, None);
    })
    .await;
}

#[tokio::test]
async fn a_sealed_peer_sends_no_request_and_the_next_connection_continues_the_numbers() {
    connected(echo(), Limits::default(), async |mut client| {
        let asked = client.peer.start_request("question", &json!({})).unwrap();
        assert_eq!(client.receive().await["id"], 1);
        let next = client.peer.seal_calls();
        assert_eq!(next, 2);
        assert!(client.peer.start_request("question", &json!({})).is_err());
        assert!(client.peer.start_request("question", &json!({})).is_err());
        drop(asked);
        assert_eq!(client.receive().await["method"], CANCEL_REQUEST);
    })
    .await;
    connected(echo(), Limits::default(), async |mut client| {
        client.peer.number_calls_from(2);
        let _asked = client.peer.start_request("question", &json!({})).unwrap();
        assert_eq!(client.receive().await["id"], 2);
    })
    .await;
}
