//! What the stages of a tool call cost, and what may happen outside before which commit.

use loopd_tests::{Commits, Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

const INTENT: &str = "loopd.usage assistant.message tool.execution_start";
const RESULT: &str = "tool.execution_complete assistant.turn_end assistant.turn_start";

fn lookup() -> Value {
    json!({"name": "lookup", "description": "Looks a word up", "skipPermission": true})
}

/// A session whose model makes one call.
async fn start(commits: &Commits, tool: &str, arguments: Value) -> (Daemon, Session) {
    let turns = [
        Turn::user("go").calls([call("c", tool, arguments)]),
        Turn::any().says("done"),
    ];
    let script = Script::play(turns).await;
    let builder = Daemon::builder().script(script).commits(commits);
    let daemon = builder.start().await;
    let offer = json!({"requestPermission": true, "requestUserInput": true, "tools": [lookup()]});
    let session = daemon.client().create(offer).await;
    (daemon, session)
}

/// Waits for the end of the work, and says what each commit stored from the model's wish to its last
/// word.
async fn commits_of_the_call(
    daemon: Daemon,
    mut session: Session,
    commits: &Commits,
) -> Vec<String> {
    session.next("session.idle").await;
    daemon.finish().await;
    let kinds = commits.kinds().into_iter();
    kinds
        .map(|kinds| kinds.join(" "))
        .skip_while(|kinds| !kinds.contains("tool.execution_start"))
        .take_while(|kinds| !kinds.contains("loopd.loop_ended"))
        .collect()
}

#[tokio::test]
async fn a_tool_that_only_reads_costs_two_commits() {
    let commits = Commits::default();
    let (daemon, session) = start(&commits, "view", json!({"path": "."})).await;
    session.approve_all().await;
    session.send("go").await;
    let made = commits_of_the_call(daemon, session, &commits).await;
    assert_eq!(made, [INTENT, RESULT]);
}

#[tokio::test]
async fn a_command_that_is_allowed_beforehand_costs_two_commits() {
    let commits = Commits::default();
    let (daemon, session) = start(&commits, "bash", json!({"command": "echo hi"})).await;
    session.approve_all().await;
    session.send("go").await;
    let made = commits_of_the_call(daemon, session, &commits).await;
    assert_eq!(made, [INTENT, RESULT]);
}

#[tokio::test]
async fn a_tool_of_a_client_costs_two_commits() {
    let commits = Commits::default();
    let (daemon, mut session) = start(&commits, "lookup", json!({"word": "loop"})).await;
    session.send("go").await;
    let (request, _) = session.tool_call().await;
    session.give(&request, json!({"result": "a curve"})).await;
    let made = commits_of_the_call(daemon, session, &commits).await;
    let asked = format!("{INTENT} external_tool.requested");
    assert_eq!(made, [asked.as_str(), RESULT]);
}

#[tokio::test]
async fn a_question_to_the_user_costs_two_commits() {
    let commits = Commits::default();
    let (daemon, session) = start(&commits, "ask_user", json!({"question": "Which?"})).await;
    session.send("go").await;
    let request = session.client().request("userInput.request").await;
    request.answer(json!({"answer": "left", "wasFreeform": true}));
    let made = commits_of_the_call(daemon, session, &commits).await;
    let asked = format!("{INTENT} loopd.asked");
    assert_eq!(made, [asked, format!("loopd.answered {RESULT}")]);
}

#[tokio::test]
async fn a_permission_that_is_asked_for_costs_one_commit_more() {
    let commits = Commits::default();
    let (daemon, mut session) = start(&commits, "bash", json!({"command": "echo hi"})).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    let once = json!({"kind": "approve-once"});
    assert!(session.decide(&request, once).await);
    let made = commits_of_the_call(daemon, session, &commits).await;
    let asked = format!("{INTENT} permission.requested");
    assert_eq!(made, [asked.as_str(), "permission.completed", RESULT]);
}

#[tokio::test]
async fn the_permission_of_a_clients_tool_and_its_call_share_a_commit() {
    let commits = Commits::default();
    let mut asking = lookup();
    asking["skipPermission"] = false.into();
    asking["name"] = "ask_first".into();
    let turns = [
        Turn::user("go").calls([call("c", "ask_first", json!({}))]),
        Turn::results(["a curve"]).says("done"),
    ];
    let builder = Daemon::builder().script(Script::play(turns).await);
    let daemon = builder.commits(&commits).start().await;
    let offer = json!({"requestPermission": true, "tools": [asking]});
    let mut session = daemon.client().create(offer).await;
    session.send("go").await;
    let (request, _) = session.permission().await;
    let once = json!({"kind": "approve-once"});
    assert!(session.decide(&request, once).await);
    let (request, _) = session.tool_call().await;
    session.give(&request, json!({"result": "a curve"})).await;
    let made = commits_of_the_call(daemon, session, &commits).await;
    let asked = format!("{INTENT} permission.requested");
    let handed_over = "permission.completed external_tool.requested";
    assert_eq!(made, [asked.as_str(), handed_over, RESULT]);
}

/// The file that a call writes is not there while the intent is not committed, and is there after.
#[tokio::test]
async fn a_tool_runs_only_after_its_intent_is_committed() {
    for (tool, arguments) in [
        ("create", json!({"path": "made", "file_text": "text"})),
        ("bash", json!({"command": "touch made"})),
    ] {
        let commits = Commits::default();
        let (daemon, mut session) = start(&commits, tool, arguments).await;
        session.approve_all().await;
        let mut commit = commits.hold("tool.execution_start");
        session.send("go").await;
        commit.reached().await;
        // The session waits for the disk; whatever it started by now has had its chance.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!daemon.file("made").exists(), "{tool} did not wait");
        assert_eq!(session.count("tool.execution_start"), 0);
        commit.let_through();
        session.next("session.idle").await;
        assert!(daemon.file("made").exists(), "{tool} did not run");
        daemon.finish().await;
    }
}

/// While the intent is not on disk, the call does not run. It runs once, after a later attempt.
#[tokio::test]
async fn a_tool_whose_intent_could_not_be_committed_waits_for_the_disk() {
    let commits = Commits::default();
    let arguments = json!({"command": "echo once >> made"});
    let script = Script::play([
        Turn::user("go").calls([call("c", "bash", arguments)]),
        Turn::any().says("done"),
    ])
    .await;
    let builder = Daemon::builder().script(script).commits(&commits);
    let daemon = builder.start().await;
    let mut session = daemon.client().create(json!({})).await;
    session.approve_all().await;
    let mut commit = commits.hold("tool.execution_start");
    session.send("go").await;
    commit.reached().await;
    commits.fill_disk();
    commit.fail();
    commits.failed(1).await;
    assert!(!daemon.file("made").exists());
    assert_eq!(session.count("tool.execution_start"), 0);
    commits.free_disk();
    session.next("session.idle").await;
    let made = std::fs::read_to_string(daemon.file("made")).unwrap();
    assert_eq!(made, "once\n");
    daemon.finish().await;
}

#[tokio::test]
async fn a_tool_that_left_while_a_person_thought_ends_its_call_with_a_clear_text() {
    let mut asking = lookup();
    asking["skipPermission"] = false.into();
    let gone =
        "The tool 'lookup' is no longer available: who provided it has left. Go on without it.";
    let daemon = Daemon::playing([
        Turn::user("go").calls([call("c", "lookup", json!({}))]),
        Turn::results([gone]).says("ok"),
    ])
    .await;
    let provider = daemon.client().create(json!({"tools": [asking]})).await;
    let answers = json!({"requestPermission": true});
    let mut person = daemon.client().resume(&provider.id, answers).await;
    person.send("go").await;
    let (request, _) = person.permission().await;
    provider.client().vanish().await;
    let once = json!({"kind": "approve-once"});
    assert!(person.decide(&request, once).await);
    person.next("session.idle").await;
    assert_eq!(person.count("external_tool.requested"), 0);
    daemon.finish().await;
}
