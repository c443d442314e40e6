//! Tools that run in a client: what results may look like, who answers, how tools come and go.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

fn lookup() -> Value {
    json!({
        "name": "lookup", "description": "Looks a word up", "skipPermission": true,
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    })
}

fn looks_up(prompt: &str) -> Turn {
    Turn::user(prompt).calls([call("l", "lookup", json!({"word": "loop"}))])
}

async fn offering(daemon: &Daemon) -> Session {
    daemon.client().create(json!({"tools": [lookup()]})).await
}

fn complete(session: &Session) -> Value {
    let events = session.events();
    let mut events = events.iter().rev();
    let found = events.find(|event| event["type"] == "tool.execution_complete");
    found.unwrap()["data"].clone()
}

#[tokio::test]
async fn a_client_is_asked_by_an_event_with_everything_it_needs() {
    let daemon =
        Daemon::playing([looks_up("go"), Turn::results(["a closed curve"]).says("ok")]).await;
    let mut session = offering(&daemon).await;
    session.send("go").await;
    let (request, data) = session.tool_call().await;
    let expected = json!({
        "requestId": request, "sessionId": session.id, "toolCallId": "l", "toolName": "lookup",
        "arguments": {"word": "loop"}, "workingDirectory": daemon.work(),
    });
    assert_eq!(data, expected);
    let told = &daemon.script().requests()[0].body["tools"];
    let told = told
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["function"]["name"] == "lookup");
    assert_eq!(
        told.unwrap()["function"]["parameters"],
        lookup()["parameters"]
    );
    assert!(
        session
            .give(&request, json!({"result": "a closed curve"}))
            .await
    );
    session.next("external_tool.completed").await;
    session.next("session.idle").await;
    assert_eq!(complete(&session)["success"], true);
    daemon.finish().await;
}

#[tokio::test]
async fn results_of_every_shape_reach_the_model_as_text() {
    let image = json!([{"data": "aGk=", "mimeType": "image/png", "type": "image"}]);
    let cases = [
        (json!({"result": "plain"}), "plain", true),
        (
            json!({"result": {"textResultForLlm": "told", "resultType": "success", "sessionLog": "shown"}}),
            "told",
            true,
        ),
        (json!({"result": {"answer": 42}}), "{\"answer\":42}", true),
        (
            json!({"result": {"textResultForLlm": "did not work", "resultType": "failure", "error": "why"}}),
            "did not work",
            false,
        ),
        (
            json!({"result": {"textResultForLlm": "see", "binaryResultsForLlm": image}}),
            "see",
            true,
        ),
        (
            json!({"error": "secret words"}),
            "Tool execution failed",
            false,
        ),
        (json!({}), "", true),
    ];
    for (answer, text, success) in cases {
        let has_image = answer.to_string().contains("image/png");
        let next = if has_image {
            Turn::user("")
        } else {
            Turn::results([text])
        };
        let daemon = Daemon::playing([looks_up("go"), next.says("ok")]).await;
        let mut session = offering(&daemon).await;
        session.send("go").await;
        let (request, _) = session.tool_call().await;
        assert!(session.give(&request, answer.clone()).await);
        session.next("session.idle").await;
        assert_eq!(complete(&session)["success"], success, "for {answer}");
        let body = daemon.script().last_request().body.to_string();
        assert!(
            !body.contains("secret words"),
            "a client's exception is not for the model"
        );
        assert_eq!(body.contains("data:image/png;base64,aGk="), has_image);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_failure_tells_people_one_thing_and_the_model_another() {
    let daemon =
        Daemon::playing([looks_up("go"), Turn::results(["for the model"]).says("ok")]).await;
    let mut session = offering(&daemon).await;
    session.send("go").await;
    let (request, _) = session.tool_call().await;
    let result = json!({"textResultForLlm": "for the model", "resultType": "failure", "error": "for people"});
    assert!(session.give(&request, json!({"result": result})).await);
    session.next("session.idle").await;
    let complete = complete(&session);
    assert_eq!(
        complete["error"],
        json!({"message": "for people", "code": "failure"})
    );
    assert_eq!(complete["result"]["content"], "for the model");
    daemon.finish().await;
}

#[tokio::test]
async fn a_result_that_says_rejected_ends_the_loop() {
    let daemon = Daemon::playing([looks_up("go")]).await;
    let mut session = offering(&daemon).await;
    session.send("go").await;
    let (request, _) = session.tool_call().await;
    let result = json!({"textResultForLlm": "not today", "resultType": "rejected"});
    assert!(session.give(&request, json!({"result": result})).await);
    session.next("session.idle").await;
    assert_eq!(complete(&session)["error"]["code"], "rejected");
    daemon.finish().await;
}

#[tokio::test]
async fn a_huge_result_goes_to_a_file_and_the_model_learns_where() {
    let daemon = Daemon::playing([looks_up("go"), Turn::results(["too large"]).says("ok")]).await;
    let mut session = offering(&daemon).await;
    session.send("go").await;
    let (request, _) = session.tool_call().await;
    assert!(
        session
            .give(&request, json!({"result": "x".repeat(200_000)}))
            .await
    );
    session.next("session.idle").await;
    let told = &daemon.script().last_request().last_results()[0];
    assert!(told.len() < 5_000, "{} bytes reached the model", told.len());
    daemon.finish().await;
}

#[tokio::test]
async fn of_two_clients_with_the_tool_the_first_answer_counts() {
    let daemon = Daemon::playing([looks_up("go"), Turn::results(["from one"]).says("ok")]).await;
    let mut one = offering(&daemon).await;
    let mut two = daemon
        .client()
        .resume(&one.id, json!({"tools": [lookup()]}))
        .await;
    one.send("go").await;
    let (request, _) = one.tool_call().await;
    assert_eq!(two.tool_call().await.0, request);
    assert!(one.give(&request, json!({"result": "from one"})).await);
    assert!(!two.give(&request, json!({"result": "from two"})).await);
    two.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn who_comes_late_with_the_tool_sees_the_open_call() {
    let daemon = Daemon::playing([looks_up("go"), Turn::results(["at last"]).says("ok")]).await;
    let mut one = offering(&daemon).await;
    one.send("go").await;
    let (request, _) = one.tool_call().await;
    one.client().vanish().await;
    let without = daemon
        .client()
        .resume(&one.id, json!({"continuePendingWork": true}))
        .await;
    let with = json!({"tools": [lookup()], "continuePendingWork": true});
    let mut two = daemon.client().resume(&one.id, with).await;
    assert_eq!(two.tool_call().await.0, request, "the call keeps its id");
    assert!(two.give(&request, json!({"result": "at last"})).await);
    two.next("session.idle").await;
    assert_eq!(
        without.count("external_tool.requested"),
        0,
        "who has not the tool is not asked"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn who_brings_the_tool_after_joining_sees_the_open_call() {
    let daemon = Daemon::playing([looks_up("go"), Turn::results(["at last"]).says("ok")]).await;
    let mut one = offering(&daemon).await;
    one.send("go").await;
    let (request, _) = one.tool_call().await;
    one.client().vanish().await;
    let params = json!({"continuePendingWork": true});
    let mut two = daemon.client().resume(&one.id, params).await;
    let tools = json!({"tools": [lookup()]});
    two.call("session.tools.set", tools.clone()).await;
    assert_eq!(two.tool_call().await.0, request, "the call keeps its id");
    // Who has been shown the call is not shown it again.
    two.call("session.tools.set", tools).await;
    assert!(two.give(&request, json!({"result": "at last"})).await);
    two.next("session.idle").await;
    assert_eq!(two.count("external_tool.requested"), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn an_open_call_is_closed_when_the_session_is_resumed_without_it() {
    let daemon = Daemon::playing([looks_up("go"), Turn::user("next").says("ok")]).await;
    let mut one = offering(&daemon).await;
    one.send("go").await;
    let (request, _) = one.tool_call().await;
    one.client().vanish().await;
    let mut two = daemon
        .client()
        .resume(&one.id, json!({"tools": [lookup()]}))
        .await;
    assert!(!two.give(&request, json!({"result": "too late"})).await);
    two.ask("next").await;
    assert_eq!(two.count("external_tool.requested"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn tools_leave_with_their_client_and_the_model_is_told() {
    let daemon = Daemon::playing([
        Turn::user("one").says("1"),
        Turn::user("two").says("2"),
        Turn::user("three").says("3"),
    ])
    .await;
    let mut one = daemon.client().create(json!({})).await;
    let two = daemon.client();
    two.resume(&one.id, json!({"tools": [lookup()]})).await;
    one.ask("one").await;
    assert!(daemon.script().last_request().tools().contains(&"lookup"));
    two.vanish().await;
    one.ask("two").await;
    let request = daemon.script().last_request();
    assert!(!request.tools().contains(&"lookup"));
    assert!(
        request.last_user_text().contains("lookup"),
        "{}",
        request.last_user_text()
    );
    one.ask("three").await;
    let text = daemon.script().last_request().last_user_text();
    assert!(!text.contains("lookup"), "it is told once: {text}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_tool_replaces_a_built_in_one_only_when_it_says_so() {
    let bash = |overrides: bool| json!({"name": "bash", "description": "mine", "skipPermission": true, "overridesBuiltInTool": overrides});
    let runs = || Turn::user("go").calls([call("b", "bash", json!({"command": "echo built in"}))]);
    let daemon = Daemon::playing([runs(), Turn::results(["from the client"]).says("ok")]).await;
    let client = daemon.client();
    client
        .refused("session.create", json!({"tools": [bash(false)]}))
        .await;
    let mut session = client.create(json!({"tools": [bash(true)]})).await;
    session.send("go").await;
    let (request, _) = session.tool_call().await;
    assert!(
        session
            .give(&request, json!({"result": "from the client"}))
            .await
    );
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_tool_asks_for_permission_like_any_other() {
    let daemon = Daemon::playing([looks_up("go"), Turn::results(["fine"]).says("ok")]).await;
    let mut tool = lookup();
    tool["skipPermission"] = json!(false);
    let offer = json!({"tools": [tool], "requestPermission": true});
    let mut session = daemon.client().create(offer).await;
    session.send("go").await;
    let (request, asked) = session.permission().await;
    let expected = json!({"kind": "custom-tool", "toolCallId": "l", "toolName": "lookup",
        "toolDescription": "Looks a word up", "args": {"word": "loop"}});
    assert_eq!(asked, expected);
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    let (request, _) = session.tool_call().await;
    assert!(session.give(&request, json!({"result": "fine"})).await);
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_configuration_decides_which_tools_the_model_sees() {
    let everything = [
        "bash",
        "read_bash",
        "write_bash",
        "stop_bash",
        "list_bash",
        "view",
        "create",
        "edit",
        "grep",
        "glob",
        "apply_patch",
        "web_fetch",
        "sql",
        "todowrite",
        "todoread",
        "task",
        "read_agent",
        "write_agent",
        "list_agents",
        "stop_agent",
        "lookup",
    ];
    let cases = [
        (json!({}), everything.to_vec()),
        (
            json!({"availableTools": ["view", "lookup"]}),
            vec!["view", "lookup"],
        ),
        (
            json!({"excludedTools": ["bash", "read_bash", "write_bash", "stop_bash", "list_bash", "builtin:glob", "apply_patch", "web_fetch",
                "sql", "todowrite", "todoread", "task", "read_agent", "write_agent", "list_agents", "stop_agent"]}),
            vec!["view", "create", "edit", "grep", "lookup"],
        ),
        (json!({"availableTools": ["custom:*"]}), vec!["lookup"]),
        (
            json!({"availableTools": ["view", "bash"], "excludedTools": ["bash"]}),
            vec!["view"],
        ),
        (
            json!({"availableTools": ["view", "bash"], "excludedTools": ["bash"], "toolFilterPrecedence": "available"}),
            vec!["bash", "view"],
        ),
        (json!({"availableTools": []}), vec![]),
    ];
    for (filter, expected) in cases {
        let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
        let mut params = filter.clone();
        params["tools"] = json!([lookup()]);
        let mut session = daemon.client().create(params).await;
        session.ask("go").await;
        assert_eq!(
            daemon.script().last_request().tools(),
            expected,
            "for {filter}"
        );
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_tool_without_a_name_is_refused_by_name() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    for offer in [
        json!({"tools": [{"description": "x"}]}),
        json!({"tools": [{"name": ""}]}),
    ] {
        let error = client.refused("session.create", offer).await;
        assert_eq!(
            (error.code, error.message.contains("name")),
            (-32602, true),
            "{error}"
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_tool_named_like_a_built_in_one_is_refused_unless_it_says_so() {
    let daemon = Daemon::playing([]).await;
    let mut grep = lookup();
    grep["name"] = "grep".into();
    let client = daemon.client();
    let text = |method: &str| {
        format!(
            "Invalid parameters for {method}: tools[1].name: `grep` is the name of a built-in tool; \
             set overridesBuiltInTool to replace it"
        )
    };
    let clash = json!({"tools": [lookup(), grep]});
    let refused = client.refused("session.create", clash.clone()).await;
    assert_eq!(
        (refused.code, refused.message),
        (-32602, text("session.create"))
    );
    let sessions = client.call("session.list", json!({})).await;
    assert_eq!(sessions["sessions"], json!([]), "nothing was created");

    // Filters change nothing: what a name means does not depend on them.
    let mut hidden = clash.clone();
    hidden["excludedTools"] = json!(["grep"]);
    let refused = client.refused("session.create", hidden).await;
    assert_eq!(refused.message, text("session.create"));

    let session = offering(&daemon).await;
    let mut again = clash.clone();
    again["sessionId"] = session.id.clone().into();
    let refused = session.client().refused("session.resume", again).await;
    assert_eq!(refused.message, text("session.resume"));
    let refused = session.refused("session.tools.set", clash).await;
    assert_eq!(refused.message, text("session.tools.set"));

    let twice = json!({"tools": [lookup(), lookup()]});
    let refused = client.refused("session.create", twice).await;
    let told = "Invalid parameters for session.create: tools[1].name: `lookup` is given twice";
    assert_eq!(refused.message, told);

    grep["overridesBuiltInTool"] = true.into();
    client.create(json!({"tools": [grep]})).await;
    daemon.finish().await;
}
