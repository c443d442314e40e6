//! What the follower says of a stream, against what the reader of frames makes of it.
#![expect(clippy::indexing_slicing, reason = "a failed index is a failed test")]

use proptest::prelude::*;

use super::*;

fn frame(body: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Framing::ContentLength.encode(body.as_bytes(), &mut out);
    out
}

#[test]
fn it_is_between_frames_before_the_first_and_after_each() {
    let mut borders = FrameTracker::default();
    assert!(borders.is_between_frames());
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
        borders.follow(bytes.as_bytes());
        assert_eq!(borders.is_between_frames(), between, "after {bytes:?}");
    }
    assert_eq!(borders.framing(), Some(Framing::ContentLength));
}

#[test]
fn lines_end_at_their_line_feed() {
    let mut borders = FrameTracker::default();
    for (bytes, between) in [
        (" \n{\"a\":", false),
        ("1}\n", true),
        ("{}\n{", false),
        ("}\n\n", true),
    ] {
        borders.follow(bytes.as_bytes());
        assert_eq!(borders.is_between_frames(), between, "after {bytes:?}");
    }
    assert_eq!(borders.framing(), Some(Framing::Lines));
}

#[test]
fn only_the_rest_of_the_frame_that_has_begun_is_followed() {
    let mut borders = FrameTracker::default();
    let (one, two) = (frame("{\"one\":1}"), frame("{}"));
    assert_eq!(borders.follow_frame(&one), 0, "none has begun");
    borders.follow(&one[..5]);
    let rest = [&one[5..], &two[..]].concat();
    assert_eq!(borders.follow_frame(&rest[..3]), 3);
    assert_eq!(borders.follow_frame(&rest[3..]), one.len() - 8);
    assert!(borders.is_between_frames());
}

#[test]
fn a_stream_that_nobody_can_read_has_no_further_border() {
    for bytes in [
        "GET / HTTP/1.1\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "Content-Length: many\r\n\r\n",
    ] {
        let mut borders = FrameTracker::default();
        borders.follow(bytes.as_bytes());
        borders.follow(&frame("{}"));
        assert!(!borders.is_between_frames(), "{bytes:?}");
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
        let mut borders = FrameTracker::default();
        let mut at = 0_usize;
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let end = at.saturating_add(cut).min(stream.len());
            borders.follow(&stream[at..end]);
            at = end;
            prop_assert_eq!(borders.is_between_frames(), ends.contains(&at), "at {}", at);
        }
    }
}
