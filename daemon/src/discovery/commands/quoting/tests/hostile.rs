//! Lines of command files with what somebody may type to have it run, in real bash.

use super::{filled, runs};

/// Lines as people write them, with what may become of the arguments: `+` hands them over as words,
/// `-` refuses them, `?` may do either.
const LINES: &[(char, &str)] = &[
    ('+', "echo $ARGUMENTS"),
    ('+', "echo \"$ARGUMENTS\""),
    ('+', "echo '$1' \"$2\""),
    ('+', "echo a-$1-b"),
    ('+', "printf '%s\\n' $ARGUMENTS"),
    ('+', "printf '%s\\n' \"$1\" | sort"),
    ('+', "printf '%s\\n' \"$1\" | tr a-z A-Z | head -3"),
    ('+', "cat -- $1"),
    ('+', "cat -- \"$ARGUMENTS\" 2>/dev/null || echo none"),
    ('+', "cat < $1"),
    ('+', "wc -l -- $1"),
    ('+', "head -n 5 -- $1"),
    ('+', "ls -la -- $1"),
    ('+', "ls -- $ARGUMENTS | wc -l"),
    ('+', "stat -c %s -- \"$1\""),
    ('+', "basename -- \"$1\""),
    ('+', "cd -- \"$1\" && pwd"),
    ('+', "test -f \"$1\" && echo file"),
    ('+', "[ -n \"$1\" ] && echo named"),
    ('+', "[ \"$1\" = x ] || echo other"),
    ('?', "[[ \"$1\" == x ]] || echo other"),
    ('?', "[[ $1 != x ]] && echo other"),
    ('+', "if [ -d \"$1\" ]; then echo folder; fi"),
    ('+', "grep -rn -- \"$1\" src"),
    ('+', "grep -rnF -e \"$1\" src | head"),
    ('+', "grep -c -- $1 here"),
    ('+', "grep x <<< \"$ARGUMENTS\""),
    ('+', "sed -n 1,3p <<< \"$ARGUMENTS\""),
    ('+', "awk '{ print $NF }' <<< \"$ARGUMENTS\""),
    ('+', "awk -v x=\"$1\" 'BEGIN { print x }'"),
    ('+', "jq -n --arg x \"$1\" .x"),
    ('+', "git log --oneline -- $1"),
    ('+', "git log --grep=\"$1\""),
    ('+', "git log --oneline $ARGUMENTS"),
    ('+', "git --no-pager diff -- \"$1\""),
    ('+', "git grep -n -e \"$1\""),
    ('+', "git grep $ARGUMENTS"),
    ('+', "git blame -- $1 | head -20"),
    ('+', "git commit --dry-run -m \"fix: $ARGUMENTS\""),
    ('+', "echo \"$(git log -1 -- $1)\""),
    ('+', "echo $(echo \"$1\" | tr a b)"),
    ('+', "x=$(git log -1 -- \"$1\"); echo \"$x\""),
    ('+', "echo $1 > /dev/null"),
    ('+', "echo $1 2>&1 | cat"),
    ('+', "(echo $1; echo \"$2\")"),
    ('+', "{ echo $1; }"),
    ('+', "env LC_ALL=C echo $1"),
    ('+', "command echo $1"),
    ('+', "printf '%s\\n' \"$1\" | xargs -0 -n 1 echo"),
    (
        '+',
        "printf '%s\\n' $1 | python3 -c 'import sys; print(sys.stdin.read())'",
    ),
    ('+', "python3 -c 'import sys; print(sys.argv[1])' $1"),
    ('+', "./show $1"),
    ('+', "./show --name=\"$1\" $2"),
    ('+', "sh ./show \"$1\""),
    ('+', "bash ./show $ARGUMENTS"),
    ('+', "sort -- $1"),
    ('+', "rg -n -- \"$1\" src"),
    ('+', "find . -name \"$1\""),
    ('+', "find . -maxdepth 1 $ARGUMENTS"),
    ('+', "date -d \"$1\" 2>/dev/null"),
    ('-', "$1"),
    ('-', "$ARGUMENTS"),
    ('-', "eval echo $1"),
    ('-', "eval \"echo $ARGUMENTS\""),
    ('-', "bash -c \"echo $1\""),
    ('-', "bash -c 'echo $1'"),
    ('-', "bash -c $1"),
    ('-', "sh -c 'eval $0' $1"),
    ('-', "timeout 5 bash -c $1"),
    ('-', "timeout 5 sh -c \"$ARGUMENTS\""),
    ('-', "nice -n 5 sh -c $1"),
    ('-', "nice sh -c \"$1\""),
    ('-', "env sh -c \"$ARGUMENTS\""),
    ('-', "env -S \"$ARGUMENTS\""),
    ('-', "env \"$1\" true"),
    ('-', "flock here -c \"$ARGUMENTS\""),
    ('-', "script -qc \"$ARGUMENTS\" /dev/null"),
    ('-', "setsid -w sh -c \"$1\""),
    ('-', "stdbuf -o0 sh -c \"$1\""),
    ('-', "xargs sh -c \"$1\" < /dev/null"),
    ('-', "echo \"$ARGUMENTS\" | xargs -I{} sh -c {}"),
    ('-', "echo \"$ARGUMENTS\" | xargs -d '\\n' sh -c"),
    ('-', "echo \"$ARGUMENTS\" | sh"),
    ('-', "echo \"$ARGUMENTS\" | bash -s"),
    ('-', "sh <<< \"$ARGUMENTS\""),
    ('-', "echo \"$ARGUMENTS\" > written; sh ./written"),
    ('-', "echo \"$ARGUMENTS\" > written && . ./written"),
    ('-', "echo \"$ARGUMENTS\" | tee written; bash ./written"),
    ('-', "source <(echo \"$ARGUMENTS\")"),
    ('-', "awk -v x=\"$ARGUMENTS\" 'BEGIN { system(x) }'"),
    ('-', "awk \"BEGIN { $1 }\""),
    ('-', "echo \"$ARGUMENTS\" | awk '{ system($0) }'"),
    ('-', "echo \"$ARGUMENTS\" | sed 's/^//e'"),
    ('-', "sed -n \"$1\" here"),
    (
        '-',
        "python3 -c 'import os, sys; os.system(sys.argv[1])' \"$ARGUMENTS\"",
    ),
    ('-', "perl -e 'system(@ARGV)' \"$ARGUMENTS\""),
    ('-', "echo \"$(case x in x) echo $1;; esac)\""),
    ('-', "echo \"$(case x in x) echo '$1';; esac)\""),
    ('-', "case $1 in x) echo y;; esac"),
    ('-', "echo \"${x:-'}\" $1 \"'\""),
    ('-', "echo $[ $1 ]"),
    ('-', "x=$1; echo $((x))"),
    ('-', "x=\"$1\"; [[ $x -gt 0 ]]"),
    ('-', "x=$(echo \"$1\"); echo $((x))"),
    ('-', "declare -i n; n=$(echo \"$1\")"),
    ('-', "RANDOM=$(echo \"$1\")"),
    ('-', "printf -v \"$1\" x"),
    ('-', "test -v \"$1\""),
    ('-', "trap \"$ARGUMENTS\" EXIT"),
    ('-', "alias z=\"$ARGUMENTS\""),
    ('-', "f() { eval \"$@\"; }; f $ARGUMENTS"),
    ('-', "f() { \"$@\"; }; f $ARGUMENTS"),
    ('-', "read -r v <<< \"$ARGUMENTS\"; eval \"$v\""),
    ('-', "mapfile -C \"$ARGUMENTS\" -c 1 x <<< a"),
    ('-', "find . -maxdepth 0 -exec sh -c \"$ARGUMENTS\" ';'"),
    ('-', "git -c alias.z=\"!$ARGUMENTS\" z"),
    ('-', "git -c core.pager=\"$ARGUMENTS\" -p log"),
    ('-', "git grep -O\"$1\" x"),
    ('-', "git bisect run $ARGUMENTS"),
    ('-', "GIT_PAGER=$(echo \"$ARGUMENTS\") git -p log"),
    ('-', "sort --compress-program=\"$1\" here"),
    ('-', "rg --pre \"$1\" x"),
    ('-', "make \"$1\""),
    ('-', "watch -n 1 \"$ARGUMENTS\""),
    ('-', "ssh -o \"$1\" localhost true"),
    ('-', "some-program \"$ARGUMENTS\""),
    ('-', "compgen -W \"$ARGUMENTS\""),
    ('-', "exec $ARGUMENTS"),
    ('-', "coproc sh -c \"$ARGUMENTS\""),
];

/// What somebody may type, to be run by one of these lines.
const HOSTILE: &[&str] = &[
    "$(touch pwned)",
    "; touch pwned",
    "`touch pwned`",
    "\"; touch pwned; \"",
    "'; touch pwned; '",
    "x\ntouch pwned\n",
    "touch pwned;",
    "\"touch pwned;\"",
    "\"a[$(touch pwned)]\"",
    "\"' $(touch pwned) '\" b",
    "-O'touch pwned'",
    "\"-Otouch pwned\"",
    "-oProxyCommand=\"touch pwned;\"",
    "--output=pwned '*'",
    "-exec touch pwned ';'",
    "-fprint pwned '*'",
    "--pre=./pwn '*'",
    "\"!touch pwned\"",
    "| touch pwned &",
    "$'\\n'touch$IFS'pwned'",
];

/// Plain words, which would be run where a program or a script is named.
const PLAIN: &[&str] = &["plain.rs", "./pwn", "touch pwned", "sh ./pwn", "sh pwn"];

#[test]
fn hostile_arguments_run_in_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("here"), "x 1\n").unwrap();
    std::fs::write(file("show"), "#!/bin/sh\nprintf '<%s>' \"$@\"\n").unwrap();
    let set_up = "chmod +x show; printf '#!/bin/sh\\ntouch pwned' > pwn; chmod +x pwn; git init -q .; git add .";
    runs(set_up, folder.path());
    assert!(LINES.len() >= 80, "{}", LINES.len());
    let mut ran = 0;
    // All of them at once, because a line is best understood beside the others.
    let mut wrong = Vec::new();
    for (verdict, command) in LINES {
        let mut accepted = 0;
        let mut reasons = Vec::new();
        for typed in HOSTILE {
            let line = match filled(command, typed) {
                Ok(line) => line,
                Err(refused) => {
                    reasons.push(refused);
                    continue;
                }
            };
            accepted += 1;
            runs(&line, folder.path());
            for made in ["pwned", "written"] {
                if std::fs::remove_file(file(made)).is_ok() {
                    wrong.push(format!("{line:?} made the file {made}"));
                }
            }
        }
        let is_expected = match verdict {
            '+' => accepted > 0,
            '-' => accepted == 0,
            _ => true,
        };
        if !is_expected {
            wrong.push(format!(
                "{command}: {accepted} accepted; {:?}",
                reasons.first()
            ));
        }
        for typed in PLAIN {
            if let Ok(line) = filled(command, typed) {
                runs(&line, folder.path());
                if std::fs::remove_file(file("pwned")).is_ok() {
                    wrong.push(format!("{line:?} ran a plain word"));
                }
            } else if *verdict == '+' && *typed == "plain.rs" {
                wrong.push(format!("{command}: refuses a plain word"));
            }
        }
        ran += accepted;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran > 500, "{ran}");
}
