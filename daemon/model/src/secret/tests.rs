//! Secrets stay out of text.

use super::*;

fn redactor(known: &[&str]) -> Redactor {
    let mut redactor = Redactor::default();
    for secret in known {
        redactor.add(Secret::new(*secret));
    }
    redactor
}

#[test]
fn debug_shows_no_secret() {
    let secret = Secret::new("hunter2hunter2");
    assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "*** Some(***)");
}

#[test]
fn known_values_and_token_shaped_words_are_masked() {
    let cases = [
        ("your key topsecret is wrong", "your key *** is wrong"),
        ("topsecret-longer, topsecret", "***, ***"),
        (
            "Incorrect API key provided: sk-proj-abcDEF123456.",
            "Incorrect API key provided: ***.",
        ),
        ("token=ghp_0123456789abcdef;", "token=***;"),
        ("sk-ate and sk-i are words", "sk-ate and sk-i are words"),
        ("größe sk-0123456789ab übrig", "größe *** übrig"),
        ("", ""),
    ];
    let redactor = redactor(&["topsecret", "topsecret-longer"]);
    for (text, expected) in cases {
        assert_eq!(redactor.clean(text), expected);
    }
}

#[test]
fn a_value_too_short_to_be_secret_masks_nothing() {
    assert_eq!(redactor(&["a", "", "test"]).clean("a test a"), "a test a");
}
