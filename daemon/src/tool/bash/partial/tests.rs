use super::*;

#[test]
fn pieces_hold_whole_characters() {
    let (sender, mut receiver) = mpsc::channel(8);
    let mut partial = Partial::new(sender);
    partial.flush();
    partial.push("a€".as_bytes().get(..3).unwrap());
    partial.flush();
    assert_eq!(receiver.try_recv().unwrap(), "a");
    partial.flush();
    assert!(receiver.try_recv().is_err(), "nothing new, nothing sent");
    partial.push("a€".as_bytes().get(3..).unwrap());
    partial.push(b"\xff");
    partial.flush();
    assert_eq!(receiver.try_recv().unwrap(), "€\u{fffd}");
    partial.push("ü".as_bytes().get(..1).unwrap());
    partial.finish();
    assert_eq!(receiver.try_recv().unwrap(), "\u{fffd}");
}

#[test]
fn a_flood_is_cut_to_its_end() {
    let (sender, mut receiver) = mpsc::channel(8);
    let mut partial = Partial::new(sender);
    for _ in 0..100 {
        partial.push(&b"x".repeat(MAX_PIECE));
        assert!(partial.waiting.len() < 2 * MAX_PIECE);
    }
    partial.push(b"end");
    partial.finish();
    let piece = receiver.try_recv().unwrap();
    assert!(piece.starts_with("[... "), "{piece}");
    assert!(piece.ends_with("xend"));
    assert!(piece.len() < 3 * MAX_PIECE);
}

#[test]
fn a_reader_too_slow_blocks_nothing() {
    let (sender, mut receiver) = mpsc::channel(1);
    let mut partial = Partial::new(sender);
    for piece in [b"a", b"b"] {
        partial.push(piece);
        partial.flush();
    }
    assert_eq!(receiver.try_recv().unwrap(), "a");
    assert!(receiver.try_recv().is_err());
}
