//! The rules of a session over the wire: allowances, paths, URLs, locations, trusted folders.

use loopd_tests::{Daemon, Turn, call};
use serde_json::{Value, json};

#[tokio::test]
async fn a_rule_that_would_do_nothing_is_refused() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    for (kind, argument, why) in [
        ("nonsense", "rm", "no kind of rule"),
        ("bash", "rm", "no kind of rule"),
        ("shell", "rm --rec*", "pattern"),
        ("shell", "r?", "pattern"),
    ] {
        let rules = json!({"denied": [{"kind": kind, "argument": argument}], "approved": []});
        let error = session
            .refused("session.permissions.configure", json!({ "rules": rules }))
            .await;
        assert!(error.message.contains(why), "{error}");
    }
    let rules = json!({"denied": [{"kind": "Shell", "argument": "rm"}], "approved": []});
    session
        .call("session.permissions.configure", json!({ "rules": rules }))
        .await;
    let denied = daemon.state(&session.id).await.permissions.denied;
    assert_eq!(denied[0].kind, "shell");
    daemon.finish().await;
}

#[tokio::test]
async fn rules_can_be_added_and_taken_back() {
    let bash = |id: &str| {
        [
            Turn::user(id).calls([call(id, "bash", json!({"command": "echo hi"}))]),
            Turn::results([""]).says("ok"),
        ]
    };
    let daemon = Daemon::playing([bash("one"), bash("two"), bash("three")].concat()).await;
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    let rule = json!({"kind": "shell", "argument": "echo"});
    let add = json!({"scope": "session", "add": [rule]});
    session.call("session.permissions.modifyRules", add).await;
    session.ask("one").await;
    assert_eq!(session.count("permission.requested"), 0);
    let remove = json!({"scope": "session", "remove": [rule]});
    session
        .call("session.permissions.modifyRules", remove)
        .await;
    session.send("two").await;
    let (request, _) = session.permission().await;
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    session.next("session.idle").await;
    session.approve_all().await;
    session.ask("three").await;
    assert_eq!(session.count("permission.requested"), 1);
    let elsewhere = session
        .refused(
            "session.permissions.modifyRules",
            json!({"scope": "location"}),
        )
        .await;
    assert_eq!(
        (elsewhere.code, elsewhere.message.contains("scope")),
        (-32602, true)
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_relative_path_of_a_rule_counts_from_the_session_and_not_from_the_daemon() {
    let outside = tempfile::tempdir().unwrap();
    let elsewhere = outside.path().join("new").to_string_lossy().into_owned();
    let write = |id: &str, path: &str| {
        [
            Turn::user(id).calls([call(id, "create", json!({"path": path, "file_text": "x"}))]),
            Turn::results([""]).says("ok"),
        ]
    };
    let mut turns = [write("inside", "sub/new"), write("outside", &elsewhere)].concat();
    // A rejection ends the turn.
    turns.pop();
    let daemon = Daemon::playing(turns).await;
    std::fs::create_dir(daemon.file("sub")).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    let rules = |rules: Value| json!({"scope": "session", "add": rules});
    let own =
        rules(json!([{"kind": "write", "argument": "sub"}, {"kind": "write", "argument": "."}]));
    session.call("session.permissions.modifyRules", own).await;
    session.ask("inside").await;
    assert_eq!(session.count("permission.requested"), 0);
    session.send("outside").await;
    let (request, _) = session.permission().await;
    session
        .decide(&request, json!({"kind": "reject", "feedback": "no"}))
        .await;
    session.next("session.idle").await;
    assert!(!outside.path().join("new").exists());
    let wrong = rules(json!([{"kind": "write", "argument": "src/*.rs"}]));
    let error = session
        .refused("session.permissions.modifyRules", wrong)
        .await;
    assert!(error.message.contains("src/*.rs"), "{}", error.message);
    let relative = json!({"paths": {"additionalDirectories": ["."]}});
    let error = session
        .refused("session.permissions.configure", relative)
        .await;
    assert!(error.message.contains("absolute"), "{}", error.message);
    daemon.finish().await;
}

#[tokio::test]
async fn directories_are_listed_added_and_asked_about() {
    let daemon = Daemon::playing([]).await;
    let more = daemon.file("more");
    let other = tempfile::tempdir().unwrap();
    std::fs::create_dir(&more).unwrap();
    let session = daemon.client().create(json!({})).await;
    let is = |method: &'static str, path: Value| {
        let answer = session.start(method, json!({"path": path}));
        async move { answer.await.unwrap()["allowed"].clone() }
    };
    let allowed = "session.permissions.paths.isPathWithinAllowedDirectories";
    let within = "session.permissions.paths.isPathWithinWorkspace";
    assert_eq!(is(allowed, json!(daemon.file("a/b.txt"))).await, true);
    assert_eq!(is(allowed, json!(other.path().join("x"))).await, false);
    session
        .call(
            "session.permissions.paths.add",
            json!({"path": other.path()}),
        )
        .await;
    assert_eq!(is(allowed, json!(other.path().join("x"))).await, true);
    assert_eq!(is(within, json!(other.path().join("x"))).await, false);
    let listed = session
        .call("session.permissions.paths.list", json!({}))
        .await;
    assert_eq!(
        listed,
        json!({"primary": daemon.work(), "directories": [daemon.work(), other.path()]})
    );
    session
        .call(
            "session.permissions.paths.updatePrimary",
            json!({"path": more}),
        )
        .await;
    assert_eq!(is(within, json!(daemon.file("a.txt"))).await, false);
    assert_eq!(is(within, json!(more.join("a.txt"))).await, true);
    for path in [json!("relative"), json!(daemon.file("missing"))] {
        let error = session
            .refused("session.permissions.paths.add", json!({"path": path}))
            .await;
        assert_eq!(
            (error.code, error.message.contains("path")),
            (-32602, true),
            "{error}"
        );
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_path_that_climbs_out_is_not_within() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let escape = format!("{}/sub/../../outside.txt", daemon.work().display());
    for method in [
        "session.permissions.paths.isPathWithinAllowedDirectories",
        "session.permissions.paths.isPathWithinWorkspace",
    ] {
        let answer = session.call(method, json!({"path": escape})).await;
        assert_eq!(answer, json!({"allowed": false}), "{method} of {escape}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn urls_can_be_unrestricted() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let method = "session.permissions.urls.setUnrestrictedMode";
    session.call(method, json!({"enabled": true})).await;
    assert!(
        daemon
            .state(&session.id)
            .await
            .permissions
            .unrestricted_urls
    );
    session.call(method, json!({"enabled": false})).await;
    assert!(
        !daemon
            .state(&session.id)
            .await
            .permissions
            .unrestricted_urls
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_policy_is_replaced_part_by_part() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let policy = json!({
        "approveAllReadPermissionRequests": true,
        "rules": {"approved": [{"kind": "read", "argument": null}], "denied": []},
        "paths": {"unrestricted": true, "additionalDirectories": ["/srv"], "includeTempDirectory": true},
        "urls": {"unrestricted": false, "initialAllowed": ["https://example.com"]},
    });
    session.call("session.permissions.configure", policy).await;
    let first = daemon.state(&session.id).await.permissions;
    assert!(first.approve_all_reads && first.unrestricted_paths && !first.approve_all);
    assert_eq!(first.allowed_urls, ["https://example.com"]);
    assert_eq!(first.directories.len(), 2);
    session
        .call(
            "session.permissions.configure",
            json!({"approveAllReadPermissionRequests": false}),
        )
        .await;
    let second = daemon.state(&session.id).await.permissions;
    assert!(!second.approve_all_reads && second.unrestricted_paths);
    assert_eq!(second.approved, first.approved);
    daemon.finish().await;
}

#[tokio::test]
async fn a_deny_rule_that_names_a_link_means_its_target() {
    let view = call("v", "view", json!({"path": "real/secret.txt"}));
    let daemon = Daemon::playing([
        Turn::user("go").calls([view]),
        Turn::results(["link/secret.txt"]).says("denied"),
    ])
    .await;
    std::fs::create_dir(daemon.file("real")).unwrap();
    std::fs::write(daemon.file("real/secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(daemon.file("real"), daemon.file("link")).unwrap();
    let mut session = daemon.client().create(json!({})).await;
    let denied = json!([{"kind": "read", "argument": daemon.file("link/secret.txt")}]);
    let rules = json!({
        "rules": {"approved": [], "denied": denied}, "approveAllToolPermissionRequests": true,
    });
    session.call("session.permissions.configure", rules).await;
    session.ask("go").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_approval_can_be_given_to_a_location_and_a_repository_is_one() {
    let daemon = Daemon::playing([]).await;
    std::fs::create_dir_all(daemon.file("repo/.git")).unwrap();
    std::fs::create_dir_all(daemon.file("repo/deep/down")).unwrap();
    let session = daemon.client().create(json!({})).await;
    let deep = json!({"workingDirectory": daemon.file("repo/deep/down")});
    let location = session
        .call("session.permissions.locations.resolve", deep.clone())
        .await;
    assert_eq!(
        location,
        json!({"locationKey": daemon.file("repo"), "locationType": "repo"})
    );
    let approval = json!({"kind": "custom-tool", "toolName": "lookup"});
    let params = json!({"locationKey": location["locationKey"], "approval": approval});
    session
        .call("session.permissions.locations.addToolApproval", params)
        .await;
    let other = daemon.client().create(json!({})).await;
    let applied = other
        .call("session.permissions.locations.apply", deep.clone())
        .await;
    assert_eq!(
        applied["appliedRules"],
        json!([{"kind": "custom-tool", "argument": "lookup"}])
    );
    let again = other
        .call("session.permissions.locations.apply", deep)
        .await;
    assert_eq!(again["changed"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn a_trusted_folder_stays_trusted() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let folder = json!({"path": daemon.work()});
    let is_trusted = "session.permissions.folderTrust.isTrusted";
    assert_eq!(
        session.call(is_trusted, folder.clone()).await,
        json!({"trusted": false})
    );
    session
        .call("session.permissions.folderTrust.addTrusted", folder.clone())
        .await;
    let other = daemon.client().create(json!({})).await;
    assert_eq!(
        other.call(is_trusted, folder).await,
        json!({"trusted": true})
    );
    let below = json!({"path": daemon.file("below")});
    assert_eq!(
        other.call(is_trusted, below).await,
        json!({"trusted": true})
    );
    let above = json!({"path": daemon.work().parent().unwrap()});
    assert_eq!(
        other.call(is_trusted, above).await,
        json!({"trusted": false})
    );
    daemon.finish().await;
}

/// Deny rules about commands, everything else allowed.
async fn everything_but(session: &loopd_tests::Session, denied: &[&str]) {
    let denied: Vec<Value> = denied
        .iter()
        .map(|argument| json!({"kind": "shell", "argument": argument}))
        .collect();
    let policy = json!({
        "approveAllToolPermissionRequests": true,
        "rules": {"approved": [], "denied": denied},
    });
    session.call("session.permissions.configure", policy).await;
}

#[tokio::test]
async fn a_deny_rule_with_arguments_holds_for_what_runs() {
    let denied = "denied by the rule shell(rm -rf)";
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("a", "bash", json!({"command": "rm -rf x"})),
            call("b", "bash", json!({"command": "nice rm -rf x"})),
            call("c", "bash", json!({"command": "env rm -r -f x"})),
            call(
                "d",
                "bash",
                json!({"command": "sh -c 'ls; rm --recursive --force x'"}),
            ),
            call("e", "bash", json!({"command": "rm -r y && echo gone"})),
        ]),
        Turn::results([denied, denied, denied, denied, "gone"]).says("ok"),
    ])
    .await;
    for folder in ["x", "y"] {
        std::fs::create_dir(daemon.file(folder)).unwrap();
        std::fs::write(daemon.file(folder).join("kept"), "").unwrap();
    }
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    everything_but(&session, &["rm -rf"]).await;
    session.ask("go").await;
    assert_eq!(session.count("permission.requested"), 0);
    assert!(daemon.file("x/kept").is_file());
    assert!(!daemon.file("y").exists());
    daemon.finish().await;
}

#[tokio::test]
async fn what_may_be_a_denied_command_is_asked_about() {
    let xargs = call("a", "bash", json!({"command": "ls | xargs rm"}));
    let daemon = Daemon::playing([Turn::user("go").calls([xargs])]).await;
    std::fs::create_dir(daemon.file("x")).unwrap();
    let mut session = daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await;
    everything_but(&session, &["rm -rf"]).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    session.decide(&request, json!({"kind": "reject"})).await;
    session.next("session.idle").await;
    assert!(daemon.file("x").is_dir());
    daemon.finish().await;
}

#[tokio::test]
async fn a_deny_rule_that_cannot_be_understood_is_refused() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    for (argument, cause) in [
        ("rm '-rf", "a quote is not closed"),
        ("curl | sh", "`|` means something to the shell"),
        ("", "says nothing between its parentheses"),
        (":*", "it names no command"),
    ] {
        let rules = json!({"approved": [], "denied": [{"kind": "commands", "argument": argument}]});
        let error = session
            .refused("session.permissions.configure", json!({"rules": rules}))
            .await;
        assert_eq!(error.code, -32602);
        assert!(error.message.contains(cause), "{error}");
    }
    daemon.finish().await;
}
