//! Compares the tracker with the reader of frames.
#![expect(clippy::indexing_slicing, reason = "a failed index is a failed test")]

use proptest::prelude::*;

use super::*;

fn frame(body: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Framing::ContentLength.encode(body.as_bytes(), &mut out);
    out
}

#[test]
fn a_stream_is_between_frames_before_the_first_and_after_each() {
    let mut tracker = FrameTracker::default();
    assert!(tracker.is_between_frames());
    for (bytes, between) in [
        ("Content-Le", false),
        ("ngth: 2\r\n", false),
        ("\r\n", false),
        ("{", false),
        ("}", true),
        ("\r\n ", true),
        ("Content-Length: 2\r\nContent-Type: x\r\n\r\n{}", true),
        ("Content-Length: 0\r\n\r\n", true),
    ] {
        tracker.follow(bytes.as_bytes());
        assert_eq!(tracker.is_between_frames(), between, "after {bytes:?}");
    }
    assert_eq!(tracker.framing(), Some(Framing::ContentLength));
}

#[test]
fn lines_end_at_their_line_feed() {
    let mut tracker = FrameTracker::default();
    for (bytes, between) in [
        (" \n{\"a\":", false),
        ("1}\n", true),
        ("{}\n{", false),
        ("}\n\n", true),
    ] {
        tracker.follow(bytes.as_bytes());
        assert_eq!(tracker.is_between_frames(), between, "after {bytes:?}");
    }
    assert_eq!(tracker.framing(), Some(Framing::Lines));
}

#[test]
fn follow_frame_stops_at_the_end_of_the_current_frame() {
    let mut tracker = FrameTracker::default();
    let (one, two) = (frame("{\"one\":1}"), frame("{}"));
    assert_eq!(tracker.follow_frame(&one), 0, "none has begun");
    tracker.follow(&one[..5]);
    let rest = [&one[5..], &two[..]].concat();
    assert_eq!(tracker.follow_frame(&rest[..3]), 3);
    assert_eq!(tracker.follow_frame(&rest[3..]), one.len() - 8);
    assert!(tracker.is_between_frames());
}

#[test]
fn a_malformed_stream_never_is_between_frames_again() {
    for bytes in [
        "GET / HTTP/1.1\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "Content-Length: many\r\n\r\n",
    ] {
        let mut tracker = FrameTracker::default();
        tracker.follow(bytes.as_bytes());
        tracker.follow(&frame("{}"));
        assert!(!tracker.is_between_frames(), "{bytes:?}");
    }
}

proptest! {
    /// However a stream is cut into pieces, it is between frames exactly where frames end.
    #[test]
    fn pieces_do_not_matter(
        bodies in proptest::collection::vec("\\{[a-z\r\n:]{0,40}\\}", 1..6),
        cuts in proptest::collection::vec(1_usize..30, 0..40),
    ) {
        let mut stream = Vec::new();
        let mut ends = vec![0];
        for body in &bodies {
            stream.extend(frame(body));
            ends.push(stream.len());
        }
        let mut tracker = FrameTracker::default();
        let mut at = 0_usize;
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let end = at.saturating_add(cut).min(stream.len());
            tracker.follow(&stream[at..end]);
            at = end;
            prop_assert_eq!(tracker.is_between_frames(), ends.contains(&at), "at {}", at);
        }
    }
}
