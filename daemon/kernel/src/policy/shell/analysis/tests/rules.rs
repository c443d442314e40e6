//! Rules with arguments, tested on our own command lines in `data/`, one per line. Real bash runs
//! the lines that the rules allow.

use std::collections::BTreeSet;

use loopd_proto::permission::{PermissionRule, Permissions};

use super::rig::{Rig, lines};
use super::stubs::request;
use crate::policy::shell::analysis::Syntax;
use crate::policy::{Verdict, judge};

#[rustfmt::skip]
const DENIED: &[&str] = &[
    "rm -rf", "git push", "git reset --hard", "npm publish", "curl:*", "dd", "docker run", "kubectl delete",
    "sudo:*",
];

#[rustfmt::skip]
pub(super) const ALLOWED: &[&str] = &[
    "git:*", "cargo:*", "npm:*", "go:*", "make:*", "curl:*", "wget:*", "find", "sed", "awk", "tar", "sort",
    "uniq", "rg", "fd", "jq", "tree", "grep", "ip:*", "dpkg", "ls", "cat", "echo", "head", "tail", "wc",
    "cut", "tr", "printf", "true", "test", "date", "pnpm:*", "yarn:*", "just:*", "gcc",
    "file", "xxd", "shuf", "iconv", "yq", "nm", "ss", "hostname", "lsof", "tee",
];

/// Rules that a developer typically allows in addition.
#[rustfmt::skip]
const ALSO_ALLOWED: &[&str] = &[
    "cd", "pwd", "docker:*", "kubectl:*", "gh:*", "pip:*", "mkdir", "touch", "cp", "mv", "rm", "chmod",
    "diff", "ps", "which", "du", "df", "file", "stat", "sleep", "cmake", "ruff", "black", "mypy", "tsc",
    "rustc", "rustup:*", "gofmt", "mvn", "g++", "terraform:*", "helm:*", "kill", "uname", "whoami", "id",
    "nproc", "free", "sha256sum", "unzip", "gzip", "openssl", "ping", "dig", "pytest", "brew:*", "uv:*",
];

fn rules(arguments: &[&str]) -> Vec<PermissionRule> {
    let rule = |argument: &&str| PermissionRule {
        kind: "shell".to_owned(),
        argument: Some((*argument).to_owned()),
    };
    arguments.iter().map(rule).collect()
}

pub(super) fn everything_but() -> Permissions {
    Permissions {
        approve_all: true,
        denied: rules(DENIED),
        ..Permissions::default()
    }
}

pub(super) fn only(allowed: &[&str]) -> Permissions {
    Permissions {
        approved: rules(allowed),
        ..Permissions::default()
    }
}

pub(super) fn verdict(permissions: &Permissions, line: &str) -> Verdict {
    judge(permissions, "/project", &request(line))
}

/// Decides independently of the rules whether they should deny a call.
pub(super) fn is_denied(call: &[String]) -> bool {
    let Some((program, arguments)) = call.split_first() else {
        return false;
    };
    let has = |word: &str| arguments.iter().any(|own| own == word);
    let letter = |letters: &[char], long: &str| {
        arguments.iter().any(|own| {
            (own.starts_with('-') && !own.starts_with("--") && own.contains(letters))
                || (own.len() > 2 && long.starts_with(own.as_str()))
        })
    };
    let first = arguments.iter().find(|own| !own.starts_with('-'));
    match program.as_str() {
        "rm" => letter(&['r', 'R'], "--recursive") && letter(&['f'], "--force"),
        "git" => {
            first.is_some_and(|own| own == "push")
                || (first.is_some_and(|own| own == "reset") && has("--hard"))
        }
        "curl" | "dd" | "sudo" => true,
        "npm" => first.is_some_and(|own| own == "publish"),
        "docker" => first.is_some_and(|own| own == "run"),
        "kubectl" => first.is_some_and(|own| own == "delete"),
        _ => false,
    }
}

/// Runs a line that the rules allow, and returns what went wrong.
fn run_against_deny_rules(rig: &Rig, line: &str) -> Option<String> {
    let ran = rig.run(line);
    if let Some(call) = ran.calls.iter().find(|call| is_denied(call)) {
        return Some(format!("{line:?} ran {call:?}"));
    }
    (!ran.folder_stands).then(|| format!("{line:?} removed the folder"))
}

#[test]
fn no_spelling_of_a_denied_command_runs_without_a_question() {
    let permissions = everything_but();
    let all: Vec<String> = lines(include_str!("data/denied.txt")).collect();
    assert!(all.len() >= 500, "{}", all.len());
    let allowed: Vec<&String> = all
        .iter()
        .filter(|line| verdict(&permissions, line) == Verdict::Allow)
        .collect();
    assert!(allowed.is_empty(), "allowed: {allowed:#?}");
    let rig = Rig::new();
    // The rig must be able to show a violation.
    for line in [
        "env nice rm -rf x",
        "find x -exec rm -r -f {} +",
        "/bin/rm -rf x",
    ] {
        assert!(run_against_deny_rules(&rig, line).is_some(), "{line}");
    }
}

#[test]
fn a_line_that_only_mentions_a_denied_command_runs_and_runs_nothing_denied() {
    let permissions = everything_but();
    let rig = Rig::new();
    let mut wrong = Vec::new();
    for line in lines(include_str!("data/decoys.txt")) {
        match verdict(&permissions, &line) {
            Verdict::Allow => wrong.extend(run_against_deny_rules(&rig, &line)),
            other => wrong.push(format!("{line:?}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Random lines of wrappers, commands, quotes and joints. Those that the deny rules allow are run.
/// No piece may name a real program by its path: `/bin/rm -f /bin/rm` is not denied.
#[test]
fn no_random_line_runs_what_is_denied() {
    #[rustfmt::skip]
    let pieces = [
        "rm", "-rf", "-r", "-f", "x", "y", "r", "m", "'rm'", "\"rm\"", "\\rm", "git", "push", "curl", "echo", "ls",
        "env", "nice", "timeout 5", "nohup", "xargs", "find . -exec", "{} +", "{} \\;", "sh -c", "bash -c", "eval",
        "command", "exec", "-S", "-n 5", "-i", "A=b", "a=rm;", "$a", "\"$a\"", "${a}", "$(echo rm)", "`echo rm`",
        "$(", ")", "`", "'", "\"", "'rm -rf x'", "\"rm -rf x\"", "'echo hi'", "{rm,-rf,x}", "../bin/rm", "../bin/r?",
        "(", "{", "}", "if", "then", "fi", "for i in 1; do", "done", "while false; do", "case a in a)", "esac",
        "!", "time", "coproc", "function f {", "f()", "f", "> out", "2>&1", "< in", "<<< 'rm -rf x'", "<(rm -rf x)",
        "<<E\nrm -rf x\nE\n", "<<E\n$(rm -rf x)\nE\n", "-I{}", "{}", "--", "-0", "-exec", "trap", "EXIT", "[[", "]]",
        "((", "))", "$((", "a[$(rm -rf x)]", "'a[$(rm -rf x)]'", "printf -v", "test -v", "#", "*", "-*", "busybox",
        "unknownwrapper", "python3 -c", "sed", "'1e rm -rf x'", "awk", "'BEGIN{system(\"rm -rf x\")}'", "in", "s",
    ];
    let joints = [
        " ", " ", " ", " ", " ", " ", "", "; ", " && ", " | ", "\n", " & ", " || ",
    ];
    let permissions = everything_but();
    let rig = Rig::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % bound as u64).unwrap_or_default()
    };
    let mut wrong = Vec::new();
    let (mut ran, mut made) = (0, 0);
    while ran < 250 && made < 20_000 {
        made += 1;
        let mut line = String::new();
        for _ in 0..2 + next(8) {
            line.push_str(pieces.get(next(pieces.len())).copied().unwrap_or_default());
            line.push_str(joints.get(next(joints.len())).copied().unwrap_or_default());
        }
        // Lines without any denied word prove nothing.
        let is_worth_it = line.contains("rm") && line.contains('-');
        if is_worth_it && verdict(&permissions, &line) == Verdict::Allow {
            ran += 1;
            wrong.extend(run_against_deny_rules(&rig, &line));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(ran >= 200, "only {ran} of {made} lines were allowed");
}

#[test]
fn generous_allow_rules_cover_only_what_is_harmless() {
    let permissions = only(ALLOWED);
    let all: Vec<String> = lines(include_str!("data/allowed.txt")).collect();
    assert!(all.iter().filter(|line| line.starts_with('?')).count() >= 400);
    let rig = Rig::new();
    let mut wrong = Vec::new();
    for line in all {
        let (mark, text) = line.split_once(' ').unwrap_or_default();
        let allowed = verdict(&permissions, text) == Verdict::Allow;
        if allowed != (mark == "+") {
            wrong.push(format!("{line:?}: allowed is {allowed}"));
        }
        if !allowed {
            continue;
        }
        let Syntax::Plain(predicted) = Syntax::of(text) else {
            unreachable!("{text:?} was allowed without being understood");
        };
        let predicted: BTreeSet<Vec<String>> = predicted.into_iter().collect();
        for call in rig.run(text).calls {
            if !predicted.contains(&call) {
                wrong.push(format!("{text:?} ran {call:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn everyday_commands_of_developers_are_seldom_asked_about() {
    let all: Vec<String> = lines(include_str!("data/everyday.txt")).collect();
    assert!(all.len() >= 400, "{}", all.len());
    let permissions = everything_but();
    let asked: Vec<&String> = all
        .iter()
        .filter(|line| verdict(&permissions, line) != Verdict::Allow)
        .collect();
    // A person tolerates questions about 5 % of the lines. Today it is 13 of 418.
    assert!(
        asked.len() * 20 <= all.len(),
        "{} of {}: {asked:#?}",
        asked.len(),
        all.len()
    );

    // Of the plain commands that rules name, few are asked about because of their options.
    let allowed = [ALLOWED, ALSO_ALLOWED].concat();
    let permissions = only(&allowed);
    let is_named = |argv: &Vec<String>| {
        let program = argv.first().map_or("", String::as_str);
        allowed
            .iter()
            .any(|rule| rule.trim_end_matches(":*") == program)
    };
    let named: Vec<&String> = all
        .iter()
        .filter(|line| match Syntax::of(line) {
            Syntax::Plain(commands) => commands.iter().all(is_named),
            Syntax::Opaque => false,
        })
        .collect();
    let asked: Vec<&&String> = named
        .iter()
        .filter(|line| verdict(&permissions, line) != Verdict::Allow)
        .collect();
    assert!(
        asked.len() * 10 <= named.len(),
        "{} of {}: {asked:#?}",
        asked.len(),
        named.len()
    );
}
