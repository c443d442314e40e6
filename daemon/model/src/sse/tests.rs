//! The event decoder, cut at every byte.

use super::*;

fn event(data: &str) -> Event {
    Event {
        name: None,
        data: data.to_owned(),
    }
}

fn decode(pieces: &[&[u8]]) -> Vec<Event> {
    let mut decoder = Decoder::default();
    let mut events: Vec<Event> = pieces
        .iter()
        .flat_map(|piece| decoder.push(piece))
        .collect();
    events.extend(decoder.finish());
    events
}

#[test]
fn lines_fields_and_comments_are_read() {
    let named = Event {
        name: Some("error".to_owned()),
        data: "{}".to_owned(),
    };
    let cases: [(&str, Vec<Event>); 12] = [
        ("data: a\n\ndata: b\n\n", vec![event("a"), event("b")]),
        (
            "data: a\r\n\r\ndata: b\r\n\r\n",
            vec![event("a"), event("b")],
        ),
        ("data: a\r\rdata: b\r\r", vec![event("a"), event("b")]),
        ("data: one\ndata: two\n\n", vec![event("one\ntwo")]),
        (": keep alive\n\ndata:tight\n\n", vec![event("tight")]),
        ("event: error\ndata: {}\n\n", vec![named]),
        ("id: 1\nretry: 5\nunknown: x\ndata: a\n\n", vec![event("a")]),
        ("event: named but empty\n\ndata: a\n\n", vec![event("a")]),
        ("data\n\n", vec![event("")]),
        ("data:  two blanks\n\n", vec![event(" two blanks")]),
        (
            "\u{feff}data: after a mark\n\n",
            vec![event("after a mark")],
        ),
        ("", vec![]),
    ];
    for (stream, expected) in cases {
        assert_eq!(decode(&[stream.as_bytes()]), expected, "{stream:?}");
    }
}

#[test]
fn a_last_event_without_a_blank_line_counts() {
    assert_eq!(
        decode(&[b"data: a\n\ndata: [DONE]"]),
        [event("a"), event("[DONE]")]
    );
    assert_eq!(
        decode(&[b"data: a\n\ndata: [DONE]\n"]),
        [event("a"), event("[DONE]")]
    );
}

#[test]
fn any_split_gives_the_same_events() {
    let stream = ": ping\r\nevent: x\r\ndata: {\"grüße\":\"日本 🎉\"}\r\n\r\ndata: b\ndata: c\n\ndata: d\r\rdata: e\n\n".as_bytes();
    let whole = decode(&[stream]);
    assert_eq!(whole.len(), 4);
    for first in 0..=stream.len() {
        for second in first..=stream.len() {
            let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
            assert_eq!(decode(&pieces), whole, "cut at {first} and {second}");
        }
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(decode(&bytes), whole);
}

#[test]
fn invalid_bytes_become_replacement_characters() {
    assert_eq!(decode(&[b"data: a\xffb\n\n"]), [event("a\u{fffd}b")]);
}

#[test]
fn a_long_line_in_many_pieces_is_scanned_once() {
    let mut decoder = Decoder::default();
    decoder.push(b"data: ");
    for _ in 0..10_000 {
        assert!(decoder.push(&[b'x'; 100]).is_empty());
        assert_eq!(decoder.scanned, decoder.pending.len());
    }
    let events = decoder.push(b"\n\n");
    assert_eq!(
        events.first().map(|event| event.data.len()),
        Some(1_000_000)
    );
    assert!(decoder.pending.is_empty());
}
