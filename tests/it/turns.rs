//! The loop: what one turn is, how tools feed back into it, how messages wait and join.

use loopd_tests::{Daemon, Gate, Script, Turn, call};
use serde_json::{Value, json};

#[tokio::test]
async fn one_turn_emits_its_events_in_order() {
    let daemon = Daemon::playing([Turn::user("hello").says("hi there")]).await;
    let mut session = daemon.client().create(json!({"sessionId": "first"})).await;
    session.ask("hello").await;
    insta::assert_snapshot!(session.transcript(), @r#"
    session.start {"sessionId":"first","version":1,"producer":"loopd","copilotVersion":"<n>","startTime":"<time>","selectedModel":"scripted","context":{"cwd":"<work>"},"alreadyInUse":false,"remoteSteerable":false}
    ~ pending_messages.modified {}
    ~ pending_messages.modified {}
    ~ session.title_changed {"title":"hello"}
    user.message {"messageId":"<id 1>","content":"hello","transformedContent":"<current_datetime><time></current_datetime>\n\nhello","delivery":"idle","interactionId":"<id 2>","turnId":"0"}
    ~ session.tools_updated {"model":"scripted"}
    system.message {"role":"system","content":"<system>","interactionId":"<id 2>"}
    assistant.turn_start {"turnId":"0","interactionId":"<id 2>"}
    ~ session.usage_info {"tokenLimit":128000,"currentTokens":"<n>","messagesLength":2,"systemTokens":"<n>","conversationTokens":"<n>","toolDefinitionsTokens":"<n>","isInitial":true}
    ~ model.call_start {"turnId":"0","model":"scripted"}
    ~ assistant.usage {"model":"scripted","inputTokens":10,"outputTokens":5,"cacheReadTokens":0,"cacheWriteTokens":0,"reasoningTokens":0,"duration":"<n>","initiator":"user","interactionType":"conversation-agent","apiCallId":"chatcmpl-scripted","apiEndpoint":"/chat/completions","availableToolCount":"<n>","numToolCalls":0,"toolCounts":{},"finishReason":"stop"}
    assistant.message {"messageId":"<id 3>","originatingMessageId":"<id 1>","model":"scripted","content":"hi there","toolRequests":[],"outputTokens":5,"interactionId":"<id 2>","turnId":"0","apiCallId":"chatcmpl-scripted"}
    assistant.turn_end {"turnId":"0"}
    ~ assistant.idle {}
    ~ session.idle {"mode":"interactive"}
    "#);
    daemon.finish().await;
}

#[tokio::test]
async fn a_turn_with_a_tool_emits_its_events_in_order() {
    let daemon = Daemon::playing([
        Turn::user("list").calls([call("call_1", "bash", json!({"command": "echo one"}))]),
        Turn::results(["one\n<exited with exit code 0>"]).says("there is one"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("list").await;
    let durable: Vec<Value> = session.messages().await;
    let kinds: Vec<&str> = durable
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "session.start",
            "user.message",
            "system.message",
            "assistant.turn_start",
            "assistant.message",
            "tool.execution_start",
            "tool.execution_complete",
            "assistant.turn_end",
            "assistant.turn_start",
            "assistant.message",
            "assistant.turn_end",
        ]
    );
    assert_eq!(session.durable_kinds(), kinds);
    let complete = durable
        .iter()
        .find(|event| event["type"] == "tool.execution_complete");
    let data = &complete.unwrap()["data"];
    assert_eq!(data["success"], true);
    assert_eq!(data["toolCallId"], "call_1");
    assert_eq!(data["result"]["content"], "one\n<exited with exit code 0>");
    daemon.finish().await;
}

#[tokio::test]
async fn sending_answers_before_the_model_does() {
    let gate = Gate::new();
    let daemon = Daemon::playing([Turn::user("hello").says("hi").held_by(&gate)]).await;
    let mut session = daemon.client().create(json!({})).await;
    let id = session.send("hello").await;
    assert!(!id.is_empty());
    gate.reached().await;
    gate.open();
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_model_sees_the_whole_history_on_every_call() {
    let daemon = Daemon::playing([
        Turn::user("one").says("first answer"),
        Turn::user("two").says("second answer"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    session.ask("two").await;
    let request = daemon.script().last_request();
    let roles: Vec<&Value> = request
        .messages()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!(request.messages()[2]["content"], "first answer");
    daemon.finish().await;
}

#[tokio::test]
async fn one_model_call_is_one_pair_of_turn_events() {
    let bash = |id: &str| call(id, "bash", json!({"command": format!("echo {id}")}));
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("a")]),
        Turn::results(["a"]).calls([bash("b")]),
        Turn::results(["b"]).calls([bash("c")]),
        Turn::results(["c"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    let turns: Vec<(Value, Value)> = session
        .events()
        .iter()
        .filter(|event| {
            event["type"]
                .as_str()
                .unwrap()
                .starts_with("assistant.turn_")
        })
        .map(|event| (event["type"].clone(), event["data"]["turnId"].clone()))
        .collect();
    let expected: Vec<(Value, Value)> = ["0", "1", "2", "3"]
        .iter()
        .flat_map(|id| [("assistant.turn_start", id), ("assistant.turn_end", id)])
        .map(|(kind, id)| (json!(kind), json!(id)))
        .collect();
    assert_eq!(turns, expected);
    assert_eq!(session.count("session.idle"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn parallel_calls_run_at_once_and_their_results_keep_the_order_of_the_calls() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            // Ends only when the second one runs beside it.
            call("slow", "bash", json!({"command": "mkfifo -m 600 pipe 2>/dev/null; cat pipe"})),
            call("fast", "bash", json!({"command": "mkfifo -m 600 pipe 2>/dev/null; echo through the pipe > pipe; echo fast"})),
            call("none", "no_such_tool", json!({})),
        ]),
        Turn::results(["through the pipe", "fast", "Tool 'no_such_tool' does not exist"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    assert_eq!(session.count("tool.execution_start"), 3);
    assert_eq!(session.count("tool.execution_complete"), 3);
    daemon.finish().await;
}

#[tokio::test]
async fn calls_with_the_same_id_get_a_result_each() {
    let bash = |text: &str| call("same", "bash", json!({"command": format!("echo {text}")}));
    let daemon = Daemon::playing([
        Turn::user("go").calls([bash("left"), bash("right")]),
        Turn::results(["left", "right"]).calls([bash("again")]),
        Turn::results(["again"]).says("done"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    daemon.finish().await;
}

#[tokio::test]
async fn arguments_that_are_not_valid_are_a_result_and_not_an_error() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("broken", "bash", json!({})).raw_arguments("{\"command\": oops"),
            call("wrong", "bash", json!({"command": 7})),
            call("none", "view", json!(null)),
        ]),
        Turn::results(["", "command", ""]).says("sorry"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    session.ask("go").await;
    let failures: Vec<Value> = session
        .events()
        .iter()
        .filter(|event| event["type"] == "tool.execution_complete")
        .map(|event| event["data"]["success"].clone())
        .collect();
    assert_eq!(failures, [false, false, false]);
    assert_eq!(session.count("session.error"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_streamed_reply_comes_in_deltas_and_then_as_a_whole() {
    let daemon = Daemon::playing([
        Turn::user("hello").streams(["Hel", "lo ", "you"]),
        Turn::user("run").calls([call("c", "bash", json!({"command": "echo streamed call"}))]),
        Turn::results(["streamed call"]).streams(["done"]),
    ])
    .await;
    let mut session = daemon.client().create(json!({"streaming": true})).await;
    session.approve_all().await;
    session.ask("hello").await;
    assert_eq!(daemon.script().last_request().body["stream"], true);
    let events = session.events();
    let of = |kind: &str| {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .collect::<Vec<_>>()
    };
    let deltas: String = of("assistant.message_delta")
        .iter()
        .map(|event| event["data"]["deltaContent"].as_str().unwrap())
        .collect();
    let message = of("assistant.message")[0];
    assert_eq!(
        (deltas.as_str(), &message["data"]["content"]),
        ("Hello you", &json!("Hello you"))
    );
    let ids = of("assistant.message_delta").iter().all(|event| {
        event["ephemeral"] == true && event["data"]["messageId"] == message["data"]["messageId"]
    });
    assert!(
        ids,
        "deltas belong to the message that follows and are ephemeral"
    );
    session.ask("run").await;
    for event in session.messages().await {
        assert_ne!(
            event["ephemeral"], true,
            "an ephemeral event is stored: {event}"
        );
        assert_ne!(event["type"], "assistant.message_delta");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn the_launch_can_bring_the_model_and_the_first_of_its_list_answers() {
    let script = Script::play([Turn::user("hello").says("hi")]).await;
    let daemon = Daemon::builder()
        .copilot(script)
        .env("GH_TOKEN", "launch-token")
        .start()
        .await;
    let client = daemon.client();
    let models = client.call("models.list", json!({})).await;
    assert_eq!(models["models"][0]["id"], "scripted");
    assert_eq!(
        models["models"][0]["capabilities"]["limits"]["max_context_window_tokens"],
        64_000
    );
    let mut session = client.create(json!({})).await;
    session.ask("hello").await;
    let request = daemon.script().last_request();
    assert_eq!(request.body["model"], "scripted");
    assert_eq!(request.header("authorization"), Some("Bearer launch-token"));
    assert_eq!(request.body.get("stream"), None);
    daemon.finish().await;
}

#[tokio::test]
async fn a_sessions_own_provider_gets_its_key_and_the_messages_headers_and_the_log_does_not() {
    let daemon = Daemon::playing([
        Turn::user("hello").says("hi"),
        Turn::user("again").says("hi"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    let headers = json!({"prompt": "hello", "requestHeaders": {"x-secret-header": "hush"}});
    session.call("session.send", headers).await;
    session.next("session.idle").await;
    session.ask("again").await;
    let requests = daemon.script().requests();
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer secret-key")
    );
    assert_eq!(requests[0].header("x-secret-header"), Some("hush"));
    assert_eq!(
        requests[1].header("x-secret-header"),
        None,
        "headers are for one message"
    );
    let id = session.id.as_str().into();
    let (_, log) = daemon.app.services.store.load(&id).await.unwrap().unwrap();
    for secret in ["secret-key", "hush"] {
        let told = log.iter().find(|event| event.json.contains(secret));
        assert!(told.is_none(), "the log holds a secret: {told:?}");
    }
    daemon.finish().await;
}
