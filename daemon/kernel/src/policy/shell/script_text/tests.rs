use super::*;

#[test]
fn sed_programs_that_only_edit_are_recognized() {
    for script in [
        "s/a/b/",
        "s/a/b/g",
        "s|a|b|2p",
        "1,5p",
        "$d",
        "/x/d",
        "/a/,/b/p",
        "s/[0-9]*/x/;p",
        "1!G;h;$!d",
        "2q",
        "s/a\\/b/c/",
        "y/abc/xyz/",
        "/x/{s/a/b/;p}",
        "1i\\ hello",
        "5,+3d",
        "0~4d",
        "=",
    ] {
        assert!(is_plain_sed(script), "{script}");
    }
    for script in [
        "1e rm x",
        "e",
        "s/a/rm/e",
        "s/a/b/ge",
        "w x",
        "s/a/b/w x",
        "1r x",
        "p e",
        "s/a/b",
        "s/a/b/\\e",
        "1,5W x",
        "R x",
        "/x/e",
        "{e",
        "s/[/]/e/;e",
    ] {
        assert!(!is_plain_sed(script), "{script}");
    }
}

#[test]
fn sed_and_awk_calls_that_run_something_are_recognized() {
    let words = |text: &str| -> Vec<Word> {
        let words = plain_words(text).unwrap_or_else(|| unreachable!("{text}"));
        words.iter().map(|word| Word::literal(word)).collect()
    };
    for (text, expected) in [
        ("-n 1,5p x", false),
        ("-i.bak s/a/b/ x", false),
        ("-e p -e 's/a/b/' x", false),
        ("-ne p x", false),
        ("-n '1e rm x' y", true),
        ("-e p -e '1e rm' x", true),
        ("--expression=e x", true),
        ("-ne e x", true),
        ("-E 's/a/b/e' x", true),
    ] {
        assert_eq!(sed_runs(&words(text)), expected, "{text}");
    }
    for (text, expected) in [
        ("'{print $1}' x", false),
        ("-F: '$3 > 5 || x' y", false),
        ("-v a=b '{print}'", false),
        ("'BEGIN{system(\"rm\")}'", true),
        ("'{print | \"sh\"}'", true),
        ("'{\"x\" | getline}'", true),
        ("-i x '{print}'", true),
    ] {
        assert_eq!(awk_runs(&words(text)), expected, "{text}");
    }
}
