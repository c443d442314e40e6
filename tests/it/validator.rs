//! The strict reader of conversations refuses what it is there to refuse.

use loopd_tests::validator::{check_conversation, check_request};
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn calls(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}}))
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": ""})
}

#[test]
fn what_a_provider_takes_is_valid() {
    let system = json!({"role": "system", "content": "s"});
    let words = json!({"role": "assistant", "content": "w"});
    let conversations = [
        vec![],
        vec![
            system,
            user("u"),
            calls(&["a", "b"]),
            result("a"),
            result("b"),
            words.clone(),
        ],
        vec![user("u"), user("u"), words.clone(), words],
        vec![calls(&["a"]), result("a"), calls(&["a"]), result("a")],
    ];
    for conversation in conversations {
        assert_eq!(check_conversation(&conversation), Ok(()));
    }
}

#[test]
fn what_a_provider_refuses_is_not_valid() {
    let odd_arguments = json!({"role": "assistant", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{oops"}}]});
    let conversations = [
        ("an orphan result", vec![user("u"), result("a")]),
        (
            "a missing result",
            vec![user("u"), calls(&["a", "b"]), result("a"), user("u")],
        ),
        (
            "a missing result at the end",
            vec![user("u"), calls(&["a"])],
        ),
        (
            "results in another order",
            vec![calls(&["a", "b"]), result("b"), result("a")],
        ),
        (
            "two results of one call",
            vec![calls(&["a"]), result("a"), result("a")],
        ),
        (
            "a result that comes late",
            vec![calls(&["a"]), user("u"), result("a")],
        ),
        (
            "one id twice in a message",
            vec![calls(&["a", "a"]), result("a"), result("a")],
        ),
        (
            "a second system message",
            vec![user("u"), json!({"role": "system", "content": "s"})],
        ),
        ("an empty user message", vec![user("")]),
        (
            "an empty assistant message",
            vec![json!({"role": "assistant", "content": ""})],
        ),
        (
            "arguments that are not JSON",
            vec![odd_arguments, result("a")],
        ),
        (
            "an unknown role",
            vec![json!({"role": "robot", "content": "x"})],
        ),
    ];
    for (what, conversation) in conversations {
        assert!(
            check_conversation(&conversation).is_err(),
            "{what} was taken"
        );
    }
}

#[test]
fn a_request_wants_an_answer() {
    let request = |messages: Value| json!({"model": "m", "messages": messages});
    assert_eq!(check_request(&request(json!([user("u")]))), Ok(()));
    let answered = json!([user("u"), {"role": "assistant", "content": "w"}]);
    assert!(check_request(&request(answered)).is_err());
    let nameless = json!({"messages": [user("u")]});
    assert!(check_request(&nameless).is_err());
    let mut twice = request(json!([user("u")]));
    let tool =
        json!({"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}});
    twice["tools"] = json!([tool, tool]);
    assert!(check_request(&twice).is_err());
}
