//! Vendors' error bodies, by table.

use super::*;

fn refuse(status: u16, body: &str) -> ProviderError {
    refused(
        status,
        &HeaderMap::new(),
        body.as_bytes(),
        &Redactor::default(),
    )
}

#[test]
fn statuses_and_wordings_map_to_kinds() {
    use ErrorKind::{Authentication, ContextLimit, ModelNotFound, Query, Quota, RateLimit, Server};
    let cases = [
        (
            401,
            r#"{"error":{"message":"bad key"}}"#,
            Authentication,
            "retry: no",
        ),
        (403, "forbidden", Authentication, "retry: no"),
        (402, "{}", Quota, "retry: no"),
        (
            429,
            r#"{"error":{"message":"slow down"}}"#,
            RateLimit,
            "retry: yes",
        ),
        (
            429,
            r#"{"error":{"code":"insufficient_quota","message":"x"}}"#,
            Quota,
            "retry: no",
        ),
        (
            429,
            r#"{"error":{"code":"user_weekly_rate_limited","message":"x"}}"#,
            RateLimit,
            "retry: no",
        ),
        (
            400,
            r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#,
            ContextLimit,
            "retry: no",
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
            ContextLimit,
            "retry: no",
        ),
        (
            400,
            r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000"}}"#,
            ContextLimit,
            "retry: no",
        ),
        (
            400,
            r#"{"error":{"message":"prompt token count of 130000 exceeds the limit of 128000"}}"#,
            ContextLimit,
            "retry: no",
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum"}}]"#,
            ContextLimit,
            "retry: no",
        ),
        (
            400,
            r#"{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ContextLimit,
            "retry: no",
        ),
        (
            413,
            "Input is too long for requested model.",
            ContextLimit,
            "retry: no",
        ),
        (
            413,
            "<html>413 Request Entity Too Large</html>",
            Query,
            "retry: no",
        ),
        (
            400,
            r#"{"error":{"message":"Your credit balance is too low"}}"#,
            Quota,
            "retry: no",
        ),
        (
            400,
            r#"{"error":{"message":"bad schema"}}"#,
            Query,
            "retry: no",
        ),
        (
            404,
            r#"{"error":{"message":"fake byok endpoint"}}"#,
            Query,
            "retry: no",
        ),
        (
            404,
            r#"{"error":{"code":"model_not_found","message":"x"}}"#,
            ModelNotFound,
            "retry: no",
        ),
        (
            404,
            r#"{"error":"model \"llama9\" not found, try pulling it first"}"#,
            ModelNotFound,
            "retry: no",
        ),
        (408, "", Query, "retry: yes"),
        (409, "", Query, "retry: yes"),
        (500, "Proxy error", Server, "retry: yes"),
        (
            503,
            "the context window service is down",
            Server,
            "retry: yes",
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Server,
            "retry: yes",
        ),
        (501, "", Server, "retry: no"),
    ];
    for (status, body, kind, retry) in cases {
        let error = refuse(status, body);
        assert_eq!(error.kind(), kind, "{status} {body}");
        assert_eq!(error.status(), Some(status));
        assert_eq!(
            error.is_retryable(),
            retry == "retry: yes",
            "{status} {body}"
        );
    }
}

#[test]
fn the_message_is_found_wherever_vendors_put_it() {
    let cases = [
        (r#"{"error":{"message":" in error "}}"#, "in error"),
        (r#"{"error":"a text"}"#, "a text"),
        (r#"{"message":"at the top"}"#, "at the top"),
        (r#"{"detail":"a detail"}"#, "a detail"),
        (r#"{"detail":[{"msg":"field required"}]}"#, "field required"),
        (
            r#"{"errors":[{"message":"first of many"}]}"#,
            "first of many",
        ),
        (r#"{"error":{},"message":"beside it"}"#, "{}"),
        (r#"{"odd":1}"#, r#"{"odd":1}"#),
        ("plain text\n", "plain text"),
        ("", "no explanation was given"),
    ];
    for (body, message) in cases {
        assert_eq!(
            refuse(400, body).provider_message(),
            Some(message),
            "{body}"
        );
    }
}

#[test]
fn ids_codes_and_waits_are_kept() {
    let mut headers = HeaderMap::new();
    headers.insert("x-github-request-id", "some-request-id".parse().unwrap());
    headers.insert("retry-after", "90".parse().unwrap());
    let body = br#"{"error":{"message":"slow down","code":"user_model_rate_limited"}}"#;
    let error = refused(429, &headers, body, &Redactor::default());
    assert_eq!(error.provider_call_id(), Some("some-request-id"));
    assert_eq!(error.error_code(), Some("user_model_rate_limited"));
    assert_eq!(
        error.retry_after(),
        Some(std::time::Duration::from_secs(90))
    );
    assert_eq!(
        error.to_string(),
        "the model provider answered 429: slow down (it asks to wait 90 s)"
    );
}

#[test]
fn long_messages_are_cut_and_secrets_masked() {
    let mut redactor = Redactor::default();
    redactor.add(super::super::secret::Secret::new("my-private-key"));
    let body = format!("my-private-key {}", "ä".repeat(5000));
    let error = refused(500, &HeaderMap::new(), body.as_bytes(), &redactor);
    let message = error.provider_message().unwrap();
    assert!(message.starts_with("*** ä"));
    assert_eq!(message.chars().count(), LONGEST_MESSAGE + 1);
}

#[test]
fn a_redirect_names_its_target() {
    let mut headers = HeaderMap::new();
    headers.insert("location", "https://elsewhere.example/v1".parse().unwrap());
    let error = refused(308, &headers, b"moved", &Redactor::default());
    assert!(
        error.to_string().contains("https://elsewhere.example/v1"),
        "{error}"
    );
    assert!(!error.is_retryable());
}

#[test]
fn errors_inside_a_reply_are_classed_by_their_own_words() {
    let cases = [
        (
            r#"{"code":429,"message":"x"}"#,
            ErrorKind::RateLimit,
            Some(429),
        ),
        (
            r#"{"code":502,"message":"x"}"#,
            ErrorKind::Server,
            Some(502),
        ),
        (
            r#"{"code":"rate_limit_exceeded","message":"x"}"#,
            ErrorKind::RateLimit,
            None,
        ),
        (
            r#"{"type":"overloaded_error","message":"x"}"#,
            ErrorKind::Server,
            None,
        ),
        (
            r#"{"type":"invalid_request_error","message":"x"}"#,
            ErrorKind::Query,
            None,
        ),
        (
            r#"{"message":"maximum context length is 4"}"#,
            ErrorKind::ContextLimit,
            None,
        ),
        (
            r#"{"code":"invalid_api_key","message":"x"}"#,
            ErrorKind::Authentication,
            None,
        ),
        (r#""just a text""#, ErrorKind::Server, None),
    ];
    for (body, kind, status) in cases {
        let error: Value = serde_json::from_str(body).unwrap();
        let error = reported(&error, &HeaderMap::new(), &Redactor::default());
        assert_eq!((error.kind(), error.status()), (kind, status), "{body}");
    }
}
