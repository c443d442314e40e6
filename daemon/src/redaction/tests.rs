use proptest::prelude::*;

use super::*;

fn of(values: &[&str]) -> Redaction {
    Redaction::of(values.iter().map(|value| (*value).to_owned()))
}

fn in_pieces(redaction: &Redaction, pieces: &[&str]) -> String {
    let mut stream = Pieces::new(redaction.clone());
    let mut shown: String = pieces.iter().map(|piece| stream.next(piece)).collect();
    shown.push_str(&stream.rest());
    shown
}

#[test]
fn values_are_masked_the_longest_first() {
    let redaction = of(&["secret-1", "secret-12345", "übergeheim"]);
    assert_eq!(
        redaction.clean("a secret-12345 b secret-1 c übergeheim d"),
        "a [redacted] b [redacted] c [redacted] d"
    );
    assert_eq!(redaction.clean("nothing here"), "nothing here");
}

#[test]
fn short_and_empty_values_are_not_secrets() {
    let redaction = of(&["", "true", "12345"]);
    assert_eq!(redaction.clean("true 12345"), "true 12345");
}

#[test]
fn a_value_cut_between_pieces_does_not_show() {
    let redaction = of(&["secret-value"]);
    let mut stream = Pieces::new(redaction);
    assert_eq!(stream.next("before sec"), "before ");
    assert_eq!(stream.next("ret-"), "");
    assert_eq!(stream.next("value after"), "[redacted] after");
    assert_eq!(stream.next(" s"), " ");
    assert_eq!(stream.rest(), "s");
}

#[test]
fn the_end_of_a_value_may_be_the_beginning_of_another() {
    let redaction = of(&["one-two-three", "three-four"]);
    assert_eq!(
        in_pieces(&redaction, &["one-two-", "three", "-four"]),
        "[redacted]-four"
    );
}

#[test]
fn only_what_may_be_a_beginning_is_held_back() {
    let mut stream = Pieces::new(of(&["secret-value"]));
    assert_eq!(stream.next("a whole line\n"), "a whole line\n");
}

#[test]
fn what_is_printed_of_it_holds_no_value() {
    let printed = format!("{:?}", Pieces::new(of(&["secret-value"])));
    assert!(!printed.contains("secret-value"), "{printed}");
}

proptest! {
    /// Letters from a small alphabet, so that values overlap and repeat.
    #[test]
    fn pieces_show_what_the_whole_shows(
        values in prop::collection::vec("[abü]{6,9}", 1..4),
        pieces in prop::collection::vec("[abcü]{0,12}", 0..12),
    ) {
        let redaction = Redaction::of(values);
        let whole = pieces.concat();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(in_pieces(&redaction, &pieces), redaction.clean(&whole).into_owned());
    }
}
