mod hostile;

use std::process::Command;

use super::super::definition::CommandFormat;
use super::super::template::{Segment, Template};

/// Fills a command in, as a file of commands has it.
fn filled(command: &str, input: &str) -> Result<String, String> {
    let template = Template::parse(&format!("!`{command}`"), CommandFormat::Claude).unwrap();
    let segments = template.fill(input, "/work");
    let segments = segments.map_err(|error| error.to_string())?;
    let [Segment::Shell(command)] = segments.as_slice() else {
        unreachable!("one command");
    };
    Ok(command.clone())
}

/// Runs a command in bash, interactively if history is expanded. Returns what it prints.
fn runs(command: &str, folder: &std::path::Path) -> String {
    let output = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", command])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("SECRET", "revealed")
        .current_dir(folder)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// What somebody may type to have it run as code. Each would leave a file or print something.
const TYPED: &[&str] = &[
    "; touch pwned",
    "&& touch pwned",
    "|| touch pwned",
    "| touch pwned",
    "& touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    "${x:=$(touch pwned)}",
    "> pwned",
    ">> pwned",
    "2>pwned",
    "<(touch pwned)",
    "x\ntouch pwned",
    "' ; touch pwned ; '",
    "\"; touch pwned; \"",
    "'\"'; touch pwned #",
    "\\'; touch pwned; \\'",
    "$SECRET",
    "${SECRET}",
    "$((1+1))",
    "~",
    "*",
    "{a,b}",
    "[a-z]*",
    "!!",
    "!touch",
    "# comment",
    "a=b",
    "\\",
    "a\\",
    "-- -x",
    "$'\\x3b touch pwned'",
    "(touch pwned)",
    "a b  c",
    "é 世界 …",
    "if",
    "\u{2028}touch pwned",
    "\ttouch pwned",
    "x\r touch pwned",
];

/// Commands of authors in which an argument is data, wherever its place is.
const COMMANDS: &[&str] = &[
    "printf '<%s>' $ARGUMENTS",
    "printf '<%s>' \"$ARGUMENTS\"",
    "printf '<%s>' '$ARGUMENTS'",
    "printf '<%s>' \"fix: $ARGUMENTS.\"",
    "printf '<%s>' 'fix: $ARGUMENTS.'",
    "printf '<%s>' a$ARGUMENTS",
    "printf '<%s>' $1",
    "printf '<%s>' \"$1\"",
    "printf '<%s>' --x=$1",
    "printf '<%s>' --x=\"$1\" end",
    "echo \"$(printf '<%s>' \"$1\")\"",
    "echo $(printf '<%s>' $ARGUMENTS | cat)",
    "(printf '<%s>' $1) && true",
    "[ -n \"$1\" ] && printf '<%s>' \"$1\"",
    "[[ $1 == x ]] || printf '<%s>' $1",
    "cat <<< $1",
    "cat <<< \"$ARGUMENTS\"",
    "printf '<%s>' \"a\" $1 # ok",
    "printf '<%s>' \\# $1",
    "env printf '<%s>' \"to $ARGUMENTS\"",
];

#[test]
fn what_is_typed_is_never_code_in_real_bash() {
    let mut count = 0;
    for command in COMMANDS {
        for typed in TYPED {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("here"), "").unwrap();
            // Several words are no condition, and a dash may be taken for an option.
            let may_be_refused = command.starts_with("[[") || typed.starts_with('-');
            let filled = filled(command, typed);
            if filled.is_err() && may_be_refused {
                continue;
            }
            let line = filled.unwrap();
            let said = runs(&line, folder.path());
            let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            assert_eq!(files.len(), 1, "{line:?} made a file");
            assert!(!said.contains("revealed"), "{line:?}: {said}");
            assert!(!said.contains("here"), "{line:?}: {said}");
            count += 1;
        }
    }
    assert!(count > 700, "{count}");
}

#[test]
fn what_is_typed_arrives_as_it_was_typed() {
    let folder = tempfile::tempdir().unwrap();
    let table = [
        ("printf '<%s>' $ARGUMENTS", "a b", "<a><b>"),
        (
            "printf '<%s>' $ARGUMENTS",
            "--oneline -5",
            "<--oneline><-5>",
        ),
        ("printf '<%s>' $ARGUMENTS", "\"a b\" c", "<a b><c>"),
        ("printf '<%s>' \"$ARGUMENTS\"", "a b", "<a b>"),
        (
            "printf '<%s>' \"fix: $ARGUMENTS\"",
            "it's $5!",
            "<fix: it's $5!>",
        ),
        (
            "printf '<%s>' 'fix: $ARGUMENTS'",
            "it's $5!",
            "<fix: it's $5!>",
        ),
        (
            "printf '<%s>' \"$ARGUMENTS\"",
            "say \"a  b\"",
            "<say \"a  b\">",
        ),
        ("printf '<%s>' $1 $2", "a b c", "<a><b c>"),
        ("printf '<%s>' \"$1-$2\"", "a b", "<a-b>"),
        ("printf '<%s>' x$1", "*", "<x*>"),
        ("printf '<%s>' end $ARGUMENTS", "", "<end>"),
        ("printf '<%s>' \"$1\" end", "", "<><end>"),
        ("awk '{print $2}' <<< \"a $1\"", "b", "a b\n"),
    ];
    for (command, typed, expected) in table {
        // The last one shows that awk's own `$2` is an argument, too, as it is in Claude Code.
        let line = filled(command, typed).unwrap();
        let said = runs(&line, folder.path());
        assert_eq!(said, expected, "{line}");
    }
}

#[test]
fn what_cannot_be_quoted_does_not_run() {
    let places = [
        ("echo $((1 + $1))", "a calculation"),
        ("((x = $1))", "a calculation"),
        ("echo ${x:-$1}", "in `${…}`"),
        ("echo $'a $1'", "in `$'…'`"),
        ("ls # $1", "a comment"),
        ("cat <<$1", "after `<<`"),
        ("echo $$1", "a dollar sign"),
    ];
    for (command, why) in places {
        let refused = filled(command, "a").unwrap_err();
        assert!(
            refused.contains(why) && refused.contains(command),
            "{refused}"
        );
        // Without an argument nothing is put in.
        assert!(filled(command, "").is_ok(), "{command}");
    }
    let evaluated = [
        "sh -c \"ls $ARGUMENTS\"",
        "bash -c 'ls $ARGUMENTS'",
        "eval \"ls $1\"",
        "ssh host \"ls $1\"",
        "awk '/$1/' file",
        "python3 -c \"print('$1')\"",
        "find . -exec sh -c 'ls $1' ';'",
        "[[ $1 -eq 1 ]] && echo y",
        "n=$1; [[ $n -gt 0 ]]",
        "n=$1; if [ \"$n\" -gt 0 ]; then echo y; fi",
        "test -v $1",
        "x=$1; [ -v \"$x\" ]",
        "let x=$1",
        "declare $1",
        "declare -i n=$1",
        "printf -v $1 x",
        "x=$1; echo $((x))",
        "x=$1; ((y = x))",
        "x=$1; echo ${!x}",
        "arr[$1]=3",
        "read v <<< $1; eval echo $v",
        "export A=$1; bash -c \"echo $A\"",
        "xargs -I{} sh -c {} <<< $1",
        "echo $1 | sh",
        "make $1",
    ];
    for command in evaluated {
        for typed in ["; touch pwned", "\"a[$(touch pwned)]\"", "two words"] {
            let refused = filled(command, typed).unwrap_err();
            assert!(refused.contains("may evaluate its place"), "{refused}");
        }
        // A plain word may be the name of a program or a file there, too.
        let is_plain = filled(command, "src/main.rs").is_ok();
        assert_eq!(is_plain, command.starts_with("make"), "{command}");
    }
}

#[test]
fn a_word_does_not_become_an_option() {
    for command in [
        "grep -n $1",
        "git log \"$1\"",
        "git log \"$ARGUMENTS\"",
        "git show '$1'",
    ] {
        let refused = filled(command, "-oProxyCommand").unwrap_err();
        assert!(refused.contains("begins with a dash"), "{refused}");
        assert!(filled(command, "main").is_ok(), "{command}");
    }
    let fine = [
        ("git log -- $1", "git log -- -x"),
        ("git log --since=$1", "git log --since=-x"),
        ("git log $ARGUMENTS", "git log -x"),
        ("echo $1", "echo -x"),
    ];
    for (command, expected) in fine {
        assert_eq!(filled(command, "-x").unwrap(), expected);
    }
}
