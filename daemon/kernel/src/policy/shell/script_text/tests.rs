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
        ":a;N;$!ba;s/\\n/ /g",
        ":a\ns/x/y/\nta",
        ":a ; s/x/y/ ; ta",
        "/x/{s/a/b/;b};p",
        "/x/bend;p;:end",
        "$!{h;d};x;G",
        "s/[[:space:]]*$//",
        "s/[^]]*//",
        "s/[\\[\\]]//g",
        "s/[^\\/]*$//",
        "s,[0-9],x,",
        "s:a:b:",
        "#n\n/x/p",
        "s/a/b/ # why",
        "1a hello; e is text",
        "q5",
        "s/a/b\\\nc/",
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
        // Some versions end a label at a blank and run what follows.
        ":x e ./x.sh",
        ": x w F",
        ":x\te cmd",
        ":x\x0be cmd",
        ":x\x0ce cmd",
        ":x\re cmd",
        ":x w F",
        ":x r /etc/hostname",
        "tx w F",
        "Tx w F",
        "1bx w F",
        "b w F",
        "ba w F;:a",
        "ba;w F",
        ":a p",
        ":x}w F",
        "bx}s/; w F;/y/",
        // Others take the rest of the line for the label.
        ":a;s/x/\\\ne cmd\\\n/",
        "ba;y/x/\\\ne cmd\\\n/",
        "bé w F",
        // A comment ends at the end of its line and nowhere else.
        "# a; s/x/\\\ne cmd\\\n/",
        "#n\ne cmd",
        "p # a\\\ne cmd",
        // A text ends at the end of its line.
        "a hello\ne cmd",
        "1{a hello\n}\ne cmd",
        "a hello\\\ns/x/y\ne cmd\n/",
        "s/a/b\ne cmd\n/",
        // Brackets: a slash in them ends the expression or does not.
        "s/[]/]/;s/w F/;/",
        "s/[^]/]/;s/w F/;/",
        "s/[[:alpha:]/]/;s/w F/;/",
        "s/[\\[:alpha:]/]/;s/w F/;/",
        "s:[[:alpha:]]:x:",
        "sa[[:a:]]axae",
        "s^[^a^b^e",
        "/[]/]/e",
        // What follows a number or two texts.
        "q5e cmd",
        "l 5 w F",
        "y/a/b/w F",
        "y/a/b/;e",
        "s/a/b/gpw /dev/stdout",
        "s/a/b/ w F",
        "s/a/b/mw F",
        "s/a/b/}w F",
        "}w F",
        "p}e",
        "1!w F",
        "/x/Iw F",
        "0,/x/Ie",
        "v\nw F",
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
        ("':x e ./x.sh' a", true),
        ("-n ':x w F' a", true),
        ("--expr=e x", true),
        ("--e=e x", true),
        ("--expression e x", true),
        ("--exp '1e rm' x", true),
        ("--expression p x", false),
        ("-e p x -e e", true),
        // Without options behind operands, the first operand is the program.
        ("e x -e p", true),
        ("p x -e p", false),
        ("-se e x", true),
        ("-s p x", false),
        ("-i -e e x", true),
        ("-ie p x", false),
        ("-i.e 's/a/b/e' x", true),
        ("-l 5 e x", true),
        ("-l5 p x", false),
        // Not every version takes a number after `-l`.
        ("-l e x", true),
        ("--line-length 5 e x", true),
        ("--posix e x", true),
        ("--posix p x", false),
        ("-- e x", true),
        ("-- p x", false),
        ("-e 's/a/\\' -e 'e cmd/' x", true),
        ("-e 'a\\' -e 'e cmd' x", true),
        ("-e ':a' -e p -e 'ba' x", false),
        ("-e ':a' -e 'w F' x", true),
        ("-Q e x", true),
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

/// GNU sed refuses every program with `e`, `r` or `w` in its sandbox, so it says what we overlooked.
#[test]
#[cfg(unix)]
fn no_program_that_counts_as_plain_is_refused_by_the_sandbox_of_sed() {
    use std::process::{Command, Stdio};

    let refused = |script: &str| {
        let sed = Command::new("sed")
            .args(["--sandbox", "-n", script])
            .stdin(Stdio::null())
            .output();
        sed.is_ok_and(|out| String::from_utf8_lossy(&out.stderr).contains("sandbox"))
    };
    if !refused("w x") {
        // Another sed.
        return;
    }
    #[rustfmt::skip]
    let pieces = [
        ":a", ":", "b", "ba", "t", "T", "e x", "e", "w F", "w", "r F", "s/", "s/a/b/", "s,", "y/", "y/a/b/", "/", "/a/", "\\", "[", "]", "[^", "[]",
        "[[:a:]", "{", "}", ";", ";", "\n", "\n", "\\\n", "#", "#n\n", "a ", "a\\\n", "i\\", "c x", " ", " ", "\t", "p", "d", "q", "q5", "l 1", "1",
        "$", ",", "!", "g", "I", "M", "x", "=", "n", "&", "\r", "\u{b}",
    ];
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % bound as u64).unwrap_or_default()
    };
    let mut plain = 0;
    for _ in 0..200_000 {
        let mut script = String::new();
        for _ in 0..2 + next(10) {
            script.push_str(pieces.get(next(pieces.len())).copied().unwrap_or_default());
        }
        // Programs without such a letter prove nothing.
        if script.contains(['e', 'w', 'r']) && is_plain_sed(&script) {
            plain += 1;
            assert!(!refused(&script), "{script:?}");
        }
        if plain == 1_000 {
            break;
        }
    }
    assert!(plain > 200, "{plain}");
}

#[test]
fn awk_programs_that_make_the_names_of_files_are_known() {
    let table = [
        ("{print $1 > \"b.txt\"}", false),
        ("{if ($3 > 100) print $1}", false),
        ("{print ($1 > 2)}", false),
        ("{print $1 \">\" $2}", false),
        ("{print > $0}", true),
        ("{print >> (\"b\" \".txt\")}", true),
        ("{print > \"b\" \".txt\"}", true),
        ("{printf \"x\" > f\".txt\"}", true),
        ("{print > \"b\\056txt\"}", true),
    ];
    for (text, expected) in table {
        assert_eq!(awk_names_files(&[Word::literal(text)]), expected, "{text}");
    }
}
