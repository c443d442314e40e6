use super::*;

#[test]
fn the_closest_text_and_what_differs_are_named() {
    let file = "fn main() {\n\tlet total = 1;  \n\tprint(total);\n}\nEND\n";
    let table = [
        ("let total = 1;\nfoo", "begins on line 2"),
        (
            "\tlet total = 1;\n\tprint(total);",
            "only in spaces at line ends: line 2 is \"\\tlet total = 1;  \"",
        ),
        (
            "    print(total);\n}",
            "line 3 is \"\\tprint(total);\" and old_str has \"    print(total);\"",
        ),
        ("3. \tprint(total);\n4. }", "without them it is on line 3"),
        ("end", "only in upper and lower case: line 5"),
        ("print(totals);", "differs on line 3"),
        (
            "}\nEND\nmore of it",
            "the file ends where old_str goes on with \"more of it\"",
        ),
    ];
    for (old, expected) in table {
        let found = advice(file, old, "old_str").unwrap_or_default();
        assert!(found.contains(expected), "{old:?}: {found}");
    }
}

#[test]
fn nothing_is_said_where_nothing_is_close() {
    for old in ["quite another thing", "\n", "ü", ""] {
        assert_eq!(advice("one\ntwo\n", old, "old_str"), None, "{old:?}");
    }
    assert_eq!(advice("", "something", "old_str"), None);
}

#[test]
fn a_long_line_is_quoted_in_part() {
    let file = format!("start {}", "x".repeat(5000));
    let found = advice(&file, &format!("start {}y", "x".repeat(5000)), "it").unwrap_or_default();
    assert!(found.len() < 800, "{}", found.len());
}
