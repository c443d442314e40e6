//! A question exists once it is committed: before that nobody is shown it, whoever joins. If the
//! commit fails, it is shown when a later attempt works, and never if the store refuses it.
//!
//! The questions are those of a sub-agent, because its session waits for the disk while the session
//! above goes on and takes in new clients. The commit of the asking event is held by the test.

use loopd_tests::{Commits, Daemon, HeldCommit, Script, Session, Turn, call, within};
use serde_json::{Value, json};

/// A question that a sub-agent can have.
#[derive(Clone, Copy)]
enum Question {
    Permission,
    ClientTool,
    AskUser,
}

impl Question {
    /// The stored event that asks.
    fn stored(self) -> &'static str {
        match self {
            Self::Permission => "permission.requested",
            Self::ClientTool => "external_tool.requested",
            Self::AskUser => "loopd.asked",
        }
    }

    fn call(self) -> loopd_tests::script::Call {
        match self {
            Self::Permission => call("c", "bash", json!({"command": "echo hi"})),
            Self::ClientTool => call("c", "lookup", json!({"word": "loop"})),
            Self::AskUser => call("c", "ask_user", json!({"question": "Which one?"})),
        }
    }
}

/// What a client offers that can answer all of them.
fn answers_all() -> Value {
    json!({
        "requestPermission": true, "requestUserInput": true, "continuePendingWork": true,
        "tools": [{"name": "lookup", "description": "Looks a word up", "skipPermission": true,
                   "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}],
    })
}

/// A session whose sub-agent waits for the commit of its question.
struct Waiting {
    daemon: Daemon,
    session: Session,
    commit: HeldCommit,
}

/// A main agent that starts a sub-agent, which has the question. Only a fork may ask people.
async fn script(question: Question) -> Script {
    let mut start = json!({"description": "a part of it", "prompt": "find it", "name": "finder"});
    if !matches!(question, Question::AskUser) {
        start["agent_type"] = "general-purpose".into();
    }
    Script::answering(move |request| {
        let is_agent = request.last_user_text().contains("find it");
        let results = request.last_results().len();
        let told = request.last_user_text().contains("system_notification");
        match (is_agent, results) {
            (true, 0) => Turn::any().calls([question.call()]),
            (true, _) => Turn::any().says("found"),
            (false, 0) if !told => Turn::any().calls([call("t", "task", start.clone())]),
            (false, _) => Turn::any().says("done"),
        }
    })
    .await
}

async fn waiting(question: Question) -> Waiting {
    let commits = Commits::default();
    let mut builder = Daemon::builder().script(script(question).await);
    if matches!(question, Question::AskUser) {
        builder = builder.env("LOOPD_AGENTS_FORK", "1");
    }
    let daemon = builder.commits(&commits).start().await;
    let session = daemon.client().create(answers_all()).await;
    let mut commit = commits.hold(question.stored());
    session.send("begin").await;
    commit.reached().await;
    Waiting {
        daemon,
        session,
        commit,
    }
}

/// Lets the store refuse the commit for good, and waits until the sub-agent's session has gone back.
async fn refuse(daemon: &Daemon, commit: HeldCommit) {
    let records = daemon.app.services.store.list().await.unwrap();
    let agent = records.into_iter().find(|record| record.agent.is_some());
    let live = daemon.live(agent.unwrap().id.as_str());
    // It is answered after the commit, because the session looks at nothing before that.
    let look = tokio::spawn(async move { live.state(|state| state.questions.clone()).await });
    tokio::task::yield_now().await;
    commit.refuse();
    let looked = within("the sub-agent's session to go back", look).await;
    assert_eq!(looked.unwrap().unwrap().iter().count(), 0);
}

/// Joins the session at the top, and waits until everything that a joiner is shown has come.
async fn joiner(daemon: &Daemon, session: &Session) -> Session {
    let joined = daemon.client().resume(&session.id, answers_all()).await;
    // The session takes this request after it has taken in the joiner.
    pending(&joined).await;
    joined
}

/// The permissions that the session lists as open.
async fn pending(session: &Session) -> Vec<Value> {
    let list = session.call("session.permissions.pendingRequests", json!({}));
    list.await["items"].as_array().unwrap().clone()
}

/// Everything by which a client can have learned of a question.
async fn learned(session: &Session) -> Vec<String> {
    let mut learned: Vec<String> = session
        .events()
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .filter(|kind| kind.ends_with(".requested"))
        .collect();
    learned.extend(session.client().open_requests());
    let listed = pending(session).await.into_iter();
    learned.extend(listed.map(|_| "listed as pending".to_owned()));
    learned
}

async fn is_not_shown_before_its_commit(question: Question) -> (Waiting, Session) {
    let waiting = waiting(question).await;
    let joined = joiner(&waiting.daemon, &waiting.session).await;
    for (who, client) in [("the joiner", &joined), ("the first", &waiting.session)] {
        let learned = learned(client).await;
        assert!(
            learned.is_empty(),
            "{who} learned of a question that is not committed: {learned:?}"
        );
    }
    (waiting, joined)
}

async fn is_never_shown_if_its_commit_is_refused(question: Question) {
    let Waiting {
        daemon,
        session,
        commit,
    } = waiting(question).await;
    let early = joiner(&daemon, &session).await;
    refuse(&daemon, commit).await;
    let late = joiner(&daemon, &session).await;
    for (who, client) in [
        ("who joined before", &early),
        ("who joined after", &late),
        ("the first", &session),
    ] {
        let learned = learned(client).await;
        assert!(
            learned.is_empty(),
            "{who} learned of a question that was never committed: {learned:?}"
        );
    }
    session.call("session.abort", json!({})).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_sub_agents_permission_is_shown_to_a_joiner_after_its_commit() {
    let (waiting, mut joined) = is_not_shown_before_its_commit(Question::Permission).await;
    let Waiting {
        daemon,
        mut session,
        commit,
    } = waiting;
    commit.let_through();
    let (request, _) = session.permission().await;
    assert_eq!(joined.permission().await.0, request);
    assert_eq!(pending(&joined).await[0]["requestId"], request.as_str());
    let late = joiner(&daemon, &session).await;
    assert_eq!(late.count("permission.requested"), 1, "a later joiner");
    assert!(
        joined
            .decide(&request, json!({"kind": "approve-once"}))
            .await
    );
    session.next("session.idle").await;
    for client in [&session, &joined, &late] {
        assert_eq!(client.count("permission.requested"), 1, "each sees it once");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_sub_agents_client_tool_call_is_shown_to_a_joiner_after_its_commit() {
    let (waiting, mut joined) = is_not_shown_before_its_commit(Question::ClientTool).await;
    let Waiting {
        daemon,
        mut session,
        commit,
    } = waiting;
    commit.let_through();
    let (request, _) = session.tool_call().await;
    assert_eq!(joined.tool_call().await.0, request);
    let late = joiner(&daemon, &session).await;
    assert_eq!(late.count("external_tool.requested"), 1, "a later joiner");
    assert!(joined.give(&request, json!({"result": "a curve"})).await);
    session.next("session.idle").await;
    for client in [&session, &joined, &late] {
        let seen = client.count("external_tool.requested");
        assert_eq!(seen, 1, "each sees it once");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn a_sub_agents_question_to_people_is_asked_after_its_commit() {
    let (waiting, joined) = is_not_shown_before_its_commit(Question::AskUser).await;
    let Waiting {
        daemon,
        mut session,
        commit,
    } = waiting;
    commit.let_through();
    let asked = session.client().request("userInput.request").await;
    asked.answer(json!({"answer": "the left one", "wasFreeform": true}));
    session.next("system.notification").await;
    session.next("session.idle").await;
    assert!(joined.client().open_requests().is_empty());
    daemon.finish().await;
}

#[tokio::test]
async fn a_sub_agents_permission_whose_commit_is_refused_is_never_shown() {
    is_never_shown_if_its_commit_is_refused(Question::Permission).await;
}

#[tokio::test]
async fn a_sub_agents_client_tool_call_whose_commit_is_refused_is_never_shown() {
    is_never_shown_if_its_commit_is_refused(Question::ClientTool).await;
}

#[tokio::test]
async fn a_sub_agents_question_to_people_whose_commit_is_refused_is_never_asked() {
    is_never_shown_if_its_commit_is_refused(Question::AskUser).await;
}
