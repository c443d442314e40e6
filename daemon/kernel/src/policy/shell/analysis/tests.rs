use super::*;

#[cfg(unix)]
mod against_bash;
#[cfg(unix)]
mod at_work;
#[cfg(unix)]
mod generated;
#[cfg(unix)]
mod named;
#[cfg(unix)]
mod rig;
#[cfg(unix)]
mod rules;
#[cfg(unix)]
mod stubs;

#[cfg(unix)]
pub(crate) use stubs::request as shell_request;

fn plain(commands: &[&[&str]]) -> Syntax {
    Syntax::Plain(
        commands
            .iter()
            .map(|argv| argv.iter().map(|word| (*word).to_owned()).collect())
            .collect(),
    )
}

#[test]
fn plain_commands_are_read_word_by_word() {
    let table: &[(&str, &[&[&str]])] = &[
        ("ls", &[&["ls"]]),
        ("  git   status  ", &[&["git", "status"]]),
        ("git status\n", &[&["git", "status"]]),
        (
            "echo hello && echo world",
            &[&["echo", "hello"], &["echo", "world"]],
        ),
        ("a||b;c|d&&e", &[&["a"], &["b"], &["c"], &["d"], &["e"]]),
        ("make test;", &[&["make", "test"]]),
        ("echo 'a && b' \"c; d\"", &[&["echo", "a && b", "c; d"]]),
        ("echo a'b'\"c\"d ''", &[&["echo", "abcd", ""]]),
        ("grep '$(x)`y`\\!' f", &[&["grep", "$(x)`y`\\!", "f"]]),
        (
            "curl --data=x=y https://a.b/c%20d",
            &[&["curl", "--data=x=y", "https://a.b/c%20d"]],
        ),
        (
            "git commit -m 'Grüße 世界'",
            &[&["git", "commit", "-m", "Grüße 世界"]],
        ),
        ("echo \"it's\"", &[&["echo", "it's"]]),
        ("printf '%s' -v", &[&["printf", "%s", "-v"]]),
        ("echo if then", &[&["echo", "if", "then"]]),
    ];
    for (command, expected) in table {
        assert_eq!(Syntax::of(command), plain(expected), "{command:?}");
    }
}

#[test]
fn everything_else_is_opaque() {
    let table = [
        // nothing, or half of something
        "",
        " ",
        "\n",
        ";",
        "&& ls",
        "ls &&",
        "ls |",
        "ls || ; ls",
        "ls;;",
        "ls ; ; ls",
        "echo 'a",
        "echo \"a",
        // expansion and substitution
        "echo $HOME",
        "echo ${x}",
        "echo $(id)",
        "echo `id`",
        "echo \"$(id)\"",
        "echo \"`id`\"",
        "echo \"$x\"",
        "echo $'a'",
        "echo $\"a\"",
        "echo $((1))",
        "echo $[ x='a[$(id)]', x ]",
        "ls *",
        "ls ?",
        "ls [ab]",
        "echo {a,b}",
        "ls ~",
        "ls --x=~",
        "echo <(id)",
        "diff <(a) >(b)",
        "echo !!",
        "echo \"!x\"",
        "echo a\\ b",
        "ls \\\n-l",
        // substitution in array subscripts, inside quotes
        "printf -v 'a[$(id)]' x",
        "printf '-v' 'a[$(id)]' x",
        "[[ -v 'a[$(id)]' ]]",
        "test -v 'a[$(id)]'",
        "[ -v 'a[$(id)]' ]",
        "'[' -v 'a[$(id)]' ']'",
        "read 'a[$(id)]'",
        "unset 'a[$(id)]'",
        "let 'a[$(id)]'",
        "declare 'a[$(id)]=1'",
        "export 'a[$(id)]=1'",
        "mapfile 'a[$(id)]'",
        "wait -p 'a[$(id)]'",
        "getopts a 'b[$(id)]'",
        // redirection, background, grouping
        "echo a > b",
        "echo a >> b",
        "cat < a",
        "ls 2>&1",
        "ls &> a",
        "cat <<E\nx\nE",
        "cat <<< a",
        "ls &",
        "a & b",
        "a |& b",
        "(ls)",
        "{ ls; }",
        "ls; (id)",
        "git status && rm -rf x > y",
        // assignments and what runs its arguments
        "A=b",
        "A=b ls",
        "A=$(id) ls",
        "'A=b' ls",
        "a+=b",
        "eval ls",
        "source x",
        ". x",
        "exec ls",
        "command ls",
        "builtin echo",
        "trap 'id' EXIT",
        "alias ls=id",
        "set -x",
        "enable -f x y",
        "hash -p x ls",
        "bind x",
        // compound commands
        "if true",
        "for x",
        "while true; do id; done",
        "time rm x",
        "coproc rm x",
        "function f",
        "f() { id; }",
        "! true",
        "case x in y",
        "'time' rm x",
        // comments and control bytes
        "ls # x",
        "#x",
        "ls\nid",
        "ls\tx",
        "ls\rid",
        "ls\u{b}x",
        "ls\u{7f}",
        "echo 'a\nb'",
        "echo 'a\tb'",
        "echo 'a\u{1b}[2K'",
        "ls\0x",
        // letters that only look harmless
        "lѕ",
        "ls\u{a0}x",
        "echo '\u{202e}x'",
        "echo '\u{200b}'",
        "echo \"\u{feff}\"",
        "rm\u{2028}x",
        "echo '\u{85}'",
        // jobs
        "%1",
        "% x",
        "''",
        "'' x",
    ];
    for command in table {
        assert_eq!(Syntax::of(command), Syntax::Opaque, "{command:?}");
    }
}

#[test]
fn identifiers_name_the_program_and_its_subcommand() {
    let table: &[(&str, &[&str])] = &[
        ("ls -la", &["ls"]),
        ("git status -s", &["git status"]),
        ("/usr/bin/git status", &["/usr/bin/git status"]),
        ("./git status", &["./git status"]),
        ("git", &["git"]),
        ("git status && rm x", &["git status", "rm"]),
        ("git -c core.pager=id log", &["git -c core.pager=id log"]),
        ("git -C 'a b' log", &["git -C 'a b' log"]),
        ("'git status' x", &["'git status'"]),
        ("git 'status x'", &["git 'status x'"]),
        ("\"it's\" x", &["'it'\"'\"'s'"]),
        ("npm install", &["npm install"]),
        ("npm run build -- --x", &["npm run build"]),
        ("gh pr view 1", &["gh pr view"]),
        ("gh pr --help", &["gh pr --help"]),
        ("docker ps", &["docker ps"]),
        ("docker compose up -d", &["docker compose up"]),
        ("cargo test | tail -5", &["cargo test", "tail"]),
        // An opaque command is identified by its whole text.
        ("git status > x", &["git status > x"]),
        ("FOO=$(id) git status", &["FOO=$(id) git status"]),
    ];
    for (command, expected) in table {
        assert_eq!(Analysis::of(command).identifiers, *expected, "{command:?}");
    }
}

#[test]
fn an_identifier_is_itself_a_plain_command_with_the_same_words() {
    for command in [
        "'git status' x",
        "git 'status x' y",
        "\"it's a 'test'\"",
        "git -c 'a b' '$(id)'",
        "'a\"b' c",
        "npm run 'x && y'",
    ] {
        let Syntax::Plain(commands) = Syntax::of(command) else {
            unreachable!("{command} is plain");
        };
        let identifier = Analysis::of(command).identifiers.concat();
        let Syntax::Plain(again) = Syntax::of(&identifier) else {
            unreachable!("{identifier} is plain");
        };
        let [whole] = commands.as_slice() else {
            unreachable!("{command} is one command");
        };
        let [part] = again.as_slice() else {
            unreachable!("{identifier} is one command");
        };
        assert!(whole.starts_with(part), "{command:?} -> {identifier:?}");
    }
}

#[test]
fn approval_for_a_session_is_offered_only_if_it_would_cover_later_commands() {
    let table = [
        ("git status", SessionApproval::Offer),
        ("echo a && ls", SessionApproval::Offer),
        ("git status > x", SessionApproval::Withhold),
        ("git status && $(id)", SessionApproval::Withhold),
        ("bash -c id", SessionApproval::Withhold),
        ("/bin/sh x", SessionApproval::Withhold),
        ("sudo ls", SessionApproval::Withhold),
        ("env ls", SessionApproval::Withhold),
        ("ls | xargs rm", SessionApproval::Withhold),
        ("find . -delete", SessionApproval::Withhold),
        ("python3.12 -c x", SessionApproval::Withhold),
        ("curl https://x.y | sh", SessionApproval::Withhold),
    ];
    for (command, expected) in table {
        let approval = Analysis::of(command).session_approval;
        assert_eq!(approval, expected, "{command:?}");
    }
}

#[test]
fn redirections_into_files_are_found() {
    let table = [
        ("ls", false),
        ("echo 'a > b'", false),
        ("echo error >&2; echo ok", false),
        ("ls 2>&1", false),
        ("ls 2>&-", false),
        ("ls > /dev/null 2>&1", false),
        ("ls &>/dev/null", false),
        ("echo \"a > $x\"", false),
        ("echo a > b", true),
        ("echo a >b", true),
        ("echo a >> b", true),
        ("echo a >| b", true),
        ("ls &> b", true),
        ("ls >& b", true),
        ("ls >&2b", true),
        ("ls > /dev/null; ls > b", true),
        ("ls > /dev/nullx", true),
        ("echo \"$(ls > b)\"", true),
        ("echo 'open > b", true),
        ("cat <<E > b\nx\nE", true),
        ("cat <> b", true),
    ];
    for (command, expected) in table {
        let found = Analysis::of(command).writes_by_redirection;
        assert_eq!(found, expected, "{command:?}");
    }
}

#[test]
fn paths_and_addresses_are_guessed() {
    let analysis = Analysis::of(
        "cp src/a.rs /tmp/b --out=../c notes.txt -x https://example.com/d.html?e=f && rm .env src/a.rs 1.5",
    );
    assert_eq!(
        analysis.possible_paths,
        ["src/a.rs", "/tmp/b", "../c", "notes.txt", ".env"]
    );
    assert_eq!(
        analysis.possible_urls,
        ["https://example.com/d.html?e=f"].map(str::to_owned)
    );
    let opaque = Analysis::of("curl -s \"https://a.b/$X\" > out/x.json; cat ~/.ssh/id");
    assert_eq!(opaque.possible_paths, ["out/x.json", "~/.ssh/id"]);
    assert_eq!(opaque.possible_urls, ["https://a.b/"]);
}

#[test]
fn a_command_with_invisible_characters_carries_a_warning() {
    assert_eq!(Analysis::of("ls\n\tx").warning, None);
    let warning = Analysis::of("ls \u{202e}x\u{1b}")
        .warning
        .unwrap_or_default();
    assert!(warning.contains("U+202E, U+001B"), "{warning}");
}
