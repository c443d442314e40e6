use super::*;

/// Writes the commands of a text, with a star for computed parts.
fn commands(text: &str) -> String {
    let script = Script::read(text);
    let word = |word: &Word| match word.text() {
        Some(text) => text.to_owned(),
        None => format!("{}*", word.prefix()),
    };
    let command = |command: &Simple| {
        let assigned = command
            .assignments
            .iter()
            .map(|a| format!("{}={}", a.name, word(&a.value)));
        let words: Vec<String> = assigned.chain(command.words.iter().map(word)).collect();
        words.join(" ")
    };
    let all: Vec<String> = script
        .commands
        .iter()
        .map(command)
        .filter(|text| !text.is_empty())
        .collect();
    format!(
        "{}{}",
        all.join(" ; "),
        if script.doubt { " ?" } else { "" }
    )
}

#[test]
fn commands_are_found_at_every_depth() {
    let table = [
        ("a b c", "a b c"),
        ("a 'b c' \"d e\" f\\ g", "a b c d e f g"),
        (
            "a; b & c && d || e | f |& g\nh",
            "a ; b ; c ; d ; e ; f ; g ; h",
        ),
        ("(a; (b)); { c; }", "a ; b ; c"),
        (
            "if a; then b; elif c; then d; else e; fi",
            "a ; b ; c ; d ; e",
        ),
        ("while a; do b; done; until c; do d; done", "a ; b ; c ; d"),
        ("for x in 1 2 $(a); do b; done", "a ; b"),
        ("for ((i=0;i<$(a);i++)); do b; done", "a ; b"),
        ("for x; do a; done", "a"),
        (
            "case $x in a|b) c;; (d) e; f;; *) g;; esac; h",
            "c ; e ; f ; g ; h",
        ),
        (
            "f() { a; }; function g { b; }; function h() (c)",
            "a ; b ; c",
        ),
        ("echo $(a `b` \"$(c)\")", "echo * ; a * * ; b ; c"),
        ("echo ${x:-$(a)} \"${y:=`b`}\"", "echo * * ; a ; b"),
        ("diff <(a) >(b)", "diff * * ; a ; b"),
        ("echo $((1+$(a))) $[ $(b) ]", "echo * * ; a ; b"),
        ("((x=$(a))); (( 1 )) && b", "a ; b"),
        ("((a); b)", "a ; b"),
        ("[[ -n $(a) && x < y ]]", "a ; [[ -n * x y"),
        ("! a; time -p b; coproc c; coproc N { d; }", "a ; b ; c ; d"),
        ("A=b C=$(d) e", "A=b C=* e ; d"),
        ("A=(b $(c)) d", "A=* d ; c"),
        ("a > $(b) 2>&1 <<< \"$(c)\" &> x", "a ; b ; c"),
        ("cat <<E\n$(a)\nE\nb", "cat ; a ; b"),
        ("cat <<'E'\n$(a)\nE\nb", "cat ; b"),
        ("cat <<-E | a\n\tx\n\tE\nb", "cat ; a ; b"),
        ("a # b\nc", "a ; c"),
        ("a \\\n b", "a b"),
        ("a~b ~/c {d,e} f{} *.g", "a~b * * f{} *"),
        ("{a,b} c{d} e{f,g}h i@{0} {j", "* c{d} e* i@{0} {j"),
        ("$'a' $\"b\"", "* b*"),
        ("echo a#b", "echo a#b"),
        ("echo \\$(a", "echo $ ?"),
    ];
    let wrong: Vec<String> = table
        .into_iter()
        .filter(|(text, expected)| commands(text) != *expected)
        .map(|(text, expected)| format!("{text}: {} instead of {expected}", commands(text)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_text_that_cannot_be_read_sets_doubt() {
    let mut wrong = Vec::new();
    for text in [
        "a 'b",
        "a \"b",
        "a $(b",
        "a `b",
        "a ${b",
        "(a",
        "a )",
        "a ;;",
        "cat <<E\nx",
        "cat <<E",
        "a <",
        "case x in a) b",
        "esac",
        "a @(b|c)",
        "echo ${ a; }",
        "echo ${x@P}",
        "a ( b )",
        "case x",
        "echo \"${x:-'a}\"}'\"",
    ] {
        if !Script::read(text).doubt {
            wrong.push(text);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_input_text_of_a_command_is_kept() {
    let input = |text: &str| Script::read(text).commands.first().map(|c| c.input.clone());
    let literal = |text: &str| Some(Input::Text(Word::literal(text)));
    assert_eq!(input("sh <<< 'a b'"), literal("a b"));
    assert_eq!(input("sh <<'E'\na b\nE"), literal("a b\n"));
    assert_eq!(input("sh <<E\na \\$b\nE"), literal("a $b\n"));
    assert_eq!(input("sh < x"), Some(Input::File(Word::literal("x"))));
    assert_eq!(input("a | sh"), Some(Input::Unknown));
}
