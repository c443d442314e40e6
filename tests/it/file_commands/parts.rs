//! What the text of a command runs and includes.

use loopd_tests::{Daemon, Turn};
use serde_json::{Value, json};

use super::{EXECUTE, INVOKE, command, listed, session, session_of, trust, write};

const BRANCH: &str = "---\ndescription: Tells the branch\n---\nThe branch is !`echo trunk`.\n";

#[tokio::test]
async fn the_words_after_the_name_are_said_to_the_model_and_people_see_the_command() {
    let daemon = Daemon::playing([Turn::user("Say hello to Ann Lee.").says("Hello!")]).await;
    command(&daemon, "greet", "Say hello to $ARGUMENTS.");
    let mut session = session(&daemon).await;
    let greet = json!({"commandName": "greet", "args": "Ann Lee"});
    assert_eq!(session.call(EXECUTE, greet).await, json!({}));
    let said = session.next("user.message").await;
    assert_eq!(said["data"]["content"], "/greet Ann Lee");
    session.next("session.idle").await;
    let invoked = session
        .call(INVOKE, json!({"name": "/Greet", "input": "Bo"}))
        .await;
    assert_eq!(
        invoked,
        json!({"kind": "agent-prompt", "prompt": "Say hello to Bo.", "displayPrompt": "/greet Bo"})
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_file_outside_of_the_workspace_is_asked_about_like_a_read() {
    let daemon = Daemon::playing([]).await;
    let outside = tempfile::TempDir::new().unwrap();
    let file = outside.path().join("secret.txt");
    write(&file, "the word is swordfish\n");
    command(&daemon, "read", &format!("Read @{} now.", file.display()));
    write(&daemon.work().join("own.txt"), "mine\n");
    command(&daemon, "own", "Read @own.txt now.");
    let mut session = session(&daemon).await;
    // This covers reads within the workspace, and no others.
    let reads = json!({"approveAllReadPermissionRequests": true});
    session.call("session.permissions.configure", reads).await;
    let own = session.call(INVOKE, json!({"name": "own"})).await;
    let prompt = own["prompt"].as_str().unwrap();
    assert!(prompt.starts_with("Read @own.txt now."), "{prompt}");
    assert!(
        prompt.contains("<file path=\"own.txt\">\n1. mine"),
        "{prompt}"
    );
    assert_eq!(session.count("permission.requested"), 0);

    for (decision, is_read) in [("reject", false), ("approve-once", true)] {
        let running = session.start(INVOKE, json!({"name": "read"}));
        let (request, asked) = session.permission().await;
        assert_eq!(asked["kind"], "read");
        assert!(
            asked["path"].as_str().unwrap().ends_with("secret.txt"),
            "{asked}"
        );
        assert_eq!(asked["toolCallId"], Value::Null);
        assert!(session.decide(&request, json!({"kind": decision})).await);
        session.next("permission.completed").await;
        match running.await {
            Ok(invoked) => {
                assert!(is_read && invoked["prompt"].as_str().unwrap().contains("swordfish"));
            }
            Err(error) => {
                assert!(
                    !is_read && error.message.contains("/read did not run"),
                    "{error}"
                );
            }
        }
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_of_the_text_is_asked_about_and_recorded() {
    let daemon = Daemon::playing([]).await;
    command(&daemon, "branch", BRANCH);
    trust(&daemon).await;
    let mut session = session(&daemon).await;
    let running = session.start(INVOKE, json!({"name": "branch"}));
    let (request, asked) = session.permission().await;
    assert_eq!(
        (&asked["kind"], &asked["fullCommandText"]),
        (&json!("shell"), &json!("echo trunk"))
    );
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    assert_eq!(running.await.unwrap()["prompt"], "The branch is trunk.");
    let ran = session.next("tool.execution_complete").await;
    assert_eq!(ran["data"]["isUserRequested"], true);

    let running = session.start(INVOKE, json!({"name": "branch"}));
    let (request, _) = session.permission().await;
    session.decide(&request, json!({"kind": "reject"})).await;
    let refused = running.await.unwrap_err();
    assert!(refused.message.contains("`echo trunk`"), "{refused}");
    assert_eq!(session.count("tool.execution_start"), 1);
    daemon.finish().await;
}

/// What a person types is data of the embedded command. Where it cannot be, nothing runs.
#[tokio::test]
async fn what_is_typed_after_a_command_is_no_code_of_its_parts() {
    let daemon = Daemon::playing([]).await;
    command(&daemon, "say", "It is !`echo $ARGUMENTS; echo \"$1\"`.");
    command(&daemon, "shell", "It is !`sh -c \"echo $ARGUMENTS\"`.");
    trust(&daemon).await;
    let session = session(&daemon).await;
    session.approve_all().await;
    let typed = "; touch pwned $(touch pwned) `touch pwned` > pwned";
    let params = json!({"name": "shell", "input": typed});
    let refused = session.refused(INVOKE, params).await;
    assert!(
        refused.message.contains("sh -c") && refused.message.contains("may evaluate its place"),
        "{refused:?}"
    );
    let params = json!({"name": "say", "input": typed});
    let said = session.call(INVOKE, params).await["prompt"].clone();
    assert!(!daemon.file("pwned").exists());
    assert_eq!(said, format!("It is {typed}\n{typed}."));
    daemon.finish().await;
}

#[tokio::test]
async fn rules_and_hooks_that_deny_a_call_deny_a_part() {
    let daemon = Daemon::playing([]).await;
    command(&daemon, "branch", BRANCH);
    trust(&daemon).await;
    let session = session(&daemon).await;
    let rules =
        json!({"rules": {"approved": [], "denied": [{"kind": "shell", "argument": "echo"}]}});
    session.call("session.permissions.configure", rules).await;
    let denied = session.refused(INVOKE, json!({"name": "branch"})).await;
    assert!(denied.message.contains("/branch did not run"), "{denied}");

    let hook = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"exit 2","matcher":"bash"}]}}"#;
    write(&daemon.work().join(".github/hooks/guard.json"), hook);
    trust(&daemon).await;
    let guarded = session_of(&daemon.client(), json!({})).await;
    let denied = guarded.refused(INVOKE, json!({"name": "branch"})).await;
    assert!(denied.message.contains("hook"), "{denied}");
    assert_eq!(guarded.count("permission.requested"), 0);
    assert_eq!(guarded.count("tool.execution_start"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_project_is_trusted_with_exactly_the_command_that_was_shown() {
    let daemon = Daemon::playing([]).await;
    command(&daemon, "branch", BRANCH);
    command(&daemon, "plain", "Only words.");
    let session = session(&daemon).await;
    session.approve_all().await;
    let branch = listed(&session, "branch").await.unwrap();
    let why = branch["unavailable"].as_str().unwrap();
    assert!(
        why.contains("loop trust") && why.contains("not trusted"),
        "{why}"
    );
    assert_eq!(
        listed(&session, "plain").await.unwrap()["unavailable"],
        Value::Null
    );
    let refused = session.refused(INVOKE, json!({"name": "branch"})).await;
    assert!(refused.message.contains("loop trust"), "{refused}");

    let shown = trust(&daemon).await;
    let items = shown["items"].as_array().unwrap();
    let [item] = items.as_slice() else {
        panic!("{shown}");
    };
    assert_eq!(
        (&item["kind"], &item["name"]),
        (&json!("command"), &json!("/branch"))
    );
    assert_eq!(item["detail"], "runs echo trunk");
    let ran = session.call(INVOKE, json!({"name": "branch"})).await;
    assert_eq!(ran["prompt"], "The branch is trunk.");

    command(&daemon, "branch", &BRANCH.replace("trunk", "other"));
    let changed = session.refused(INVOKE, json!({"name": "branch"})).await;
    assert!(changed.message.contains("changed since"), "{changed}");
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_of_the_user_needs_no_trust_but_a_permission() {
    let daemon = Daemon::playing([]).await;
    write(&daemon.home().join("commands/branch.md"), BRANCH);
    let mut session = session(&daemon).await;
    assert_eq!(listed(&session, "branch").await.unwrap()["source"], "user");
    let running = session.start(INVOKE, json!({"name": "branch"}));
    let (request, _) = session.permission().await;
    session
        .decide(&request, json!({"kind": "approve-once"}))
        .await;
    assert_eq!(running.await.unwrap()["prompt"], "The branch is trunk.");
    daemon.finish().await;
}

#[tokio::test]
async fn a_question_ends_with_its_caller_and_with_the_daemon() {
    let mut daemon = Daemon::playing([]).await;
    command(&daemon, "branch", BRANCH);
    trust(&daemon).await;
    let mut asking = session(&daemon).await;
    let params = json!({"sessionId": asking.id, "name": "branch"});
    let pending = asking.client().pending(INVOKE, params);
    let (request, _) = asking.permission().await;
    drop(pending);
    let closed = asking.next("permission.completed").await;
    assert_eq!(closed["data"]["requestId"], request);
    assert_eq!(closed["data"]["result"]["kind"], "cancelled");

    let params = json!({"sessionId": asking.id, "name": "branch"});
    let pending = asking.client().pending(INVOKE, params);
    let (request, _) = asking.permission().await;
    let state = daemon.state(&asking.id).await;
    assert_eq!(state.questions.parts().count(), 1);
    daemon.restart().await;
    drop(pending);
    let resumed = daemon
        .client()
        .resume(&asking.id, json!({"requestPermission": true}))
        .await;
    let state = daemon.state(&resumed.id).await;
    assert!(state.questions.is_empty());
    assert!(
        !resumed
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    daemon.finish().await;
}

/// Nobody could type into such a command, or come back for the rest of what it prints.
#[tokio::test]
async fn a_command_of_the_text_that_does_not_end_is_stopped_and_nothing_is_said() {
    let daemon = Daemon::playing([]).await;
    command(&daemon, "wait", "It is !`cat`.");
    trust(&daemon).await;
    let session = session(&daemon).await;
    session.approve_all().await;
    let refused = session.refused(INVOKE, json!({"name": "wait"})).await;
    assert!(
        refused.message.contains("waited for input") && refused.message.contains("was stopped"),
        "{refused:?}"
    );
    let tasks = session.call("session.tasks.list", json!({})).await;
    assert_eq!(tasks["tasks"], json!([]));
    assert_eq!(session.count("user.message"), 0);
    daemon.finish().await;
}
