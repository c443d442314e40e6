use proptest::prelude::*;

use super::*;

#[test]
fn misleading_characters_are_named_and_escaped() {
    let table = [
        ("ls \u{202e}x\u{1b}", "cannot be seen (U+202E, U+001B)"),
        ("ls \u{202e}x\u{1b}", "Written out: ls \\u{202e}x\\u{1b}"),
        ("ls\rrm x", "Written out: ls\\u{d}rm x"),
        ("git\u{a0}status", "cannot be seen (U+00A0)"),
        ("l\u{455} -la", "look like others (U+0455)"),
        (
            "curl https://ex\u{430}mple.com",
            "look like others (U+0430)",
        ),
        (
            "rm \u{2013}rf x\u{200b}",
            "Written out: rm \\u{2013}rf x\\u{200b}",
        ),
    ];
    for (command, expected) in table {
        let warning = warning(command).unwrap_or_default();
        assert!(warning.contains(expected), "{command:?}: {warning}");
    }
    for harmless in [
        "ls",
        "echo 'Grüße 世界'",
        "echo привет",
        "a\n\tb",
        "echo '\\n'",
    ] {
        assert_eq!(warning(harmless), None, "{harmless:?}");
    }
}

/// Reads back the output of [`written_out`].
fn read_back(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let (character, length) = match rest.as_bytes() {
            [b'\\', b'\\', ..] => ('\\', 2),
            [b'\\', b'n', ..] => ('\n', 2),
            [b'\\', b't', ..] => ('\t', 2),
            [b'\\', b'u', b'{', ..] => {
                let (number, _) = rest.split_at(rest.find('}').unwrap_or(3));
                let number = u32::from_str_radix(number.get(3..).unwrap_or_default(), 16);
                let character = number.ok().and_then(char::from_u32).unwrap_or('?');
                (character, rest.find('}').map_or(1, |end| end + 1))
            }
            _ => (next, next.len_utf8()),
        };
        out.push(character);
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

proptest! {
    #[test]
    fn a_command_can_be_read_back_and_nothing_in_it_is_hidden(command in any::<String>()) {
        let shown = written_out(&command);
        prop_assert!(!shown.chars().any(|c| is_hidden(c) || c == '\n' || c == '\t'));
        prop_assert_eq!(read_back(&shown), command);
    }
}
