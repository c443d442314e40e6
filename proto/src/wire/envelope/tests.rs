//! How frames are parsed, and how our own messages are written.

use super::*;

/// Renders the reading of a frame in one line.
fn read(frame: &str) -> String {
    let params = |raw: Option<Box<RawValue>>| raw.map_or("none".to_owned(), |raw| raw.to_string());
    match parse(frame.as_bytes()) {
        Ok(Message::Request(request)) => {
            format!(
                "request {} {} {}",
                request.id,
                request.method,
                params(request.params)
            )
        }
        Ok(Message::Notification(notification)) => {
            format!(
                "notification {} {}",
                notification.method,
                params(notification.params)
            )
        }
        Ok(Message::Response(response)) => {
            let id = response.id.map_or("none".to_owned(), |id| id.to_string());
            match response.outcome {
                Ok(result) => format!("response {id} {result}"),
                Err(error) => format!("response {id} {error} {:?}", error.data),
            }
        }
        Err(error) => {
            let id = error.id().map_or("none", RequestId::as_json);
            format!("{} {id}", error.to_object().code)
        }
    }
}

#[test]
fn the_members_determine_the_kind_of_message() {
    for (frame, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}"#,
            r#"request 1 m {"a":[1]}"#,
        ),
        (
            r#"{"method":"m","params":[],"id":"x","more":{}}"#,
            r#"request "x" m []"#,
        ),
        (r#" {"jsonrpc":"2.0","method":"m"} "#, "notification m none"),
        (r#"{"method":"m","params":null}"#, "notification m none"),
        (r#"{"id":7,"result":null}"#, "response 7 null"),
        (
            r#"{"id":7,"result":{"a":1},"error":null}"#,
            r#"response 7 {"a":1}"#,
        ),
        (
            r#"{"id":7,"result":null,"error":{"code":-1,"message":"no","data":[2]}}"#,
            "response 7 no (code -1) Some(Array [Number(2)])",
        ),
        (
            r#"{"id":null,"error":{"code":-32700,"message":"what?"}}"#,
            "response none what? (code -32700) None",
        ),
        (
            r#"{"id":7,"error":"broken"}"#,
            "response 7 the other side answered with an error that has no code and message (code -32603) Some(String(\"broken\"))",
        ),
    ] {
        assert_eq!(read(frame), expected, "{frame}");
    }
}

#[test]
fn ids_are_kept_as_they_were_written() {
    for id in [
        "0",
        "-3",
        "1.50",
        "1e3",
        "123456789012345678901234567890",
        r#""""#,
        r#""\u00e9\n""#,
    ] {
        let frame = format!(r#"{{"id":{id},"method":"m"}}"#);
        assert_eq!(read(&frame), format!("request {id} m none"));
        let Ok(Message::Request(request)) = parse(frame.as_bytes()) else {
            unreachable!();
        };
        let reply = result(&request.id, &1).unwrap();
        assert_eq!(
            reply,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#)
        );
    }
}

#[test]
fn other_json_is_refused_with_the_right_code() {
    for (frame, expected) in [
        ("", "-32700 none"),
        ("{", "-32700 none"),
        (r#"{"method":"m"} x"#, "-32700 none"),
        ("{\"method\":\"a\0b\"}", "-32700 none"),
        (r#"{"method":"m","params":{"a":}}"#, "-32700 none"),
        ("[]", "-32600 none"),
        (r#" [{"method":"m"}]"#, "-32600 none"),
        ("1", "-32600 none"),
        ("{}", "-32600 none"),
        (r#"{"id":1}"#, "-32600 1"),
        (r#"{"id":1,"error":null}"#, "-32600 1"),
        (r#"{"method":5,"id":1}"#, "-32600 none"),
        (r#"{"method":"m","id":null}"#, "-32600 none"),
        (r#"{"method":"m","id":true}"#, "-32600 none"),
        (r#"{"method":"m","id":{}}"#, "-32600 none"),
        (r#"{"method":"m","id":1,"id":2}"#, "-32600 none"),
        (r#"{"jsonrpc":"1.0","method":"m","id":1}"#, "-32600 1"),
    ] {
        assert_eq!(read(frame), expected, "{frame}");
    }
    let bad_utf8 = parse(b"{\"method\":\"\xff\"}").unwrap_err();
    assert_eq!(bad_utf8.to_object().code, PARSE_ERROR);
    // Also where no member of ours is concerned.
    let bad_utf8 = parse(b"{\"method\":\"m\",\"x\":\"\xed\xa0\x80\"}").unwrap_err();
    assert_eq!(bad_utf8.to_object().code, PARSE_ERROR);
}

#[test]
fn our_messages_omit_null_params() {
    assert_eq!(
        notification("a\"b", &serde_json::json!({ "x": 1 })),
        r#"{"jsonrpc":"2.0","method":"a\"b","params":{"x":1}}"#
    );
    assert_eq!(notification("m", &()), r#"{"jsonrpc":"2.0","method":"m"}"#);
    assert_eq!(
        call(Some(3), "m", &[1]).unwrap(),
        r#"{"jsonrpc":"2.0","id":3,"method":"m","params":[1]}"#
    );
}

#[test]
fn params_that_are_not_json_yield_no_message() {
    let not_json = std::collections::HashMap::from([((1, 2), 3)]);
    assert!(notification("m", &not_json).is_empty());
    assert!(call(Some(1), "m", &not_json).is_err());
}

#[test]
fn errors_survive_a_round_trip() {
    let object = ErrorObject {
        code: OVERLOADED,
        message: "\"busy\"".to_owned(),
        data: Some(serde_json::json!({ "after": [1] })),
    };
    let message = error(Some(&RequestId::from(9)), &object);
    assert_eq!(
        message,
        r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32001,"message":"\"busy\"","data":{"after":[1]}}}"#
    );
    let Ok(Message::Response(response)) = parse(&message) else {
        unreachable!();
    };
    assert_eq!(response.outcome.unwrap_err(), object);
    let text = serde_json::to_string(&object).unwrap();
    assert_eq!(serde_json::from_str::<ErrorObject>(&text).unwrap(), object);
    assert_eq!(
        error(None, &ErrorObject::new(PARSE_ERROR, "no")),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#
    );
}
