//! A session as messages with parts: `loopd.messages`, and the events that keep a list up to date.

use loopd_proto::messages::{Changed, Message, MessageRole, Messages, PartContent, WorkStatus};
use loopd_proto::params::messages::MessagePage;
use loopd_tests::{Daemon, Gate, Script, Session, Turn, call};
use serde_json::{Value, json};

async fn page(session: &Session, params: Value) -> MessagePage {
    serde_json::from_value(session.call("loopd.messages", params).await).unwrap()
}

/// All messages, listed in pages of this size.
async fn listed(session: &Session, order: &str, limit: usize) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::new();
    let mut params = json!({"order": order, "limit": limit});
    loop {
        let page = page(session, params.clone()).await;
        assert!(
            page.messages.len() <= limit,
            "{} of {limit}",
            page.messages.len()
        );
        match order {
            "oldest" => all.extend(page.messages),
            _ => drop(all.splice(0..0, page.messages)),
        }
        match page.next {
            Some(next) => params["cursor"] = next.into(),
            None => return all,
        }
    }
}

/// What a client has that folded every event since it opened the session.
fn followed(session: &Session) -> Messages {
    let mut messages = Messages::new(None);
    for event in session.events() {
        messages.apply(&event);
    }
    messages
}

/// The texts of a message, transient ones in brackets.
fn texts(message: &Message) -> Vec<String> {
    let texts = message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text { text } if part.transient => Some(format!("({text})")),
        PartContent::Text { text } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn every_page_in_both_orders_is_what_a_client_has_that_followed_all_events() {
    let look = call(
        "look",
        "bash",
        json!({"command": "echo found", "description": "look"}),
    );
    let helper = call(
        "help",
        "task",
        json!({"prompt": "find it", "name": "helper", "description": "a part"}),
    );
    let script = Script::voices([
        (
            "one",
            vec![
                Turn::user("one").says_and_calls("I look", [look]),
                Turn::results(["found"]).calls([helper]),
                Turn::results(["it is there"]).says("done"),
                Turn::user("two").says("second"),
            ],
        ),
        ("find it", vec![Turn::user("find it").says("it is there")]),
    ])
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let mut session = daemon.client().create(json!({"streaming": true})).await;
    session.ask("one").await;
    session.ask("two").await;
    let followed = followed(&session).stored();
    let roles: Vec<MessageRole> = followed.iter().map(|message| message.role).collect();
    let (user, assistant) = (MessageRole::User, MessageRole::Assistant);
    assert_eq!(
        roles,
        [user, assistant, assistant, assistant, user, assistant]
    );
    for order in ["oldest", "newest"] {
        for limit in 1..=7 {
            let listed = listed(&session, order, limit).await;
            assert_eq!(listed, followed, "{order} first, {limit} at a time");
        }
    }
    let tool = followed[1]
        .parts
        .iter()
        .find_map(|part| match &part.content {
            PartContent::Tool(tool) => Some(tool),
            _ => None,
        });
    let tool = tool.unwrap();
    assert_eq!((&*tool.tool, tool.status), ("bash", WorkStatus::Completed));
    assert!(tool.started_at.is_some() && tool.ended_at.is_some());
    assert!(tool.output.as_ref().unwrap().contains("found"));
    let subtask = followed[2]
        .parts
        .iter()
        .find_map(|part| match &part.content {
            PartContent::Subtask(subtask) => Some(subtask),
            _ => None,
        });
    let subtask = subtask.unwrap();
    assert_eq!(
        (subtask.agent_id.as_deref(), subtask.status),
        (Some("helper"), WorkStatus::Completed)
    );
    // The session of the sub-agent has its own messages, and says whose they are.
    let child = subtask.session_id.as_ref().unwrap();
    let child = daemon.client().resume(child, json!({})).await;
    let of_child = page(&child, json!({})).await;
    assert_eq!(of_child.agent_id.unwrap().as_str(), "helper");
    let said: Vec<Vec<String>> = of_child.messages.iter().map(texts).collect();
    assert_eq!(said, [["find it"], ["it is there"]]);
    daemon.finish().await;
}

#[tokio::test]
async fn parts_grow_while_they_stream_and_a_late_client_has_the_same_in_the_end() {
    let gate = Gate::new();
    let daemon =
        Daemon::playing([Turn::user("go").streams(["one ", "two "]).paused_by(&gate)]).await;
    let mut session = daemon.client().create(json!({"streaming": true})).await;
    session.send("go").await;
    session
        .next_where("the second piece", |event| {
            event["type"] == "assistant.message_delta" && event["data"]["deltaContent"] == "two "
        })
        .await;
    let midway = followed(&session);
    let open = midway.iter().next_back().unwrap();
    assert_eq!(texts(open), ["(one two )"]);
    assert_eq!(open.completed_at, None);
    let streamed = open
        .parts
        .iter()
        .find(|part| part.transient)
        .unwrap()
        .id
        .clone();
    // A list has what the log has. Who lists now follows from there.
    let late = page(&session, json!({})).await;
    let mut late_client = Messages::listed(None, late.messages);
    let listed_open = late_client.iter().next_back().unwrap();
    assert_eq!((&listed_open.id, texts(listed_open)), (&open.id, vec![]));
    gate.open();
    session.next("session.idle").await;
    let params = json!({"cursor": late.event_cursor, "max": 1000});
    let rest = session.call("session.eventLog.read", params).await;
    for event in rest["events"].as_array().unwrap() {
        late_client.apply(event);
    }
    let all = page(&session, json!({})).await.messages;
    assert_eq!(late_client.stored(), all);
    assert_eq!(followed(&session).stored(), all);
    let done = all.last().unwrap();
    assert_eq!(texts(done), ["one two "]);
    let whole = done.parts.iter().find(|part| part.id == streamed);
    assert!(
        whole.is_some_and(|part| !part.transient),
        "the part keeps its id"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_rewind_takes_messages_away_and_its_undo_wants_them_listed_again() {
    let daemon = Daemon::playing([
        Turn::user("one").says("first"),
        Turn::user("two").says("second"),
        Turn::user("three").says("third"),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("one").await;
    session.ask("two").await;
    let before = page(&session, json!({"limit": 2})).await;
    let cursor = before.next.unwrap();
    // The id of a user message is what a rewind takes.
    let second = before.messages[0].id.clone();
    let params = json!({"eventId": second, "mode": "conversation"});
    session.call("session.history.rewind", params).await;
    session.next("session.snapshot_rewind").await;
    let said = |messages: &[Message]| -> Vec<String> { messages.iter().flat_map(texts).collect() };
    let left = page(&session, json!({})).await.messages;
    assert_eq!(said(&left), ["one", "first"]);
    assert_eq!(followed(&session).stored(), left);
    let refused = session
        .refused(
            "loopd.messages",
            json!({"cursor": cursor, "order": "newest"}),
        )
        .await;
    assert!(
        refused.message.contains("list again"),
        "{}",
        refused.message
    );
    session.ask("three").await;
    session.call("loopd.rewind", json!({})).await;
    let undone = session.next("session.snapshot_rewind").await;
    let mut follower = Messages::new(None);
    let events = session.events().into_iter();
    let told: Vec<Changed> = events
        .take_while(|event| event["id"] != undone["id"])
        .map(|event| follower.apply(&event))
        .collect();
    let third = follower.iter().find(|message| texts(message) == ["three"]);
    assert_eq!(undone["data"]["upToEventId"], third.unwrap().id, "{told:?}");
    assert_eq!(follower.apply(&undone), Changed::ListAgain);
    assert!(
        undone["data"]["eventsRestored"].as_u64().unwrap() > 0,
        "{undone}"
    );
    let again = page(&session, json!({})).await.messages;
    assert_eq!(said(&again), ["one", "first", "two", "second"]);
    daemon.finish().await;
}
