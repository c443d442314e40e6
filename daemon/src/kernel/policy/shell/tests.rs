use super::*;

fn command(identifier: &str) -> ShellCommand {
    ShellCommand {
        identifier: identifier.to_owned(),
        read_only: false,
    }
}

#[test]
fn a_deny_rule_hits_a_certain_command_however_it_is_spelled() {
    let table = [
        ("rm", "rm", true),
        ("rm", "/bin/rm", true),
        ("rm", "./rm", true),
        ("rm", "'rm'", true),
        ("rm:*", "rm", true),
        ("git", "git push", true),
        ("git push", "git push", true),
        ("git push", "/usr/bin/git push", true),
        ("git push", "git -C x push", true),
        ("git push", "git -c a=b push origin", true),
        ("git push", "git status", false),
        ("rm", "rmdir", false),
        ("rm", "echo", false),
        ("/bin/rm", "rm", false),
    ];
    for (rule, identifier, expected) in table {
        let commands = [command("ls"), command(identifier)];
        let denied = denies(rule, "x", &commands, Reading::Certain);
        assert_eq!(denied, expected, "{rule} {identifier}");
    }
}

#[test]
fn a_deny_rule_hits_every_mention_in_an_uncertain_text() {
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
        assert!(denies("rm", text, &[], Reading::Uncertain), "{text}");
    }
    assert!(!denies("rm", "echo farm > rmdir", &[], Reading::Uncertain));
    assert!(denies(
        "git push",
        "A=b git -C x push",
        &[],
        Reading::Uncertain
    ));
    assert!(!denies("git push", "A=b git pull", &[], Reading::Uncertain));
}

#[test]
fn a_text_that_computes_its_words_may_hide_a_command() {
    let denied = [PermissionRule {
        kind: "commands".to_owned(),
        argument: Some("rm".to_owned()),
    }];
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
        "eval \"r\"\"m x\"",
        "$'\\x72m' x",
    ] {
        assert!(may_hide(&denied, text), "{text}");
        assert!(!may_hide(&[], text), "{text}");
    }
    for text in [
        "cargo test > log",
        "echo $HOME",
        "ls *.rs",
        "FOO=1 make",
        "a && b | c",
    ] {
        assert!(!may_hide(&denied, text), "{text}");
    }
}

#[test]
fn ten_thousand_commands_are_read_to_the_last() {
    let mut commands: Vec<ShellCommand> = (0..10_000).map(|_| command("echo")).collect();
    assert!(!denies("rm", "x", &commands, Reading::Certain));
    commands.push(command("rm"));
    assert!(denies("rm", "x", &commands, Reading::Certain));
    let text = format!("{}rm x > y", "echo a > b; ".repeat(10_000));
    assert!(denies("rm", &text, &[], Reading::Uncertain));
}
