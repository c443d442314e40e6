//! Replies that stop early, stall or are errors.

use std::time::Duration;

use super::*;
use crate::error::{ErrorKind, TimeoutPhase};

#[tokio::test]
async fn a_stream_that_breaks_off_is_truncated() {
    for sample in samples() {
        let cut_event = "data: {\"choices\":[{\"del".to_owned();
        let cases = [
            Scripted::events([sample.pieces.clone()]),
            Scripted::events([sample.pieces.clone()]).ending(Ending::Cut),
            Scripted::events([sample.pieces.clone(), cut_event]),
            Scripted::events([""]),
        ];
        for reply in cases {
            let (result, _) = exchange(sample.format, Delivery::Streamed, reply.clone()).await;
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated, "{reply:?}");
            assert!(error.is_retryable());
        }
    }
}

#[tokio::test]
async fn a_finished_stream_needs_no_end() {
    let timeouts = Timeouts {
        between_chunks: Duration::from_millis(50),
        ..Timeouts::default()
    };
    for sample in samples() {
        let stream = sample.pieces + &sample.finish;
        for ending in [Ending::Complete, Ending::Cut, Ending::Stall] {
            let reply = Scripted::events([stream.clone()]).ending(ending);
            let (result, collected) =
                exchange_within(timeouts, sample.format, Delivery::Streamed, reply).await;
            assert_eq!(result.unwrap().turn.text, "grüße 日本", "{ending:?}");
            assert_eq!(collected.text, ["grüße ", "日本"]);
        }
    }
}

#[tokio::test]
async fn the_end_of_a_stream_ends_the_call_though_the_connection_stays() {
    let mut streams: Vec<(VendorFormat, String)> = samples()
        .iter()
        .map(|sample| (sample.format, sample.stream()))
        .collect();
    // Some servers of this format never say why the model stopped.
    streams.push((CHAT, chat_sample().pieces + "data: [DONE]\n\n"));
    for (format, stream) in streams {
        let reply = Scripted::events([stream]).ending(Ending::Stall);
        let (result, _) = exchange(format, Delivery::Streamed, reply).await;
        assert_eq!(result.unwrap().turn.text, "grüße 日本", "{format:?}");
    }
}

#[tokio::test]
async fn a_whole_reply_that_breaks_off_is_truncated() {
    for sample in samples() {
        let whole = sample.whole.to_string();
        for ending in [Ending::Complete, Ending::Cut] {
            let reply = Scripted::new(200, "application/json", [&whole[..30]]).ending(ending);
            let (result, _) = exchange(sample.format, Delivery::Whole, reply).await;
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated, "{ending:?}");
        }
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
        let (result, _) = exchange_within(timeouts, CHAT, delivery, reply).await;
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
        (Delivery::Streamed, Scripted::events([chat_sample().pieces])),
        (
            Delivery::Whole,
            Scripted::new(200, "application/json", ["{"]),
        ),
    ];
    for (delivery, reply) in cases {
        let reply = reply.ending(Ending::Stall);
        let (result, _) = exchange_within(timeouts, CHAT, delivery, reply).await;
        let phase = TimeoutPhase::BetweenChunks;
        assert_eq!(result, Err(ProviderError::Timeout { phase, limit: soon }));
    }
}

#[tokio::test]
async fn an_error_inside_a_successful_reply_is_an_error() {
    let busy = json!({ "error": { "code": 429, "message": "busy" } });
    for sample in samples() {
        let pieces = sample.pieces;
        let cases = [
            (
                Delivery::Whole,
                Scripted::json(200, &busy),
                ErrorKind::RateLimit,
            ),
            (
                Delivery::Streamed,
                Scripted::events([pieces.clone(), format!("data: {busy}\n\n")]),
                ErrorKind::RateLimit,
            ),
            (
                Delivery::Streamed,
                Scripted::events([pieces, sample.error]),
                ErrorKind::Server,
            ),
        ];
        for (delivery, reply, kind) in cases {
            let (result, _) = exchange(sample.format, delivery, reply.clone()).await;
            let error = result.unwrap_err();
            assert_eq!(error.kind(), kind, "{reply:?}");
            assert!(error.is_retryable());
        }
    }
}

#[tokio::test]
async fn an_answer_in_no_format_is_malformed() {
    for format in [CHAT, RESPONSES, ANTHROPIC] {
        let cases = [
            (
                Delivery::Whole,
                Scripted::new(200, "text/html", ["<html>hello</html>"]),
            ),
            (Delivery::Whole, Scripted::json(200, &json!({}))),
            (Delivery::Streamed, Scripted::events(["data: hello\n\n"])),
        ];
        for (delivery, reply) in cases {
            let (result, _) = exchange(format, delivery, reply.clone()).await;
            let error = result.unwrap_err();
            assert!(
                matches!(error, ProviderError::Malformed { .. }),
                "{format:?} {reply:?}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn a_refusal_keeps_what_the_provider_said_but_no_key() {
    for format in [CHAT, RESPONSES, ANTHROPIC] {
        let body = json!({ "error": { "message": format!("the key {KEY} is unknown"), "code": "invalid_api_key" } });
        let reply = Scripted::json(401, &body)
            .header("x-github-request-id", "trace-2")
            .header("retry-after", "5");
        let (result, _) = exchange(format, Delivery::Whole, reply).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind().as_str(), "authentication");
        assert_eq!(error.status(), Some(401));
        assert_eq!(error.error_code(), Some("invalid_api_key"));
        assert_eq!(error.provider_call_id(), Some("trace-2"));
        assert_eq!(error.retry_after(), Some(Duration::from_secs(5)));
        assert_eq!(error.provider_message(), Some("the key *** is unknown"));
        assert!(!format!("{error} {error:?}").contains(KEY));
    }
}

#[tokio::test]
async fn nobody_listening_is_a_network_error() {
    let server = TestServer::start([]).await;
    let provider = provider(CHAT, &server);
    let url = server.url();
    drop(server);
    // The port is free once the server's task has ended.
    tokio::task::yield_now().await;
    let call = request(Delivery::Whole);
    let error = provider.call(&call, &mut NoDeltas).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Network, "{error}");
    assert!(
        error.is_retryable() && error.to_string().contains(&url),
        "{error}"
    );
}

#[tokio::test]
async fn a_success_that_is_no_reply_is_shown_with_its_own_words() {
    let page = Scripted::new(
        200,
        "text/html",
        ["<html>Please log in\nto the proxy</html>"],
    );
    let odd = Scripted::json(200, &json!({ "message": "the model is asleep" }));
    for (reply, words) in [
        (page, "<html>Please log in to the proxy</html>"),
        (odd, "the model is asleep"),
    ] {
        let (result, _) = exchange(CHAT, Delivery::Streamed, reply).await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_stream_that_says_only_that_it_is_done_is_no_answer() {
    let reply = Scripted::events(["data: [DONE]\n\n"]);
    let (result, _) = exchange(CHAT, Delivery::Streamed, reply).await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Truncated);
}
