use super::*;

#[test]
fn input_is_text_only_without_keys_that_edit_or_recall() {
    let table = [
        ("rm v{enter}", "", Some("rm v\n")),
        ("a\r\nb\rc{space}d", "", Some("a\nb\nc d")),
        ("{{enter} {\"a\": 1} {", "", Some("{enter} {\"a\": 1} {")),
        ("{ctrl-c}", "x", Some("")),
        ("{ctrl-c}{ctrl-c}", "", Some("")),
        ("{ctrl-d}", "", Some("")),
        ("{ctrl-d}", "rm v", None),
        ("{ctrl-c}ls{enter}", "", None),
        ("xm v{home}{delete}r{enter}", "", None),
        ("r{backspace}rm v{enter}", "", None),
        ("{up}{enter}", "", None),
        ("{tab}", "", None),
        ("a\tb", "", None),
        ("rx\u{7f}m v", "", None),
        ("{esc}.", "", None),
        ("!!{enter}", "", None),
        ("echo !x{enter}", "", None),
        ("x{enter}", "echo !", None),
        ("^x^r{enter}", "", None),
        (
            "test a != b && ! true{enter}",
            "",
            Some("test a != b && ! true\n"),
        ),
        ("what now!{enter}", "", Some("what now!\n")),
    ];
    for (input, before, expected) in table {
        let expected = expected.map(str::to_owned);
        let lines = [before.to_owned()];
        let before = lines.iter().filter(|line| !line.is_empty());
        let before: Vec<String> = before.cloned().collect();
        assert_eq!(
            plain_text(input, &before),
            expected,
            "{input} after {before:?}"
        );
    }
}

#[test]
fn a_line_is_unfinished_until_it_is_ended() {
    let unknown = UnfinishedLine::Unknown;
    let text = |text: &str| UnfinishedLine::of(text.to_owned());
    let either = |since_line: &str, since_interrupt: &str| UnfinishedLine::Text {
        since_line: since_line.to_owned(),
        since_interrupt: since_interrupt.to_owned(),
    };
    let table = [
        (vec!["r"], text("r")),
        (vec!["r", "m v"], text("rm v")),
        (vec!["r", "m v{enter}"], text("")),
        (vec!["ls{enter}r", "m"], text("rm")),
        (vec!["r\\{enter}"], text("r\\\n")),
        (vec!["ls{enter}r\\{enter}", "m"], text("r\\\nm")),
        (vec!["r\\\\{enter}"], text("")),
        (vec!["r", "{ctrl-c}"], either("r", "")),
        (vec!["x", "{ctrl-c}", "r"], either("xr", "r")),
        (vec!["x", "{ctrl-c}", "r{enter}m"], text("m")),
        (vec!["r{left}"], unknown.clone()),
        (vec!["{up}", "x"], unknown.clone()),
        (vec!["{up}", "x{enter}y"], text("y")),
        (vec!["{up}", "{ctrl-c}"], text("")),
        (vec!["{up}{ctrl-c}"], unknown),
    ];
    for (inputs, expected) in table {
        let after = |line: UnfinishedLine, input: &&str| line.after(input);
        let line = inputs.iter().fold(UnfinishedLine::default(), after);
        assert_eq!(line, expected, "{inputs:?}");
    }
}
