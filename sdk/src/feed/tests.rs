use loopd_proto::event;

use super::*;

fn line(id: &str, kind: &str, data: &str, ephemeral: bool) -> Event {
    let mark = if ephemeral { ",\"ephemeral\":true" } else { "" };
    let text = format!(
        r#"{{"type":"{kind}","data":{data},"id":"{id}","timestamp":"2026-01-01T00:00:00.000Z","parentId":null{mark}}}"#
    );
    event::read(&text).unwrap()
}

fn fact(id: &str) -> Event {
    line(id, "assistant.turn_end", r#"{"turnId":"0"}"#, false)
}

fn delta(id: &str) -> Event {
    let data = r#"{"messageId":"m","deltaContent":"x"}"#;
    line(id, "assistant.message_delta", data, true)
}

fn ids(events: &mut Events) -> Vec<String> {
    let waiting = events.drain();
    waiting
        .iter()
        .map(|event| event.head.id.to_string())
        .collect()
}

#[test]
fn events_seen_before_a_reconnect_are_not_delivered_again() {
    let feed = Feed::new();
    let mut events = feed.stream();
    feed.receive(fact("1"));
    feed.receive(fact("2"));
    assert_eq!(feed.hold(), None);
    feed.receive(fact("4"));
    feed.catch_up(&[fact("1"), fact("2"), fact("3")]);
    feed.release("c".to_owned());
    feed.receive(fact("5"));
    assert_eq!(ids(&mut events), ["1", "2", "3", "4", "5"]);
    assert_eq!(feed.hold(), Some("c".to_owned()));
}

#[test]
fn deltas_of_messages_read_from_the_log_are_dropped() {
    let feed = Feed::new();
    let mut events = feed.stream();
    feed.hold();
    for event in [delta("d1"), fact("1"), delta("d2")] {
        assert!(feed.receive(event).is_empty());
    }
    feed.catch_up(&[fact("1")]);
    let dispatched = feed.release("c".to_owned());
    assert_eq!(dispatched.len(), 3);
    assert_eq!(ids(&mut events), ["1", "d2"]);
}

#[test]
fn a_cursor_refresh_forgets_only_events_from_before_it_began() {
    let feed = Feed::new();
    let mut events = feed.stream();
    feed.receive(fact("1"));
    assert!(feed.begin_refresh(Refresh::Now));
    assert!(!feed.begin_refresh(Refresh::Now));
    feed.receive(fact("2"));
    feed.end_refresh(Some("after 1".to_owned()));
    assert_eq!(feed.hold(), Some("after 1".to_owned()));
    feed.catch_up(&[fact("2"), fact("3")]);
    feed.release("after 3".to_owned());
    assert_eq!(ids(&mut events), ["1", "2", "3"]);
}

#[test]
fn a_repeated_question_is_dispatched_again_but_delivered_once() {
    let feed = Feed::new();
    let mut events = feed.stream();
    let data = r#"{"requestId":"r","sessionId":"s","toolCallId":"t","toolName":"n"}"#;
    let asked = line("q", "external_tool.requested", data, false);
    feed.receive(asked.clone());
    assert!(feed.begin_refresh(Refresh::Now));
    feed.end_refresh(Some("after q".to_owned()));
    feed.hold();
    feed.receive(asked);
    assert_eq!(feed.release("c".to_owned()).len(), 1);
    assert_eq!(ids(&mut events), ["q"]);
}

#[test]
fn a_missed_idle_event_is_delivered_once() {
    let feed = Feed::new();
    let mut events = feed.stream();
    feed.mark_busy(feed.idle_count());
    feed.publish_idle(Timestamp(0));
    feed.publish_idle(Timestamp(0));
    let delivered = events.drain();
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered.front().unwrap().body.kind(), "session.idle");
}

#[test]
fn only_the_first_stream_begins_with_the_backlog() {
    let feed = Feed::new();
    feed.receive(fact("1"));
    let mut first = feed.stream();
    let mut second = feed.stream();
    feed.receive(fact("2"));
    assert_eq!(ids(&mut first), ["1", "2"]);
    assert_eq!(ids(&mut second), ["2"]);
}
