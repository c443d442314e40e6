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
        "[[ $1 -eq 1 ]] && echo y",
        "n=$1; [[ $n -gt 0 ]]",
        "n=$1; if [ \"$n\" -gt 0 ]; then echo y; fi",
        "test -v $1",
        "x=$1; [ -v \"$x\" ]",
        "let x=$1",
        "declare $1",
        "declare -i n=$1",
        "x=$1; echo $((x))",
        "make $1",
        "npm test -- $1",
    ];
    for command in evaluated {
        for typed in ["; touch pwned", "\"a[$(touch pwned)]\""] {
            let refused = filled(command, typed).unwrap_err();
            assert!(
                refused.contains("cannot be put into its command") && refused.contains("git log"),
                "{refused}"
            );
        }
        // Plain words mean the same there.
        assert!(filled(command, "src/main.rs").is_ok(), "{command}");
    }
}

/// Lines of authors from which what is typed has run, and others like them.
const RUNNING: &[&str] = &[
    "echo \"$(case x in x) echo $1;; esac)\"",
    "echo \"$(case \"$1\" in *) echo \"$1\";; esac)\"",
    "echo \"$(case $1 in x) echo a;; *) echo \"$ARGUMENTS\";; esac)\"",
    "case $1 in *) echo \"$1\";; esac",
    "timeout 5 bash -c $1",
    "timeout 5 bash -c \"$ARGUMENTS\"",
    "timeout -k 1 5 sh -c \"$1\"",
    "timeout 5 $1",
    "nice -n 5 sh -c $1",
    "nice -n 5 sh -c \"echo $1\"",
    "nice sh -c \"$1\"",
    "ionice -c 3 sh -c \"$1\"",
    "setsid sh -c \"$1\"",
    "stdbuf -oL sh -c \"$1\"",
    "nohup sh -c \"$1\"",
    "env sh -c \"$1\"",
    "env -i sh -c \"$1\"",
    "env -S \"$1\"",
    "flock lock -c $1",
    "flock lock -c \"$1\"",
    "flock lock sh -c \"$1\"",
    "script -qc \"$1\" /dev/null",
    "script -c $1",
    "busybox sh -c \"$1\"",
    "awk -v c=$1 'BEGIN{system(c)}'",
    "awk -v c=\"$1\" 'BEGIN{c | getline x; print x}'",
    "awk 'BEGIN{system(ARGV[1])}' \"$1\"",
    "awk \"$1\"",
    "echo \"$1\" | awk '{system($0)}'",
    "echo \"$1\" > x.sh; sh x.sh",
    "echo \"$1\" > x.sh && chmod +x x.sh && ./x.sh",
    "printf '%s' \"$1\" | tee x.sh; bash x.sh",
    "cat <<< \"$1\" > x; . ./x",
    "echo \"$1\" | sh",
    "echo \"$1\" | bash -s",
    "echo \"$1\" | xargs -I{} sh -c {}",
    "echo \"$1\" | xargs sh -c",
    "echo \"$1\" | while read -r x; do eval \"$x\"; done",
    "read -r v <<< \"$1\"; eval \"$v\"",
    "bash <<< \"$1\"",
    "bash -c 'eval \"$0\"' \"$ARGUMENTS\"",
    "bash -c '\"$@\"' x $ARGUMENTS",
    "sh -c \"$1\"",
    "eval $1",
    "eval \"echo $1\"",
    "x=$1; eval \"$x\"",
    "x=\"$1\"; $x",
    "x=\"$1\"; bash -c \"$x\"",
    "export X=\"$1\"; bash -c 'eval \"\\$X\"'",
    "X=\"$1\" bash -c 'eval \"\\$X\"'",
    "a=(\"$1\"); eval \"${a[0]}\"",
    "f() { eval \"$1\"; }; f",
    "trap \"$1\" EXIT",
    "find . -maxdepth 0 -exec sh -c \"$1\" ';'",
    "find . -maxdepth 0 -exec $1 ';'",
    "find . -maxdepth 0 -exec true ';' -exec sh -c \"$1\" ';'",
    "xargs -I{} sh -c \"$1\" <<< a",
    "sed \"$1\" here",
    "sed -e \"$1\" here",
    "sed \"s/a/$1/\" here",
    "sed \"1$1\" here",
    "perl -e \"$1\"",
    "perl -e 'system($ARGV[0])' \"$ARGUMENTS\"",
    "python3 -c \"$1\"",
    "python3 -c 'import os,sys; os.system(sys.argv[1])' \"$ARGUMENTS\"",
    "echo \"$1\" | python3 -c 'import os; os.system(input())'",
    "python3 -c \"print('$1')\"",
    "git -c alias.x=\"!$1\" x",
    "git -c core.pager=\"$1\" --paginate version",
    "git config alias.x \"$1\"",
    "git grep -O\"$1\" x",
    "git bisect run $1",
    "sort --compress-program=\"$1\" -S 1 here",
    "tar -cf /dev/null here --checkpoint=1 --checkpoint-action=exec=\"$1\"",
    "tar --use-compress-program=\"$1\" -cf x here",
    "rg --pre \"$1\" x",
    "make -f \"$1\"",
    "make --eval \"$1\"",
    "PAGER=\"$1\" git --paginate version",
    "BASH_ENV=\"$1\" bash -c true",
    "[[ $1 -eq 1 ]]",
    "[ -v \"$1\" ]",
    "printf -v \"$1\" x",
    "declare \"$1\"",
    "let \"$1\"",
    "mapfile -C \"$1\" -c 1 x < here",
    "coproc sh -c \"$1\"",
    "time sh -c \"$1\"",
    "command eval \"$1\"",
    "builtin eval \"$1\"",
    "exec sh -c \"$1\"",
    "$1",
    "\"$1\"",
    "$ARGUMENTS",
    ". \"$1\"",
    "source $1",
    "sh $1",
    "bash \"$ARGUMENTS\"",
];

/// What makes a file, if it runs: as a command, as a script, as code of some language.
const RUN: &[&str] = &[
    "; touch pwned",
    "touch pwned",
    "'touch pwned'",
    "\"$(touch pwned)\"",
    "$(touch${IFS}pwned)",
    "`touch${IFS}pwned`",
    "x$(touch${IFS}pwned)",
    "'a[$(touch pwned)]'",
    "./evil",
    "evil",
    "evil.sh",
    "'1e touch pwned'",
    "'e touch pwned'",
    "'x/e;1e touch pwned;s/a/b'",
    "'BEGIN{system(\"touch pwned\")}'",
    "'system(\"touch pwned\")'",
    "'__import__(\"os\").system(\"touch pwned\")'",
    "\"');__import__('os').system('touch pwned');('\"",
    "'x := $(shell touch pwned)'",
    "'!touch pwned'",
];

/// Whatever is accepted is run in real bash, and nothing of what was typed runs with it.
#[test]
fn lines_that_would_run_what_is_typed_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let mut accepted = Vec::new();
    for command in RUNNING {
        for typed in RUN {
            let Ok(line) = filled(command, typed) else {
                continue;
            };
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("here"), "a\n").unwrap();
            for evil in ["evil", "evil.sh"] {
                let path = folder.path().join(evil);
                std::fs::write(&path, "#!/bin/sh\ntouch pwned\n").unwrap();
                std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            }
            let path = format!(".:{}", std::env::var("PATH").unwrap());
            let ran = Command::new("setsid")
                .args([
                    "--wait",
                    "timeout",
                    "10",
                    "bash",
                    "--noprofile",
                    "--norc",
                    "-c",
                    &line,
                ])
                .env_clear()
                .env("PATH", path)
                .current_dir(folder.path())
                .stdin(std::process::Stdio::null())
                .output();
            ran.unwrap();
            assert!(
                !folder.path().join("pwned").exists(),
                "{line:?} has run {typed}"
            );
            accepted.push(line);
        }
    }
    // Most of them are refused for whatever is typed.
    let most = RUNNING.len() * RUN.len() / 10;
    assert!(accepted.len() < most, "{}: {accepted:#?}", accepted.len());
}

#[test]
fn a_command_that_writes_and_one_that_runs_a_file_get_no_arguments() {
    let fill = |text: &str, input: &str| {
        let template = Template::parse(text, CommandFormat::Claude).unwrap();
        let filled = template.fill(input, "/work");
        filled.map(|_| ()).map_err(|error| error.to_string())
    };
    let both = "!`echo \"$1\" > x.sh` and !`sh x.sh`";
    assert!(fill(both, "a b").unwrap_err().contains("runs a file"));
    assert!(fill(both, "touch").unwrap_err().contains("runs a file"));
    for fine in [
        "!`echo a > x.sh` and !`sh x.sh` for $ARGUMENTS",
        "!`git log \"$1\"` and !`sh x.sh`",
        "!`echo \"$1\" > x` and !`cat x`",
    ] {
        assert_eq!(fill(fine, "a b"), Ok(()), "{fine}");
    }
}

#[test]
fn a_word_does_not_become_an_option() {
    for command in [
        "git show $1",
        "git log \"$1\"",
        "git log \"$ARGUMENTS\"",
        "git show '$1'",
    ] {
        let refused = filled(command, "-oProxyCommand=touch").unwrap_err();
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
