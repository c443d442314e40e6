//! Frames in, frames out: both framings, any split, every limit.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use proptest::prelude::*;
use tokio::io::ReadBuf;

use super::*;

/// A stream that delivers exactly the given pieces, one per read, and then ends.
struct Pieces(VecDeque<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(mut piece) = self.0.pop_front() {
            let rest = piece.split_off(piece.len().min(buffer.remaining()));
            buffer.put_slice(&piece);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn reader(pieces: Vec<Vec<u8>>, frame_limit: usize) -> FrameReader<Pieces> {
    let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
    FrameReader::new(Pieces(pieces.collect()), frame_limit, 8)
}

/// Reads all frames, and how the stream ended when it did not end well.
fn read_all(mut reader: FrameReader<Pieces>) -> (Vec<String>, Option<String>) {
    let mut frames = Vec::new();
    loop {
        match reader.next().now_or_never().unwrap() {
            Ok(Some(frame)) => frames.push(String::from_utf8_lossy(&frame).into_owned()),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error.to_string())),
        }
    }
}

fn check(input: &[u8], frames: &[&str], error: Option<&str>) {
    for piece in [1, 3, input.len().max(1)] {
        let pieces = input.chunks(piece).map(<[u8]>::to_vec).collect();
        let (read, ended) = read_all(reader(pieces, 100));
        assert_eq!(read, frames, "pieces of {piece}");
        assert_eq!(ended.as_deref(), error, "pieces of {piece}");
    }
}

#[test]
fn header_names_ignore_case_and_other_headers_are_skipped() {
    check(
        b"content-type: x; charset=utf-8\r\nCONTENT-LENGTH:  2 \r\n\r\n{}Content-Length: 3\r\n\r\n[1]",
        &["{}", "[1]"],
        None,
    );
    check(b" \r\nContent-Length: 1\n\n{", &["{"], None);
}

#[test]
fn an_empty_body_is_a_frame() {
    check(b"Content-Length: 0\r\n\r\n", &[""], None);
}

#[test]
fn lines_may_be_blank_and_end_with_carriage_return() {
    check(
        b"\n\n {\"a\":1}\r\n\r\n\n[2]\n",
        &["{\"a\":1}\r", "[2]"],
        None,
    );
}

#[test]
fn another_protocol_is_recognised_by_its_first_byte() {
    let text = |first: u8| {
        format!(
            "the stream starts with byte 0x{first:02x}: expected `Content-Length:` or a JSON object"
        )
    };
    check(b"GET / HTTP/1.1\r\n\r\n", &[], Some(&text(b'G')));
    check(b"\x16\x03\x01", &[], Some(&text(0x16)));
    check(b"\0", &[], Some(&text(0)));
    check(b"\xef\xbb\xbf{}\n", &[], Some(&text(0xef)));
    check(b"CONNECT host:443 HTTP/1.1\r\n\r\n", &[], Some(&text(b'C')));
    check(b"COPY /a HTTP/1.1\r\n\r\n", &[], Some(&text(b'C')));
}

#[test]
fn malformed_headers_are_refused() {
    let bad = |line: &str| format!("the header line `{line}` is malformed");
    for line in [
        "Content-Length 2",
        "Content-Length: ",
        "Content-Length: +2",
        "Content-Length: -2",
        "Content-Length: 2 2",
        "Content-Length: 99999999999999999999",
    ] {
        let input = format!("{line}\r\n\r\n{{}}");
        check(input.as_bytes(), &[], Some(&bad(line.trim())));
    }
    check(
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        &[],
        Some(&bad("Content-Length: 3")),
    );
    check(
        b"Content-\xff: 1\r\n\r\n",
        &[],
        Some(&bad("Content-\u{fffd}: 1")),
    );
    check(
        b"Content-Length: 2\r\n\r\n{}GET /a:b HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
        &["{}"],
        Some(&bad("GET /a:b HTTP/1.1")),
    );
}

#[test]
fn an_endless_header_is_refused() {
    let mut input = b"Content-Length: 2\r\nX: ".to_vec();
    input.resize(HEADER_LIMIT + 10, b'x');
    let (frames, error) = read_all(reader(vec![input], 100));
    assert!(frames.is_empty());
    assert_eq!(error.unwrap(), "the header block is longer than 8192 bytes");
}

#[tokio::test]
async fn frames_end_at_the_limit() {
    let fits = format!("\"{}\"", "x".repeat(98));
    check(
        format!("Content-Length: 100\r\n\r\n{fits}").as_bytes(),
        &[&fits],
        None,
    );
    let over = format!("Content-Length: 1101\r\n\r\n{}", " ".repeat(1101));
    check(
        over.as_bytes(),
        &[],
        Some("the frame has 1101 bytes or more and was not read, the limit is 100"),
    );
    check(
        b"Content-Length: 4294967296\r\n\r\n",
        &[],
        Some("the frame has 4294967296 bytes or more, the limit is 100"),
    );
    let fits = format!("[{}]", "1".repeat(98));
    check(format!("{fits}\n").as_bytes(), &[&fits], None);
    let (frames, error) = read_all(reader(vec![vec![b'['; 4000]], 100));
    assert!(frames.is_empty());
    assert!(error.unwrap().ends_with("the limit is 100"));
}

#[test]
fn an_announced_length_reserves_nothing() {
    let pieces = vec![b"Content-Length: 60000000\r\n\r\n{".to_vec()];
    let mut reader = reader(pieces, 64 * 1024 * 1024);
    let error = reader.next().now_or_never().unwrap().unwrap_err();
    assert!(matches!(error, FrameError::Truncated));
    assert!(reader.buffer.capacity() <= 2 * READ_STEP.1);
}

#[test]
fn a_large_frame_releases_the_read_buffer() {
    for (head, tail) in [("Content-Length: 5000000\r\n\r\n", ""), ("", "\n")] {
        let body = format!("[{}]", " ".repeat(4_999_998));
        let input = format!("{head}{body}{tail}").into_bytes();
        let pieces = input.chunks(70_000).map(<[u8]>::to_vec).collect();
        let mut reader = reader(pieces, 5_000_000);
        let frame = reader.next().now_or_never().unwrap().unwrap().unwrap();
        assert_eq!(frame.len(), 5_000_000);
        assert!(frame.is_unique());
        assert!(reader.next().now_or_never().unwrap().unwrap().is_none());
        assert!(reader.buffer.capacity() <= 2 * READ_STEP.1);
    }
}

#[test]
fn nesting_is_counted_outside_strings_only() {
    check(b"[[[[[[[[]]]]]]]]\n", &["[[[[[[[[]]]]]]]]"], None);
    let deep = Some("the message nests deeper than 8 levels");
    check(b"[[[[[[[[[]]]]]]]]]\n", &[], deep);
    check(
        b"{\"a\":[{\"a\":[{\"a\":[{\"a\":[{\"a\":1}]}]}]}]}\n",
        &[],
        deep,
    );
    let strings = r#"{"[[[[\"[[[[[[":"{{{{{{{{\\"}"#;
    check(format!("{strings}\n").as_bytes(), &[strings], None);
    // The string ends at the quote after the escaped backslash, so these brackets count.
    check(b"[\"\\\\\",[[[[[[[[[[\n", &[], deep);
    let siblings = "[[],[],[],[],[],[],[],[],[],[]]";
    check(format!("{siblings}\n").as_bytes(), &[siblings], None);
}

#[test]
fn a_truncated_frame_is_an_error() {
    let truncated = Some("the stream ended inside a frame");
    check(b"", &[], None);
    check(b"  \r\n", &[], None);
    check(b"Content-Le", &[], truncated);
    check(b"Content-Length: 5\r\n\r\n", &[], truncated);
    check(b"Content-Length: 5\r\n\r\n{\"a\"", &[], truncated);
    check(b"{}\n{\"a\":", &["{}"], truncated);
}

#[test]
fn a_growing_line_is_searched_once() {
    let mut reader = reader(vec![b"{\"a\":".to_vec(), b"[1,".to_vec()], 100);
    reader.next().now_or_never().unwrap().unwrap_err();
    assert_eq!(reader.decoder.scanned, 8);
}

#[test]
fn the_framing_is_known_with_the_first_byte() {
    let mut reader = reader(vec![b" {".to_vec()], 100);
    let framing = reader.framing();
    assert_eq!(framing.get(), None);
    reader.next().now_or_never().unwrap().unwrap_err();
    assert_eq!(framing.get(), Some(&Framing::Lines));
}

#[test]
fn a_frame_over_the_limit_is_skipped_in_bounded_memory() {
    let body = "x".repeat(2_000_000);
    for (head, tail) in [("Content-Length: 2000000\r\n\r\n", ""), ("{", "\n")] {
        let next = if tail.is_empty() {
            "Content-Length: 2\r\n\r\n{}"
        } else {
            "{}\n"
        };
        let input = format!("{head}{body}{tail}{next}").into_bytes();
        let pieces = input.chunks(70_000).map(<[u8]>::to_vec).collect();
        let mut reader = reader(pieces, 100_000);
        let error = reader.next().now_or_never().unwrap().unwrap_err();
        assert!(matches!(error, FrameError::Skipped { .. }), "{error}");
        let frame = reader.next().now_or_never().unwrap().unwrap().unwrap();
        assert_eq!(frame, &b"{}"[..]);
        assert!(reader.buffer.capacity() <= 2 * READ_STEP.1);
        assert!(reader.next().now_or_never().unwrap().unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn the_header_of_a_frame_over_the_limit_is_answered_before_its_body_comes() {
    use tokio::io::AsyncWriteExt;
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let mut reader = FrameReader::new(ours, 1_000, 10);
    theirs
        .write_all(b"Content-Length: 5000\r\n\r\n")
        .await
        .unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(
        matches!(
            error,
            FrameError::Skipped {
                head: MessageHead { id: None, .. },
                length: 5000,
                ..
            }
        ),
        "{error}"
    );
    theirs
        .write_all("x".repeat(5_000).as_bytes())
        .await
        .unwrap();
    theirs
        .write_all(b"Content-Length: 2\r\n\r\n{}")
        .await
        .unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap(), &b"{}"[..]);
    // A body that comes in time still tells the id.
    theirs
        .write_all(b"Content-Length: 5000\r\n\r\n")
        .await
        .unwrap();
    assert!(reader.next().now_or_never().is_none());
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"{}",
        "x".repeat(4_000)
    );
    theirs.write_all(body.as_bytes()).await.unwrap();
    let error = reader.next().await.unwrap_err();
    assert!(
        matches!(&error, FrameError::Skipped { head, .. } if head.id.is_some()),
        "{error}"
    );
}

#[test]
fn line_breaks_between_tokens_cannot_split_a_line() {
    let mut out = Vec::new();
    Framing::Lines.encode(b"{\r\n\"a\": 1\n}", &mut out);
    assert_eq!(out, b"{  \"a\": 1 }\n");
    let adapted = Framing::Lines.adapt(Bytes::from_static(b"{\n}"));
    assert_eq!(adapted, &b"{ }"[..]);
}

fn messages() -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof![".{0,40}", "[\\[\\]{}\"\\\\\n\u{2028}]{0,20}"];
    let message = text.prop_map(|text| serde_json::json!({ "text": text }).to_string());
    prop::collection::vec(message, 0..6)
}

fn split(input: &[u8], points: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut points: Vec<_> = points.iter().map(|at| at.index(input.len() + 1)).collect();
    points.sort_unstable();
    let mut start = 0;
    let mut pieces = Vec::new();
    for point in points.into_iter().chain([input.len()]) {
        pieces.push(input.get(start..point).unwrap().to_vec());
        start = point;
    }
    pieces
}

proptest! {
    #[test]
    fn what_was_encoded_is_read_back_however_it_is_split(
        messages in messages(),
        framing in prop_oneof![Just(Framing::ContentLength), Just(Framing::Lines)],
        points in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut input = Vec::new();
        for message in &messages {
            framing.encode(message.as_bytes(), &mut input);
        }
        let (read, error) = read_all(reader(split(&input, &points), 1000));
        prop_assert_eq!(error, None);
        prop_assert_eq!(read, messages);
    }

    #[test]
    fn garbage_ends_in_an_error_and_never_in_a_panic(
        start in prop_oneof![Just("{"), Just("Content-Length: "), Just("")],
        noise in prop::collection::vec(any::<u8>(), 0..200),
        points in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let mut input = start.as_bytes().to_vec();
        input.extend(noise);
        let (frames, _) = read_all(reader(split(&input, &points), 100));
        prop_assert!(frames.iter().all(|frame| frame.chars().count() <= 100));
        for frame in frames {
            // Any verdict will do.
            drop(super::super::parse(frame.as_bytes()));
        }
    }
}
