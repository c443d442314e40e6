//! Replies that stop early, stall or are errors.

use super::*;
use crate::provider::error::{ErrorKind, TimeoutPhase};

#[tokio::test]
async fn a_stream_that_breaks_off_is_truncated() {
    let cut_event = "data: {\"choices\":[{\"del".to_owned();
    let cases = [
        Scripted::events([text_event("a")]),
        Scripted::events([text_event("a")]).ending(Ending::Cut),
        Scripted::events([text_event("a"), cut_event]),
        Scripted::events([""]),
    ];
    for reply in cases {
        let (result, _) = exchange(Delivery::Streamed, reply.clone()).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Truncated, "{reply:?}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn a_whole_reply_that_breaks_off_is_truncated() {
    let half = &completion("hello").to_string()[..30];
    for ending in [Ending::Complete, Ending::Cut] {
        let reply = Scripted::new(200, "application/json", [half]).ending(ending);
        let (result, _) = exchange(Delivery::Whole, reply).await;
        assert_eq!(
            result.unwrap_err().kind(),
            ErrorKind::Truncated,
            "{ending:?}"
        );
    }
}

#[tokio::test]
async fn silence_ends_in_time() {
    let soon = Duration::from_millis(50);
    let timeouts = Timeouts {
        first_byte: soon,
        first_byte_of_whole_reply: soon,
        ..Timeouts::default()
    };
    let cases = [
        (Delivery::Whole, Ending::Silence),
        (Delivery::Streamed, Ending::Silence),
        (Delivery::Streamed, Ending::Stall),
    ];
    for (delivery, ending) in cases {
        let reply = Scripted::events([""]).ending(ending);
        let (result, _) = exchange_within(timeouts, delivery, reply).await;
        let phase = TimeoutPhase::FirstByte;
        assert_eq!(result, Err(ProviderError::Timeout { phase, limit: soon }));
    }
}

#[tokio::test]
async fn a_stall_in_the_middle_ends_in_time() {
    let soon = Duration::from_millis(50);
    let timeouts = Timeouts {
        between_chunks: soon,
        ..Timeouts::default()
    };
    let cases = [
        (Delivery::Streamed, Scripted::events([text_event("a")])),
        (
            Delivery::Whole,
            Scripted::new(200, "application/json", ["{"]),
        ),
    ];
    for (delivery, reply) in cases {
        let (result, _) = exchange_within(timeouts, delivery, reply.ending(Ending::Stall)).await;
        let phase = TimeoutPhase::BetweenChunks;
        assert_eq!(result, Err(ProviderError::Timeout { phase, limit: soon }));
    }
}

#[tokio::test]
async fn an_error_inside_a_successful_reply_is_an_error() {
    let error = json!({ "error": { "code": 429, "message": "busy" } });
    let named =
        "event: error\ndata: {\"type\":\"overloaded_error\",\"message\":\"full\"}\n\n".to_owned();
    let cases = [
        (
            Delivery::Whole,
            Scripted::json(200, &error),
            ErrorKind::RateLimit,
        ),
        (
            Delivery::Streamed,
            Scripted::events([text_event("a"), format!("data: {error}\n\n")]),
            ErrorKind::RateLimit,
        ),
        (
            Delivery::Streamed,
            Scripted::events([text_event("a"), named]),
            ErrorKind::Server,
        ),
    ];
    for (delivery, reply, kind) in cases {
        let (result, _) = exchange(delivery, reply.clone()).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{reply:?}");
        assert!(error.is_retryable());
    }
}

#[tokio::test]
async fn an_answer_that_is_no_completion_is_malformed() {
    let cases = [
        (
            Delivery::Whole,
            Scripted::new(200, "text/html", ["<html>hello</html>"]),
        ),
        (
            Delivery::Whole,
            Scripted::json(200, &json!({ "choices": [] })),
        ),
        (Delivery::Streamed, Scripted::events(["data: hello\n\n"])),
    ];
    for (delivery, reply) in cases {
        let (result, _) = exchange(delivery, reply.clone()).await;
        let error = result.unwrap_err();
        assert!(
            matches!(error, ProviderError::Malformed { .. }),
            "{reply:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_refusal_keeps_what_the_provider_said_but_no_key() {
    let body = json!({ "error": { "message": format!("the key {KEY} is unknown"), "code": "invalid_api_key" } });
    let reply = Scripted::json(401, &body)
        .header("x-github-request-id", "trace-2")
        .header("retry-after", "5");
    let (result, _) = exchange(Delivery::Whole, reply).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind().as_str(), "authentication");
    assert_eq!(error.status(), Some(401));
    assert_eq!(error.error_code(), Some("invalid_api_key"));
    assert_eq!(error.provider_call_id(), Some("trace-2"));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(5)));
    assert_eq!(error.provider_message(), Some("the key *** is unknown"));
    assert!(!format!("{error} {error:?}").contains(KEY));
}

#[tokio::test]
async fn nobody_listening_is_a_network_error() {
    let server = TestServer::start([]).await;
    let provider = provider(&server, Flavor::Plain);
    let url = server.url();
    drop(server);
    // The port is free once the server's task has ended.
    tokio::task::yield_now().await;
    let error = provider
        .call(&request(Delivery::Whole), &mut NoDeltas)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network, "{error}");
    assert!(
        error.is_retryable() && error.to_string().contains(&url),
        "{error}"
    );
}

#[tokio::test]
async fn a_stream_may_end_without_done_once_it_has_finished() {
    let timeouts = Timeouts {
        between_chunks: Duration::from_millis(50),
        ..Timeouts::default()
    };
    let finished = text_event("a") + FINISH_EVENT;
    for ending in [Ending::Complete, Ending::Cut, Ending::Stall] {
        let stream = Scripted::events([finished.clone()]).ending(ending);
        let (result, _) = exchange_within(timeouts, Delivery::Streamed, stream).await;
        assert_eq!(result.unwrap().turn.text, "a", "{ending:?}");
    }
    let done = text_event("a") + "data: [DONE]\n\n";
    let stream = Scripted::events([done]).ending(Ending::Stall);
    let (result, _) = exchange(Delivery::Streamed, stream).await;
    assert_eq!(result.unwrap().turn.text, "a");
}
