use super::*;

/// `*` stands for a computed part.
fn word(pattern: &str) -> Word {
    let mut word = Word::default();
    for character in pattern.chars() {
        match character {
            '*' => word.push_any(Count::One),
            other => word.push(other),
        }
    }
    word
}

#[test]
fn a_computed_word_may_be_any_text_that_fits_its_known_parts() {
    let table = [
        ("rm", "rm", true),
        ("rm", "r", false),
        ("*", "", true),
        ("*", "rm", true),
        ("r*", "rm", true),
        ("r*", "r", true),
        ("r*", "xr", false),
        ("*m", "rm", true),
        ("r*m", "rm", true),
        ("r*r", "r", false),
        ("a*b*c", "aXbYc", true),
        ("a*b*c", "aXcYb", false),
        ("-*", "-rf", true),
        ("./*", "-rf", false),
    ];
    for (pattern, text, expected) in table {
        assert_eq!(word(pattern).may_be(text), expected, "{pattern} {text}");
    }
}

#[test]
fn a_computed_word_may_name_a_program_by_any_path() {
    let table = [
        ("/bin/rm", true),
        ("rmdir", false),
        ("*", true),
        ("*/rm", true),
        ("*/bin/ls", false),
        ("/bin/*", true),
        ("*m", true),
        ("*s", false),
        ("x*m", true),
    ];
    for (pattern, expected) in table {
        assert_eq!(word(pattern).may_name("rm"), expected, "{pattern}");
    }
}
