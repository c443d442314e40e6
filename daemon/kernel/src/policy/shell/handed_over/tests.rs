use super::*;

#[test]
fn only_known_places_take_a_word_as_data() {
    for line in [
        "git log MARK",
        "git diff --name-only MARK | xargs -n 1 cat",
        "git diff MARK | xargs wc -l",
        "echo $(git show MARK)",
        "printf '%s' MARK | sort",
        "cat < MARK > out-MARK",
        "cat <<< MARK 2>&1",
        "[ \"x\" = MARK ] && echo yes",
        "[[ MARK == *.rs ]] && cargo check",
        "[ ! -f MARK ] || cat MARK",
        "test -n MARK && gh issue view MARK",
        "n=3; head -n \"$n\" MARK",
        "x=$(git log -1 MARK); echo \"$x\"",
        "./scripts/report.sh MARK",
        "sh scripts/report.sh MARK",
        "export PAGER=cat; git log MARK",
        "git log MARK | python3 -c 'import sys; print(sys.stdin.read())'",
        "env A=b nice cat MARK",
        "if git show MARK; then echo yes; fi",
    ] {
        assert!(
            why_not_handed_over(line, "MARK", Typed::Anything).is_none(),
            "{line}"
        );
    }
    for line in [
        "MARK",
        "[[ MARK -eq 1 ]] && echo y",
        "n=MARK; [[ $n -gt 0 ]]",
        "n=MARK; if [ \"$n\" -gt 0 ]; then echo y; fi",
        "echo MARK | { read n; [[ $n -gt 0 ]]; }",
        "test -v MARK",
        "x=MARK; [ -v \"$x\" ]",
        "[ MARK MARK ]",
        "let x=MARK",
        "declare MARK",
        "declare -i n=MARK",
        "local n=MARK",
        "unset MARK",
        "printf -v MARK x",
        "printf MARK a b",
        "x=MARK; echo $((x))",
        "x=MARK; ((y = x))",
        "x=MARK; echo ${!x}",
        "x=MARK; echo ${x@P}",
        "x=MARK git log",
        "arr[MARK]=3",
        "arr=(MARK)",
        "for x in MARK; do echo $((x)); done",
        "read v <<< MARK; eval echo $v",
        "export A=MARK; bash -c \"echo $A\"",
        "git log MARK; bash -c \"echo $A\"",
        "xargs -I{} sh -c {} <<< MARK",
        "echo MARK | xargs -I{} sh -c {}",
        "echo MARK | xargs -I{} {}",
        "echo MARK | xargs \"$x\"",
        "echo MARK | sh",
        "echo MARK | bash -s",
        "echo MARK | python3",
        "echo MARK | bc",
        "bash <<< MARK",
        "bc <<< MARK",
        "$(echo MARK)",
        "eval \"$(echo MARK)\"",
        "awk \"$(echo MARK)\" file",
        "ssh host \"$(echo MARK)\"",
        "source MARK",
        ". MARK",
        "trap MARK EXIT",
        "alias z=MARK",
        "make MARK",
        "env MARK true",
        "command MARK",
        "echo {a,MARK}",
        "echo hi >& MARK",
        "case MARK in a) ls ;; esac",
        "echo \"$(case x in x) echo MARK;; esac)\"",
        "timeout 5 bash -c MARK",
        "nice -n 5 sh -c MARK",
        "flock lock -c MARK",
        "script -c MARK out",
        "env sh -c MARK",
        "awk -v x=MARK 'BEGIN { system(x) }'",
        "echo MARK | awk '{ system($0) }'",
        "echo MARK > x.sh; sh x.sh",
        "echo MARK | tee run; ./run",
        "watch MARK",
        "unknown-program MARK",
        "git -c core.pager=MARK log",
        "git log --output=MARK",
        "git grep -O MARK",
        "git grep -O MARK x",
        "git grep $(echo MARK)",
        "git bisect run MARK",
        "rg --pre MARK x",
        "sort --compress-program MARK file",
        "find . -exec MARK ';'",
        "PAGER=$(echo MARK) git log",
        "RANDOM=$(echo MARK)",
        "declare -i n; n=$(echo MARK)",
        "echo MARK | sqlite3 db",
        "echo MARK | ssh host",
        "sh -c 'eval \"$1\"' _ MARK",
        "python3 -c 'import os, sys; os.system(sys.argv[1])' MARK",
        "echo \"${x:-'}\" MARK \"'\"",
        "echo $[MARK]",
        "npm test -- MARK",
        "a[$(echo MARK)]=1",
        "x=$(echo MARK); a[$x]=1",
        "x=$(echo MARK); ((x > 1))",
        "x=$(echo MARK); [[ $x -gt 1 ]]",
        "python3 MARK",
        "sh MARK",
        "tree -o MARK",
        "gh repo clone x -- MARK",
    ] {
        assert!(
            why_not_handed_over(line, "MARK", Typed::Anything).is_some(),
            "{line}"
        );
    }
}

#[test]
fn plain_words_may_name_targets_and_nothing_that_runs() {
    let plain = |line| why_not_handed_over(line, "MARK", Typed::Plain);
    for line in ["make MARK", "npm test -- MARK | tail -3", "git log MARK"] {
        assert_eq!(plain(line), None, "{line}");
    }
    for line in [
        "MARK",
        "npm exec MARK",
        "make -f MARK",
        "docker exec c MARK",
        "eval MARK",
        "sh -c MARK",
        "sh MARK",
        "x=MARK",
        "watch MARK",
    ] {
        assert!(plain(line).is_some(), "{line}");
    }
}

#[test]
fn places_of_options_are_known() {
    for (line, expected) in [
        ("ssh MARK ls", true),
        ("git log MARK", true),
        ("git log 'MARK x'", true),
        ("git log -- MARK", false),
        ("git log --since=MARK", false),
        ("echo MARK", false),
        ("printf '%s' MARK", false),
        ("printf MARK", true),
        ("cat <<< MARK", false),
        ("echo $(git show MARK)", true),
    ] {
        assert_eq!(may_be_option(line, "MARK"), expected, "{line}");
    }
}
