use proptest::prelude::*;

use super::pieces::pieces;
use super::*;

#[test]
fn common_words_are_one_token_and_odd_ones_more() {
    for (text, tokens) in [
        ("", 0),
        ("a", 1),
        ("hello world", 2),
        ("The quick brown fox", 5),
        ("misunderstandings", 4),
        ("1234567", 3),
        ("    \n", 1),
        ("Größe", 2),
        ("привет", 3),
    ] {
        assert_eq!(count(text), tokens, "{text:?}");
    }
}

#[test]
fn what_was_merged_is_what_the_pieces_are() {
    let text = "Go on: `ls -la`, then\n\n  12345 files…  Überall\tgut\r\n";
    let found: Vec<&str> = pieces(text).collect();
    assert_eq!(
        found,
        [
            "Go",
            " on",
            ":",
            " `",
            "ls",
            " -",
            "la",
            "`,",
            " then",
            "\n\n",
            " ",
            " ",
            "123",
            "45",
            " files",
            "…",
            " ",
            " Überall",
            "\tgut",
            "\r\n"
        ]
    );
}

#[test]
fn a_long_run_without_a_break_takes_no_longer_than_others() {
    // A square number of steps would not end within the time of the test.
    let text = "ab".repeat(100_000);
    assert!(count(&text) > 10_000);
}

#[test]
fn a_very_long_text_is_counted_by_its_ends() {
    let text = "some words that come again and again\n".repeat(20_000);
    let (counted, exact) = (count(&text), whole(&text));
    assert!(
        counted.abs_diff(exact) * 100 < exact,
        "{counted} for {exact}"
    );
    // Letters of several bytes at the places where it is cut.
    let text = "é".repeat(200_000);
    let (counted, exact) = (count(&text), whole(&text));
    assert!(
        counted.abs_diff(exact) * 100 < exact,
        "{counted} for {exact}"
    );
}

proptest! {
    #[test]
    fn pieces_are_the_whole_text(text in "\\PC{0,60}|[ \t\r\na-z0-9.]{0,60}") {
        let joined: String = pieces(&text).collect();
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn a_text_has_at_most_as_many_tokens_as_bytes(text in "\\PC{0,200}") {
        prop_assert!(count(&text) <= text.len() as u64);
        prop_assert!(text.is_empty() == (count(&text) == 0));
    }
}
