//! Permission questions: every answer, who may answer, what is remembered.

use loopd_tests::{Daemon, Session, Turn, call};
use serde_json::{Value, json};

/// A turn in which the model runs a command, and the one in which it gets the result.
fn runs(prompt: &str, command: &str, result: &str) -> [Turn; 2] {
    [
        Turn::user(prompt).calls([call(prompt, "bash", json!({"command": command}))]),
        Turn::results([result]).says("done"),
    ]
}

async fn asking(daemon: &Daemon) -> Session {
    daemon
        .client()
        .create(json!({"requestPermission": true}))
        .await
}

fn completed(session: &Session) -> Vec<Value> {
    let events = session.events();
    let completed = events
        .iter()
        .filter(|event| event["type"] == "permission.completed");
    completed
        .map(|event| event["data"]["result"].clone())
        .collect()
}

#[tokio::test]
async fn a_question_says_exactly_what_the_tool_wants_to_do() {
    let daemon = Daemon::playing(runs("go", "echo hi", "hi")).await;
    let mut session = asking(&daemon).await;
    session.send("go").await;
    let asked = session.next("permission.requested").await["data"].clone();
    let request = json!({
        "kind": "shell", "toolCallId": "go", "fullCommandText": "echo hi",
        "intention": "Run a shell command",
        "commands": [{"identifier": "echo", "readOnly": false}],
        "possiblePaths": [], "possibleUrls": [],
        "hasWriteFileRedirection": false, "canOfferSessionApproval": true,
        "resolvedWorkingDirectory": asked["permissionRequest"]["resolvedWorkingDirectory"],
    });
    assert_eq!(asked["permissionRequest"], request);
    assert_eq!(asked["promptRequest"]["kind"], "commands");
    let pending = session
        .call("session.permissions.pendingRequests", json!({}))
        .await;
    let expected =
        json!({"items": [{"requestId": asked["requestId"], "request": asked["promptRequest"]}]});
    assert_eq!(pending, expected);
    let shown = json!({"message": "May it?"});
    session
        .call("session.permissions.notifyPromptShown", shown)
        .await;
    let id = asked["requestId"].as_str().unwrap();
    assert!(session.decide(id, json!({"kind": "approve-once"})).await);
    session.next("session.idle").await;
    assert_eq!(completed(&session), [json!({"kind": "approved"})]);
    daemon.finish().await;
}

#[tokio::test]
async fn approved_once_is_asked_again() {
    let turns = [runs("one", "echo hi", "hi"), runs("two", "echo hi", "hi")].concat();
    let daemon = Daemon::playing(turns).await;
    let mut session = asking(&daemon).await;
    for prompt in ["one", "two"] {
        session.send(prompt).await;
        let (request, _) = session.permission().await;
        assert!(
            session
                .decide(&request, json!({"kind": "approve-once"}))
                .await
        );
        session.next("session.idle").await;
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_rule_that_denies_while_a_person_is_asked_wins_over_the_yes() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("go", "bash", json!({"command": "touch made"}))]),
        Turn::results(["denied by the rule"]).says("ok"),
    ])
    .await;
    let mut session = asking(&daemon).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    let denied = json!([{"kind": "shell", "argument": "touch"}]);
    let policy = json!({"rules": {"approved": [], "denied": denied}});
    session.call("session.permissions.configure", policy).await;
    let yes = json!({"kind": "approve-once"});
    assert!(session.decide(&request, yes).await);
    session.next("session.idle").await;
    assert!(!daemon.work().join("made").exists(), "the command ran");
    assert_eq!(completed(&session)[0]["kind"], "denied-by-rules");
    daemon.finish().await;
}

#[tokio::test]
async fn a_tool_that_is_excluded_while_a_person_is_asked_does_not_run() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("go", "bash", json!({"command": "touch made"}))]),
        Turn::results(["bash"]).says("ok"),
    ])
    .await;
    let mut session = asking(&daemon).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    let without = json!({"excludedTools": ["bash"]});
    session.call("session.options.update", without).await;
    let yes = json!({"kind": "approve-once"});
    assert!(session.decide(&request, yes).await);
    session.next("session.idle").await;
    assert!(!daemon.work().join("made").exists(), "the command ran");
    daemon.finish().await;
}

#[tokio::test]
async fn approved_for_the_session_holds_for_the_same_command_and_survives_a_resume() {
    let turns = [
        runs("one", "echo hi", "hi"),
        runs("two", "echo there", "there"),
        runs("three", "echo again", "again"),
        runs("four", "date +%Y", "20"),
        runs("five", "echo once more", "once more"),
    ];
    let daemon = Daemon::playing(turns.concat()).await;
    let mut session = asking(&daemon).await;
    session.send("one").await;
    let (request, _) = session.permission().await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-for-session"}))
            .await
    );
    session.next("session.idle").await;
    session.ask("two").await;
    assert_eq!(
        session.count("permission.requested"),
        1,
        "the same command needs no question"
    );
    session.destroy().await;
    let offer = json!({"requestPermission": true});
    let mut session = session.client().resume(&session.id, offer).await;
    session.ask("three").await;
    session.send("four").await;
    let (request, _) = session.permission().await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    session
        .call("session.permissions.resetSessionApprovals", json!({}))
        .await;
    session.send("five").await;
    let (request, _) = session.permission().await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn approved_for_a_location_holds_there_in_other_sessions() {
    let turns = [runs("one", "echo hi", "hi"), runs("two", "echo hi", "hi")].concat();
    let daemon = Daemon::playing(turns).await;
    let mut session = asking(&daemon).await;
    let place = json!({"workingDirectory": daemon.work()});
    let location = session
        .call("session.permissions.locations.resolve", place.clone())
        .await;
    assert_eq!(location["locationType"], "dir");
    session.send("one").await;
    let (request, _) = session.permission().await;
    let approval = json!({"kind": "commands", "commandIdentifiers": ["echo"]});
    let decision = json!({"kind": "approve-for-location", "approval": approval,
        "locationKey": location["locationKey"]});
    assert!(session.decide(&request, decision).await);
    session.next("session.idle").await;
    assert_eq!(completed(&session)[0]["kind"], "approved-for-location");
    let mut other = asking(&daemon).await;
    let applied = other
        .call("session.permissions.locations.apply", place)
        .await;
    assert_eq!(applied["appliedRuleCount"], 1);
    other.ask("two").await;
    assert_eq!(other.count("permission.requested"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn approved_permanently_holds_in_every_later_session() {
    let turns = [runs("one", "echo hi", "hi"), runs("two", "echo hi", "hi")].concat();
    let daemon = Daemon::playing(turns).await;
    let mut session = asking(&daemon).await;
    session.send("one").await;
    let (request, _) = session.permission().await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-permanently"}))
            .await
    );
    session.next("session.idle").await;
    let mut later = asking(&daemon).await;
    later.ask("two").await;
    assert_eq!(
        later.count("permission.requested"),
        0,
        "permanently means not asked again"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_rejection_ends_the_loop_and_the_model_hears_of_it_next_time() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("no", "bash", json!({"command": "echo never"})),
            call("yes", "bash", json!({"command": "echo allowed"})),
        ]),
        Turn::user("why").says("because"),
    ])
    .await;
    let mut session = asking(&daemon).await;
    session.send("go").await;
    let mut requests = [session.permission().await, session.permission().await];
    requests.sort_by_key(|(_, request)| request["toolCallId"].to_string());
    let [(no, _), (yes, _)] = requests;
    let reject = json!({"kind": "reject", "feedback": "use the other file"});
    assert!(session.decide(&no, reject).await);
    assert!(session.decide(&yes, json!({"kind": "approve-once"})).await);
    session.next("session.idle").await;
    assert_eq!(
        session.count("assistant.turn_start"),
        1,
        "the model does not get to argue"
    );
    session.ask("why").await;
    let request = daemon.script().last_request();
    let results: Vec<&str> = request
        .messages()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert!(
        results[0].contains("rejected") && results[0].contains("use the other file"),
        "{results:?}"
    );
    assert!(results[1].contains("allowed"), "{results:?}");
    daemon.finish().await;
}

#[tokio::test]
async fn an_absent_user_is_a_denial_that_the_model_works_with() {
    let daemon = Daemon::playing(runs("go", "echo hi", "could not request permission")).await;
    let mut session = asking(&daemon).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    assert!(
        session
            .decide(&request, json!({"kind": "user-not-available"}))
            .await
    );
    session.next("session.idle").await;
    let kind = "denied-no-approval-rule-and-could-not-request-from-user";
    assert_eq!(completed(&session), [json!({"kind": kind})]);
    daemon.finish().await;
}

#[tokio::test]
async fn without_anybody_who_answers_nothing_is_asked() {
    let turns = [
        runs("one", "echo hi", "could not request permission"),
        runs("two", "echo hi", "hi"),
    ];
    let daemon = Daemon::playing(turns.concat()).await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    assert_eq!(session.count("permission.requested"), 0);
    session
        .call("session.permissions.setRequired", json!({"required": true}))
        .await;
    session.send("two").await;
    let (request, _) = session.permission().await;
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_deny_rule_wins_over_every_allowance() {
    let daemon = Daemon::playing([
        Turn::user("go").calls([
            call("a", "bash", json!({"command": "date +%Y"})),
            call("b", "bash", json!({"command": "echo hi && date +%Y"})),
            call("c", "bash", json!({"command": "echo fine"})),
        ]),
        Turn::results([
            "denied by the rule shell(date)",
            "denied by the rule shell(date)",
            "fine",
        ])
        .says("ok"),
    ])
    .await;
    let mut session = asking(&daemon).await;
    let rules = json!({
        "approved": [{"kind": "shell", "argument": null}],
        "denied": [{"kind": "shell", "argument": "date"}],
    });
    let policy = json!({"rules": rules, "approveAllToolPermissionRequests": true});
    session.call("session.permissions.configure", policy).await;
    session.ask("go").await;
    assert_eq!(session.count("permission.requested"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn of_two_answers_the_first_counts() {
    let daemon = Daemon::playing(runs("go", "echo hi", "hi")).await;
    let mut one = asking(&daemon).await;
    let offer = json!({"requestPermission": true});
    let mut two = daemon.client().resume(&one.id, offer).await;
    one.send("go").await;
    let (request, _) = one.permission().await;
    assert_eq!(two.permission().await.0, request);
    assert!(one.decide(&request, json!({"kind": "approve-once"})).await);
    assert!(!two.decide(&request, json!({"kind": "reject"})).await);
    for session in [&mut one, &mut two] {
        session.next("session.idle").await;
        assert_eq!(completed(session), [json!({"kind": "approved"})]);
    }
    let unknown = one
        .decide("no-such-request", json!({"kind": "approve-once"}))
        .await;
    assert!(!unknown);
    daemon.finish().await;
}

#[tokio::test]
async fn who_comes_late_sees_the_open_question_and_can_answer_it() {
    let daemon = Daemon::playing(runs("go", "echo hi", "hi")).await;
    let mut one = asking(&daemon).await;
    one.send("go").await;
    let (request, _) = one.permission().await;
    one.client().vanish().await;
    let offer = json!({"requestPermission": true, "continuePendingWork": true});
    let mut two = daemon.client().resume(&one.id, offer).await;
    let (seen, _) = two.permission().await;
    assert_eq!(seen, request, "the question keeps its id");
    assert!(two.decide(&request, json!({"kind": "approve-once"})).await);
    two.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_open_question_outlives_the_daemon() {
    let daemon = Daemon::playing(runs("go", "echo hi", "hi")).await;
    let mut one = asking(&daemon).await;
    one.send("go").await;
    let (request, _) = one.permission().await;
    one.client().vanish().await;
    // As far as the session can tell, this is a new process.
    daemon.live(&one.id).stop().await;
    let offer = json!({"requestPermission": true, "continuePendingWork": true});
    let mut two = daemon.client().resume(&one.id, offer).await;
    assert_eq!(two.permission().await.0, request);
    assert!(two.decide(&request, json!({"kind": "approve-once"})).await);
    two.next("session.idle").await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_launch_may_allow_everything() {
    let script = loopd_tests::Script::play(runs("go", "echo hi", "hi")).await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = asking(&daemon).await;
    session.ask("go").await;
    assert_eq!(session.count("permission.requested"), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn a_file_is_written_only_after_it_was_allowed() {
    let script =
        loopd_tests::Script::answering(|request| match request.last_results().as_slice() {
            [] => {
                let text = request.last_user_text();
                let (_, path) = text.split_once("write ").unwrap();
                let arguments = json!({"path": path, "file_text": "content\n"});
                Turn::any().calls([call("w", "create", arguments)])
            }
            _ => Turn::any().says("done"),
        })
        .await;
    let daemon = Daemon::with(script).await;
    let file = daemon.file("new.txt");
    let mut session = asking(&daemon).await;
    session.send(&format!("write {}", file.display())).await;
    let (request, asked) = session.permission().await;
    assert_eq!(
        (&asked["kind"], &asked["fileName"]),
        (&json!("write"), &json!(file))
    );
    assert!(
        asked["diff"].as_str().unwrap().contains("+content"),
        "{asked}"
    );
    assert!(!file.exists(), "nothing is written before the answer");
    assert!(
        session
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "content\n");
    daemon.finish().await;
}
