//! What a session is opened with, and `session.options.update`: honoured, or refused by name.

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

async fn refused(daemon: &Daemon, params: Value) -> String {
    let error = daemon.client().refused("session.create", params).await;
    assert_eq!(error.code, -32602, "{error}");
    error.message
}

#[tokio::test]
async fn the_agent_that_a_session_is_created_with_answers_with_its_own_rights() {
    let daemon = Daemon::playing([Turn::user("one").says("1")]).await;
    let mut session = daemon.client().create(json!({"agent": "plan"})).await;
    let current = session.call("session.agent.getCurrent", json!({})).await;
    assert_eq!(current["agent"]["name"], "plan");
    session.ask("one").await;
    let request = daemon.script().last_request();
    for tool in ["apply_patch", "edit", "create", "task"] {
        assert!(!request.tools().contains(&tool), "{tool} is offered");
    }
    let system = request.messages()[0]["content"].as_str().unwrap();
    assert!(system.contains("You are planning."), "{system}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_folder_that_nobody_trusts_does_not_stand_in_for_our_agents() {
    let daemon = Daemon::playing([Turn::user("one").says("1")]).await;
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\ndescription: Plans\n---\nYou do whatever you like.";
    std::fs::write(folder.join("Plan.md"), text).unwrap();
    let mut session = daemon.client().create(json!({"agent": "plan"})).await;
    session.ask("one").await;
    assert!(!daemon.script().last_request().tools().contains(&"edit"));
    daemon.finish().await;
}

#[tokio::test]
async fn an_unknown_agent_is_refused_with_the_names_there_are_and_no_session_is_made() {
    let daemon = Daemon::playing([]).await;
    let why = refused(&daemon, json!({"agent": "plam", "sessionId": "mine"})).await;
    assert!(why.contains("agent: ") && why.contains("`plam`"), "{why}");
    assert!(why.contains("plan"), "it lists who there is: {why}");
    let listed = daemon.client().call("session.list", json!({})).await;
    assert_eq!(listed["sessions"], json!([]));
    daemon.finish().await;
}

#[tokio::test]
async fn a_resume_chooses_the_agent_it_names_and_keeps_the_one_it_does_not() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({"agent": "build"})).await;
    session.client().vanish().await;
    let other = daemon.client();
    let unknown = json!({"sessionId": session.id, "agent": "nobody"});
    let error = other.refused("session.resume", unknown).await;
    assert!(error.message.contains("`nobody`"), "{error}");
    for (params, expected) in [
        (json!({}), "build"),
        (json!({"agent": "plan"}), "plan"),
        (json!({"agent": "build", "loopdReturns": true}), "plan"),
    ] {
        let joined = daemon.client().resume(&session.id, params).await;
        let current = joined.call("session.agent.getCurrent", json!({})).await;
        assert_eq!(current["agent"]["name"], expected);
        joined.client().vanish().await;
    }
    daemon.finish().await;
}

#[tokio::test]
async fn agents_on_disk_count_where_the_session_discovers_them() {
    let daemon = Daemon::playing([]).await;
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\ndescription: Finds things\n---\nYou find things.";
    std::fs::write(folder.join("finder.md"), text).unwrap();
    let mine = json!([{"name": "mine", "description": "d", "prompt": "p"}]);
    for (discovers, expected) in [
        (Value::Null, vec!["mine"]),
        (json!(false), vec!["mine"]),
        (json!(true), vec!["mine", "finder"]),
    ] {
        let params = json!({"customAgents": mine, "enableConfigDiscovery": discovers});
        let session = daemon.client().create(params).await;
        let listed = session.call("session.agent.list", json!({})).await;
        let names = listed["agents"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|agent| agent["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected);
    }
    daemon.finish().await;
}

#[tokio::test]
async fn options_change_what_they_name_and_survive_a_restart() {
    let mut daemon =
        Daemon::playing([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let offer = json!({"requestUserInput": true, "streaming": true});
    let mut session = daemon.client().create(offer).await;
    let folder = daemon.file("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    let patch = json!({
        "excludedTools": ["bash"], "askUserDisabled": true, "enableStreaming": false,
        "workingDirectory": folder, "clientName": "mine", "sessionLimits": {"maxAiCredits": 5.0},
        "coauthorEnabled": false, "manageScheduleEnabled": false, "customAgentsLocalOnly": true,
        "installedPlugins": [], "includedBuiltinSkills": [], "integrationId": "x",
        "lspClientName": "y", "featureFlags": {"z": true},
    });
    let updated = session.call("session.options.update", patch).await;
    assert_eq!(updated, json!({"success": true}));
    session.ask("one").await;
    let request = daemon.script().last_request();
    assert!(!request.tools().contains(&"bash"));
    assert!(!request.tools().contains(&"ask_user"));
    assert_ne!(request.body["stream"], true);
    let id = session.id.clone();
    daemon.restart().await;
    let mut session = daemon
        .client()
        .resume(&id, json!({"requestUserInput": true}))
        .await;
    let now = session.call("session.metadata.snapshot", json!({})).await;
    assert_eq!(now["workingDirectory"], json!(folder));
    session
        .call("session.options.update", json!({"sessionLimits": null}))
        .await;
    session.ask("two").await;
    let request = daemon.script().last_request();
    assert!(!request.tools().contains(&"ask_user"));
    daemon.finish().await;
}

#[tokio::test]
async fn an_option_that_cannot_be_changed_is_named_and_nothing_is_changed() {
    let daemon = Daemon::playing([Turn::user("one").says("1")]).await;
    let mut session = daemon.client().create(json!({})).await;
    for (member, value) in [
        ("sandboxConfig", json!({"enabled": true})),
        ("coauthorEnabled", json!(true)),
        ("installedPlugins", json!([{"name": "p"}])),
        ("additionalContentExclusionPolicies", json!([{}])),
        ("somethingNew", json!(1)),
        ("toolFilterPrecedence", json!("both")),
        ("workingDirectory", json!("/nowhere/at/all")),
        ("excludedTools", json!("bash")),
    ] {
        let mut patch = json!({"excludedTools": ["bash"]});
        patch[member] = value;
        let error = session.refused("session.options.update", patch).await;
        assert_eq!(error.code, -32602, "{error}");
        assert!(error.message.contains(member), "{error}");
    }
    session.ask("one").await;
    assert!(daemon.script().last_request().tools().contains(&"bash"));
    daemon.finish().await;
}

#[tokio::test]
async fn a_connection_replaces_its_own_tools_and_no_others() {
    let daemon = Daemon::playing([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let tool = |name: &str| json!({"name": name, "description": "d"});
    let mut session = daemon
        .client()
        .create(json!({"tools": [tool("mine")]}))
        .await;
    let offer = json!({"tools": [tool("theirs")]});
    let theirs = daemon.client().resume(&session.id, offer).await;
    let set = json!({"tools": [tool("newer"), tool("newest")]});
    assert_eq!(session.call("session.tools.set", set).await, json!({}));
    session.ask("one").await;
    let request = daemon.script().last_request();
    let offered = |name: &str| request.tools().contains(&name);
    assert!(!offered("mine") && offered("newer") && offered("newest") && offered("theirs"));
    for (tools, why) in [
        (json!([tool("a"), tool("a")]), "tools[1].name"),
        (json!([tool("bash")]), "overridesBuiltInTool"),
        (json!([{"name": "", "description": "d"}]), "tools[0].name"),
    ] {
        let error = session
            .refused("session.tools.set", json!({"tools": tools}))
            .await;
        assert!(error.message.contains(why), "{error}");
    }
    theirs.call("session.tools.set", json!({"tools": []})).await;
    session.ask("two").await;
    let request = daemon.script().last_request();
    let offered = |name: &str| request.tools().contains(&name);
    assert!(offered("newer") && !offered("theirs"));
    daemon.finish().await;
}

fn managed(permissions: &Value) -> Value {
    json!({"managedSettings": {"permissions": permissions}})
}

#[tokio::test]
async fn what_managed_settings_deny_does_not_run_whatever_else_is_allowed() {
    let runs = |id: &str| {
        call(
            id,
            "bash",
            json!({"command": "touch made", "description": "d"}),
        )
    };
    let mut daemon = Daemon::playing([
        Turn::user("one").calls([runs("a")]),
        Turn::results(["Permission denied by the rule shell(touch)"]).says("1"),
        Turn::user("two").calls([runs("b")]),
        Turn::results(["Permission denied by the rule shell(touch)"]).says("2"),
    ])
    .await;
    let params = managed(&json!({"deny": ["Shell(touch *)"]}));
    let mut session = daemon.client().create(params).await;
    session.approve_all().await;
    let lifted =
        json!({"rules": {"approved": [{"kind": "shell", "argument": "touch"}], "denied": []}});
    session.call("session.permissions.configure", lifted).await;
    session
        .call("session.permissions.resetSessionApprovals", json!({}))
        .await;
    session.approve_all().await;
    session.ask("one").await;
    let own = session
        .refused("session.shell.exec", json!({"command": "touch made"}))
        .await;
    assert!(own.message.contains("touch"), "{own}");
    let id = session.id.clone();
    daemon.restart().await;
    // Somebody else, without any policy.
    let mut session = daemon.client().resume(&id, json!({})).await;
    session.approve_all().await;
    session.ask("two").await;
    assert!(!daemon.file("made").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn what_managed_settings_keep_from_being_read_is_not_found_either() {
    let search = call(
        "a",
        "grep",
        json!({"pattern": "word", "output_mode": "content"}),
    );
    let list = call("b", "glob", json!({"pattern": "**/*"}));
    let show = call(
        "c",
        "bash",
        json!({"command": "cat secret/key", "description": "d"}),
    );
    let look = call("d", "bash", json!({"command": "ls", "description": "d"}));
    let daemon = Daemon::playing([
        Turn::user("go").calls([search, list]),
        Turn::any().calls([show]),
        Turn::any().calls([look]),
        Turn::any().says("ok"),
    ])
    .await;
    std::fs::create_dir(daemon.file("secret")).unwrap();
    std::fs::write(daemon.file("secret/key"), "the word").unwrap();
    std::fs::write(daemon.file("open"), "a word").unwrap();
    let mut params = managed(&json!({"deny": ["Read(secret/**)"]}));
    params["requestPermission"] = true.into();
    let mut session = daemon.client().create(params).await;
    session.approve_all().await;
    let attached = json!([{"type": "file", "path": daemon.file("secret/key")}]);
    let refused = session
        .refused(
            "session.send",
            json!({"prompt": "read", "attachments": attached}),
        )
        .await;
    assert!(refused.message.contains("secret/key"), "{refused}");
    session.send("go").await;
    // Nobody knows what a command reads, so a person has to look at it.
    let (request, asked) = session.permission().await;
    assert_eq!(asked["fullCommandText"], "ls");
    assert_eq!(asked["managedApprovalRequired"], true);
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    session.next("session.idle").await;
    let requests = daemon.script().requests();
    let results = requests[1].last_results();
    assert!(
        results
            .iter()
            .all(|text| text.contains("open") && !text.contains("key")),
        "{results:?}"
    );
    let shown = &requests[2].last_results()[0];
    assert!(shown.contains("denied"), "{shown}");
    daemon.finish().await;
}

#[tokio::test]
async fn managed_settings_can_forbid_to_approve_everything() {
    let daemon = Daemon::playing([]).await;
    let params = managed(&json!({"disableBypassPermissionsMode": "disable"}));
    let session = daemon.client().create(params).await;
    let everything = json!({"enabled": true});
    let error = session
        .refused("session.permissions.setApproveAll", everything)
        .await;
    assert!(error.message.contains("managed settings"), "{error}");
    daemon.finish().await;
}

#[tokio::test]
async fn what_would_narrow_a_session_and_cannot_be_done_is_refused_by_name() {
    let daemon = Daemon::playing([]).await;
    for (params, named) in [
        (
            managed(&json!({"deny": ["Read(**/.env)"]})),
            "managedSettings.permissions.deny[0]",
        ),
        (managed(&json!({"limitTo": ["Domain(a.b)"]})), "limitTo"),
        (managed(&json!({"forbid": ["Shell"]})), "forbid"),
        (json!({"managedSettings": {"model": "x"}}), "model"),
        (
            json!({"enableManagedSettings": true}),
            "enableManagedSettings",
        ),
        (json!({"sandboxConfig": {"enabled": true}}), "sandboxConfig"),
        (json!({"allowedModels": ["x"]}), "allowedModels"),
    ] {
        let why = refused(&daemon, params).await;
        assert!(why.contains(named), "{why}");
    }
    daemon
        .client()
        .create(json!({"sandboxConfig": {"enabled": false}}))
        .await;
    daemon.finish().await;
}
