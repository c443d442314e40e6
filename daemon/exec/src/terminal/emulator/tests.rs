use super::*;

/// The text for the bytes; checks that it is the same for chunks of every size.
fn shown(bytes: &[u8]) -> String {
    let mut texts: Vec<String> = (1..=bytes.len().clamp(1, 40))
        .map(|step| {
            let mut emulator = Emulator::new();
            for chunk in bytes.chunks(step) {
                emulator.feed(chunk);
            }
            emulator.lines().finish();
            String::from_utf8(emulator.lines().take_done()).unwrap()
        })
        .collect();
    let first = texts.swap_remove(0);
    assert!(texts.iter().all(|text| *text == first), "{texts:?}");
    first
}

#[test]
fn text_is_what_a_user_would_see() {
    let table: [(&[u8], &str); 14] = [
        (b"plain\r\ntext\n", "plain\ntext\n"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"10%\r20%\r100%\n", "100%\n"),
        (b"abc\x08\x08X", "aXc"),
        ("grüße 世界".as_bytes(), "grüße 世界"),
        (b"bad \xff\xfe byte", "bad \u{FFFD}\u{FFFD} byte"),
        (b"cut \xe4\xb8\n", "cut \u{FFFD}\n"),
        (
            b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
            "alink",
        ),
        (b"\x1bP1$r0m\x1b\\x\x1b_app\x1b\\y\x1b^pm\x1b\\z", "xyz"),
        (b"a\x00\x01\x02\x07\x7fb", "ab"),
        (b"\xc2\x9b31mx", "31mx"),
        (b"old\x1b[2J\x1b[Hnew", "old\nnew"),
        (b"abcdef\x1b[3D\x1b[P\x1b[@-", "abc-ef"),
        (b"\x1b[?1049hscreen\x1b[?1049lafter", "after"),
    ];
    for (bytes, expected) in table {
        assert_eq!(
            shown(bytes),
            expected,
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn many_lines_at_once_are_the_same_as_one_by_one() {
    let mut bytes = Vec::new();
    for line in 0..3000 {
        bytes.extend_from_slice(format!("line {line} ü\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\x1b[1Achanged\r\nend");
    let mut slow = Emulator::new();
    for chunk in bytes.chunks(100) {
        slow.feed(chunk);
    }
    let mut fast = Emulator::new();
    fast.feed(&bytes);
    for emulator in [&mut slow, &mut fast] {
        emulator.lines().finish();
    }
    let fast = String::from_utf8(fast.lines().take_done()).unwrap();
    assert!(fast == String::from_utf8(slow.lines().take_done()).unwrap());
    assert!(fast.ends_with("line 2998 ü\nchanged99 ü\nend"), "{fast}");
    assert_eq!(fast.lines().count(), 3001);
}

#[test]
fn a_full_screen_program_is_shown_as_its_screen() {
    let mut emulator = Emulator::new();
    emulator.feed(b"$ \x1b[?1049h\x1b[2J\x1b[3;5Hhello\x1b[?1h");
    let screen = emulator.screen().unwrap();
    assert_eq!(screen.text, "\n\n    hello");
    assert_eq!(screen.cursor, (3, 10));
    assert_eq!(emulator.cursor_keys(), CursorKeys::Application);
    assert_eq!(emulator.open(), "$ ");
    assert_eq!(emulator.feed(b"\x1b[6n"), b"\x1b[3;10R");
    emulator.feed(b"\x1b[?1l\x1b[?1049lback");
    assert_eq!(emulator.screen(), None);
    assert_eq!(emulator.open(), "$ back");
    assert_eq!(emulator.feed(b"\x1b[6n\x1b[c"), b"\x1b[1;7R\x1b[?62;22c");
}
