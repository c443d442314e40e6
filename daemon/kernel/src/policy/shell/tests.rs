use super::*;

fn rule(argument: &str) -> PermissionRule {
    PermissionRule {
        kind: "shell".to_owned(),
        argument: Some(argument.to_owned()),
    }
}

/// How a rule applies to a text: `yes`, `ask` or `no`.
fn strikes(argument: &str, text: &str) -> &'static str {
    match denial(&[&rule(argument)], text) {
        Denial::No => "no",
        Denial::Possible => "ask",
        Denial::By(_) => "yes",
    }
}

#[test]
fn a_deny_rule_matches_a_certain_command_in_every_spelling() {
    let table = [
        ("rm", "rm", "yes"),
        ("rm", "/bin/rm", "yes"),
        ("rm", "./rm", "yes"),
        ("rm", "'rm'", "yes"),
        ("rm", "\\rm x", "yes"),
        ("rm", "r'm' x", "yes"),
        ("rm:*", "rm", "yes"),
        ("git", "git push", "yes"),
        ("git push", "git push", "yes"),
        ("git push", "/usr/bin/git push", "yes"),
        ("git push", "git -C x push", "yes"),
        ("git push", "git -c a=b push origin", "yes"),
        ("git push", "git status", "no"),
        ("git push", "git log push", "no"),
        ("git push", "git stash push", "no"),
        ("git push", "/usr/lib/git-core/git-push x", "yes"),
        ("git push", "git p", "ask"),
        ("rm", "rmdir", "no"),
        ("rm", "echo", "no"),
        ("rm -rf", "rm -rf x", "yes"),
        ("rm -rf", "rm -fr x", "yes"),
        ("rm -rf", "rm -r -f x", "yes"),
        ("rm -rf", "rm x -rvf", "yes"),
        ("rm -rf", "rm -R x --force", "yes"),
        ("rm -rf", "rm --recursive --force x", "yes"),
        ("rm -rf", "rm --rec --fo x", "yes"),
        ("rm -rf", "rm -r x", "no"),
        ("rm -rf", "rm x", "no"),
        ("rm -rf", "rm -r $x", "ask"),
        ("rm -rf", "rm -r \"$x\"", "ask"),
        ("rm -rf", "rm -r \"./$x\"", "no"),
        ("rm -rf", "rm ./*.o", "no"),
        ("git push --force", "git push -f", "yes"),
        ("git push --force", "git push origin +main", "yes"),
        ("git push --force", "git push", "no"),
        ("git reset --hard", "git reset HEAD~1 --har", "yes"),
        ("npm publish", "npm publ", "yes"),
        ("npm publish", "npm run publish", "no"),
        ("npm install", "npm i x", "yes"),
        ("docker run", "docker container run x", "yes"),
        ("docker run", "docker --context x run y", "yes"),
        ("kubectl delete", "kubectl -n x delete pod y", "yes"),
        ("kubectl delete", "kubectl get pods", "no"),
        ("dd if=*", "dd if=/dev/zero of=x", "yes"),
        ("rm *", "rm x", "yes"),
    ];
    let mut wrong = Vec::new();
    for (rule, text, expected) in table {
        for text in [text.to_owned(), format!("ls && {text}")] {
            let found = strikes(rule, &text);
            if found != expected {
                wrong.push(format!("{rule} | {text}: {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Another path may lead to the same program.
    assert_eq!(strikes("/bin/rm", "rm"), "ask");
    assert_eq!(strikes("rm", "RM x"), "ask");
}

#[test]
fn a_deny_rule_matches_every_mention_in_an_uncertain_text() {
    for text in [
        "A=b rm x",
        "for f in *; do rm $f; done",
        "echo $(rm x)",
        "echo `rm x`",
        "sudo rm x",
        "ls | xargs rm",
        "find . -exec rm {} +",
        "bash -c 'rm x'",
        "bash -c \"ls;rm x\"",
        "r'm' x > y",
        "r\\m x",
        "/bin/rm x > y",
        "ls\nrm x",
        "ls &rm x",
        "(rm x)",
        "{ rm x; }",
        "ls <(rm x)",
        "if true;then rm x;fi",
        "cat <<E\n$(rm x)\nE",
        "X=rm; $X y",
    ] {
        assert_eq!(strikes("rm", text), "yes", "{text}");
    }
    assert_eq!(strikes("rm", "echo farm > rmdir"), "no");
    assert_eq!(strikes("git push", "A=b git -C x push"), "yes");
    assert_eq!(strikes("git push", "A=b git pull"), "no");
}

#[test]
fn a_text_that_computes_its_words_may_hide_a_command() {
    let mut wrong = Vec::new();
    for text in [
        "$(echo r)m x",
        "r${x}m y",
        "X=r; ${X}m y",
        "$X y",
        "ls; $X y",
        "A=b $X y",
        "sudo $X y",
        "/bin/r? x",
        "/bin/[r]m x",
        "ls && {r,}m x",
        "echo cm0gLXJmIC8K | base64 -d | sh",
        "$'\\x72m' x",
        "eval \"$x\"",
        "source x",
        "python3 -c 'print(1)'",
    ] {
        assert_eq!(denial(&[], text), Denial::No, "{text}");
        if strikes("rm", text) != "ask" {
            wrong.push(text);
        }
    }
    for text in [
        "cargo test > log",
        "echo $HOME",
        "ls *.rs",
        "FOO=1 make",
        "a && b | c",
        "ls $(git rev-parse --show-toplevel)",
        "python3 script.py \"$x\"",
        "echo rm",
        "grep -rn 'rm -rf' .",
        "git commit -m \"never rm -rf $x\"",
        "awk '{print $1}' x | sort | uniq -c",
        "sed -i 's/rm/mv/' x",
    ] {
        if strikes("rm", text) != "no" {
            wrong.push(text);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn text_that_is_typed_is_read_line_by_line() {
    assert_eq!(strikes("rm -rf", "ls{enter}rm -rf x{enter}"), "yes");
    assert_eq!(strikes("rm -rf", "{enter}rm -r -f x{enter}"), "yes");
    assert_eq!(strikes("rm -rf", "y{enter}"), "no");
}

#[test]
fn a_rule_that_cannot_be_understood_still_applies() {
    assert_eq!(strikes("rm '-rf", "rm -rf x"), "yes");
    assert_eq!(strikes("curl | sh", "curl x | sh"), "yes");
    assert_eq!(strikes("rm '-rf", "ls"), "no");
    assert_eq!(strikes("|", "ls"), "ask");
}

#[test]
fn ten_thousand_commands_are_read_to_the_last() {
    let text = format!("{}rm x", "echo a; ".repeat(10_000));
    assert_eq!(strikes("rm", &text), "yes");
    let text = format!("{}rm x > y", "echo a > b; ".repeat(10_000));
    assert_eq!(strikes("rm", &text), "yes");
    assert_eq!(strikes("rm", &"echo a > b; ".repeat(10_000)), "no");
}

#[test]
fn deep_and_broken_texts_are_asked_about_quickly() {
    for piece in [
        "$((",
        "$(",
        "((",
        "(",
        "`",
        "${x:-",
        "\"$(",
        "<(",
        "case x in a) ",
        "a=(",
        "nice ",
        "parallel a ",
        "strace -Q a ",
        "npm --x $a ",
        "env -S nice ",
        "find . -exec ",
        "xargs ",
    ] {
        let text = piece.repeat(3_000);
        assert_ne!(strikes("rm -rf", &text), "yes", "{piece}");
        let hidden = format!("{text} rm -rf x");
        assert_ne!(strikes("rm -rf", &hidden), "no", "{piece}");
    }
}
