//! Slash commands: the daemon's own, and those that run in the client that brought them.

use loopd_tests::{Daemon, Session, Turn};
use serde_json::{Value, json};

const EXECUTE: &str = "session.commands.execute";
const INVOKE: &str = "session.commands.invoke";
const REPORT: &str = "session.commands.handlePendingCommand";

async fn names(session: &Session, filter: Value) -> Vec<(String, String)> {
    let listed = session.call("session.commands.list", filter).await;
    let commands = listed["commands"].as_array().unwrap().iter();
    commands
        .map(|command| {
            let member = |name: &str| command[name].as_str().unwrap().to_owned();
            assert!(command["allowDuringAgentExecution"].is_boolean());
            (member("name"), member("kind"))
        })
        .collect()
}

fn is_listed(commands: &[(String, String)], name: &str, kind: &str) -> bool {
    let mut all = commands.iter();
    all.any(|(found, of)| found == name && of == kind)
}

#[tokio::test]
async fn ours_and_the_clients_are_listed_apart_and_together() {
    let daemon = Daemon::playing([]).await;
    let commands = json!([{"name": "deploy"}, {"name": "Usage", "description": "Mine"}]);
    let session = daemon.client().create(json!({"commands": commands})).await;
    let all = names(&session, json!({})).await;
    for (name, kind) in [
        ("help", "builtin"),
        ("model", "builtin"),
        ("deploy", "client"),
    ] {
        assert!(is_listed(&all, name, kind), "{name} is missing: {all:?}");
    }
    assert!(
        is_listed(&all, "Usage", "client") && !is_listed(&all, "usage", "builtin"),
        "a client's command takes the place of ours: {all:?}"
    );
    let ours = names(&session, json!({"includeClientCommands": false})).await;
    assert!(is_listed(&ours, "help", "builtin") && !is_listed(&ours, "deploy", "client"));
    let clients = names(&session, json!({"includeBuiltins": false})).await;
    assert_eq!(clients.len(), 2);
    daemon.finish().await;
}

#[tokio::test]
async fn our_commands_do_what_they_say() {
    let daemon = Daemon::playing([]).await;
    let mut session = daemon.client().create(json!({})).await;
    let help = session.call(INVOKE, json!({"name": "/HELP"})).await;
    assert_eq!(help["kind"], "text");
    assert!(help["text"].as_str().unwrap().contains("/model"), "{help}");

    let chosen = json!({"name": "model", "input": "gpt-5 high"});
    assert_eq!(session.call(INVOKE, chosen).await["kind"], "completed");
    let model = session.call("session.model.getCurrent", json!({})).await;
    assert_eq!(
        model,
        json!({"modelId": "gpt-5", "reasoningEffort": "high"})
    );
    let shown = session.call(INVOKE, json!({"name": "model"})).await;
    assert!(shown["text"].as_str().unwrap().contains("gpt-5 answers"));

    for mode in ["plan", "autopilot", "interactive"] {
        let done = session.call(INVOKE, json!({"name": mode})).await;
        assert_eq!(done["kind"], "completed");
        session.next("session.mode_changed").await;
        assert_eq!(session.call("session.mode.get", json!({})).await, mode);
    }
    let rename = json!({"name": "rename", "input": " Spring cleaning "});
    session.call(INVOKE, rename).await;
    let name = session.call("session.name.get", json!({})).await;
    assert_eq!(name, json!({"name": "Spring cleaning"}));
    for empty in ["agents", "tasks", "usage"] {
        let told = session.call(INVOKE, json!({"name": empty})).await;
        assert_eq!(told["kind"], "text");
        assert_ne!(told["text"], "");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn the_words_after_a_mode_are_said_to_the_model() {
    let daemon = Daemon::playing([Turn::user("the roof").says("A plan.")]).await;
    let mut session = daemon.client().create(json!({})).await;
    let invoked = json!({"name": "plan", "input": "the roof"});
    assert_eq!(
        session.call(INVOKE, invoked).await,
        json!({"kind": "agent-prompt", "prompt": "the roof", "displayPrompt": "/plan the roof",
            "mode": "plan"})
    );
    let executed = json!({"commandName": "plan", "args": "the roof"});
    assert_eq!(session.call(EXECUTE, executed).await, json!({}));
    session.next("session.idle").await;
    assert_eq!(session.call("session.mode.get", json!({})).await, "plan");
    daemon.finish().await;
}

#[tokio::test]
async fn a_clients_command_goes_to_the_client_that_brought_it_and_to_nobody_else() {
    let daemon = Daemon::playing([]).await;
    let asker = daemon.client().create(json!({})).await;
    let commands = json!([{"name": "deploy", "description": "Deploys"}]);
    let params = json!({"commands": commands});
    let mut owner = daemon.client().resume(&asker.id, params).await;
    let deploy = json!({"commandName": "deploy", "args": "production"});
    let running = asker.start(EXECUTE, deploy.clone());
    let handed = owner.next("command.execute").await;
    let request = handed["data"]["requestId"].clone();
    assert_eq!(
        handed["data"],
        json!({"requestId": request, "command": "/deploy production", "commandName": "deploy",
            "args": "production"})
    );
    let done = owner.call(REPORT, json!({"requestId": request})).await;
    assert_eq!(done, json!({"success": true}));
    assert_eq!(running.await.unwrap(), json!({}));
    owner.next("command.completed").await;
    assert_eq!(asker.count("command.execute"), 0);

    let running = asker.start(EXECUTE, deploy);
    let handed = owner.next("command.execute").await;
    let failed = json!({"requestId": handed["data"]["requestId"], "error": "no power"});
    owner.call(REPORT, failed).await;
    assert_eq!(running.await.unwrap(), json!({"error": "no power"}));
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_ends_with_the_client_that_runs_it() {
    let daemon = Daemon::playing([]).await;
    let mut asker = daemon.client().create(json!({})).await;
    let commands = json!([{"name": "deploy"}]);
    let params = json!({"commands": commands});
    let mut owner = daemon.client().resume(&asker.id, params).await;
    asker.next("commands.changed").await;
    let running = asker.start(EXECUTE, json!({"commandName": "deploy", "args": ""}));
    owner.next("command.execute").await;
    owner.call("session.destroy", json!({})).await;
    let ended = running.await.unwrap();
    assert!(ended["error"].as_str().unwrap().contains("left"), "{ended}");
    let gone = asker.next("commands.changed").await;
    assert_eq!(gone["data"], json!({"commands": []}));
    let gone = json!({"commandName": "deploy", "args": ""});
    let unknown = asker.call(EXECUTE, gone).await;
    assert!(
        unknown["error"].as_str().unwrap().contains("/deploy"),
        "{unknown}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_report_that_nobody_waits_for_is_taken_and_said_to_be_unwanted() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let late = json!({"requestId": "nothing", "error": "too late"});
    // The official suite wants `success` to be true.
    let unwanted = json!({"success": true, "waitedFor": false});
    assert_eq!(session.call(REPORT, late).await, unwanted);
    daemon.finish().await;
}

#[tokio::test]
async fn what_is_no_command_is_refused() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let unknown = session.refused(INVOKE, json!({"name": "fly"})).await;
    assert!(unknown.message.contains("/fly"), "{}", unknown.message);
    for name in ["", "/", "two words"] {
        let wrong = session.refused(INVOKE, json!({ "name": name })).await;
        assert_eq!(wrong.code, -32602, "{name:?}");
        let params = json!({"commandName": name, "args": ""});
        assert_eq!(session.refused(EXECUTE, params).await.code, -32602);
    }
    for (name, input) in [("help", "me"), ("rename", "  "), ("model", "a b c")] {
        let params = json!({"commandName": name, "args": input});
        let wrong = session.call(EXECUTE, params).await;
        assert!(wrong["error"].is_string(), "/{name} {input}: {wrong}");
    }
    let without_args = json!({"commandName": "help"});
    assert_eq!(session.refused(EXECUTE, without_args).await.code, -32602);
    daemon.finish().await;
}
