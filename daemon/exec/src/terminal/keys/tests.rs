use super::*;

fn typed(text: &str) -> String {
    String::from_utf8(parse_input(text).unwrap().encode(CursorKeys::Normal)).unwrap()
}

#[test]
fn keys_are_sent_as_a_terminal_sends_them() {
    let table = [
        ("yes{enter}", "yes\r"),
        ("a\nb\r\nc", "a\rb\rc"),
        ("{esc}:q!{enter}", "\x1b:q!\r"),
        ("{ctrl-c}{ctrl-d}{ctrl-z}", "\x03\x04\x1a"),
        ("{ctrl-[}{ctrl-space}", "\x1b\0"),
        ("{alt-x}{alt-.}", "\x1bx\x1b."),
        ("{up}{down}{right}{left}", "\x1b[A\x1b[B\x1b[C\x1b[D"),
        ("{f1}{f5}{f12}", "\x1bOP\x1b[15~\x1b[24~"),
        ("{tab}{space}{backspace}{delete}", "\t \x7f\x1b[3~"),
        ("grüße 世界", "grüße 世界"),
    ];
    for (text, expected) in table {
        assert_eq!(typed(text), expected, "{text}");
    }
}

#[test]
fn braces_that_are_no_keys_are_typed_as_they_are() {
    for text in [
        "{\"a\": 1}",
        "{ }",
        "{}",
        "f() { return; }",
        "{",
        "}",
        "a{b c}d",
    ] {
        assert_eq!(typed(text), text);
    }
    assert_eq!(typed("{{enter}"), "{enter}");
    assert_eq!(typed("${{HOME}/x"), "${HOME}/x");
    assert_eq!(typed("{{ x }}"), "{{ x }}");
}

#[test]
fn an_unknown_key_is_refused_with_a_list_of_keys() {
    for name in ["entr", "HOME", "f13", "f0", "ctrl-1", "alt-", "ctrl-"] {
        let error = parse_input(&format!("a{{{name}}}")).unwrap_err();
        assert_eq!(error, InputError::UnknownKey(name.to_owned()));
        assert!(error.to_string().contains("{pagedown}"), "{error}");
        assert!(
            error.to_string().contains(&format!("write {{{{{name}}}")),
            "{error}"
        );
    }
}

#[test]
fn application_keys_change_the_arrows_only() {
    let input = parse_input("{up}{home}{delete}x").unwrap();
    assert_eq!(
        input.encode(CursorKeys::Application),
        b"\x1bOA\x1bOH\x1b[3~x"
    );
}
