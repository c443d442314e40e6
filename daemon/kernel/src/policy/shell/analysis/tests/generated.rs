//! Generated lines against three sets of rules. Real bash runs each line that needs no question:
//! it calls nothing but what was read in the line, nothing that is denied, and a line that only
//! looks leaves every file as it was.
//!
//! `LOOPD_POLICY_LINES` says how many lines each set of rules has to allow.

use std::collections::BTreeSet;

use loopd_proto::permission::{PermissionRule, Permissions};

use super::rig::Rig;
use super::rules::{ALLOWED, everything_but, is_denied, only, verdict};
use crate::policy::Verdict;
use crate::policy::shell::reader::Script;
use crate::policy::shell::word::Word;

/// How many lines run for each set of rules if the environment does not say.
const LINES: usize = 200;

/// How many lines are made for each line that has to run.
const ATTEMPTS: usize = 60;

#[rustfmt::skip]
const COMMANDS: &[&[&str]] = &[
    &["ls"], &["ls", "-la", "x"], &["ls", "*"], &["ls", "x/*"], &["cat", "in"], &["cat", "-n", "in"], &["head", "-1", "in"],
    &["tail", "-n", "1", "in"], &["wc", "-l", "in"], &["grep", "-n", "a", "in"], &["grep", "-rn", "a", "."],
    &["grep", "-c", "a", "*"], &["find", ".", "-name", "in"], &["find", "x", "-type", "f"], &["sed", "-n", "1p", "in"],
    &["sed", "s/a/b/", "in"], &["awk", "{print $1}", "in"], &["sort", "in"], &["sort", "-u", "in"], &["sort", "*"], &["rg", "a", "*"], &["uniq", "-c", "in"],
    &["cut", "-c1", "in"], &["tr", "a", "b"], &["git", "status"], &["git", "log", "--oneline"], &["git", "diff"],
    &["git", "show", "HEAD:in"], &["git", "branch"], &["git", "branch", "-a"], &["git", "tag"], &["git", "ls-files"],
    &["git", "config", "--get", "user.name"], &["git", "rev-parse", "HEAD"], &["echo", "hi"], &["echo", "$HOME"],
    &["printf", "%s\n", "a"], &["pwd"], &["true"], &["test", "-f", "in"], &["[", "-d", "x", "]"], &["date"], &["jq", ".", "in"],
    &["rg", "a", "in"], &["tree", "x"], &["diff", "in", "in"], &["xxd", "in"], &["cd", "x"], &["which", "rm"], &["env"],
    &["rm", "y"], &["touch", "y"], &["make", "test"], &["npm", "test"], &["cargo", "test"], &["tar", "tf", "arc.tar"],
    &["docker", "ps"], &["kubectl", "get"], &["curl", "x.y"], &["git", "commit", "--allow-empty", "-m", "m"],
];

#[rustfmt::skip]
const WRAPPERS: &[&str] = &[
    "env", "nice", "timeout 5", "command", "exec", "xargs", "sh -c", "bash -c", "eval", "time", "!", "A=b", "PATH=.",
    "LD_PRELOAD=./x.so", "A=$(evil)", "builtin", "nohup", "2>&1", "coproc", "if true; then", "{", "(", "f()", "env -S",
    "stdbuf -o0", "busybox", "unknownwrapper", "LC_ALL=C", "while false; do", "trap", "alias ls=evil;", "ls() { evil; };",
];

#[rustfmt::skip]
const ADDED: &[&str] = &[
    "evil", "rm", "-rf", "--", "-exec", "{}", "+", ";", "-delete", "-o", "out", "-oout", "--output=out", "--pre=evil",
    "-c", "core.pager=evil", "-i", "> out", ">> out", "2>/dev/null", "2>&1", "&> out", ">&2", "< in", "<<< evil", "| evil",
    "| tee out", "| sh", "| xargs evil", "&& evil", "; evil", "& evil", "\n evil", "|| evil", "|& evil", "$(evil)", "`evil`",
    "\"$(evil)\"", "'$(evil)'", "<(evil)", ">(evil)", "$x", "\"$x\"", "${x}", "${x:=evil}", "${PATH:=.}", "$((x=1))",
    "$'evil'", "{evil,x}", "{1..3}", "*", "?", "x/*", "-*", "~", "#", "\\", "\\\n", "\r", "\t", "\u{a0}", "\u{200b}", "é",
    "=", "a[$(evil)]", "'a[$(evil)]'", "-v", "fi", "}", ")", "done", "]]", "[[", "((", "<<E\n$(evil)\nE", "<<'E'\n$(evil)\nE\n",
    "HEAD", "--ext-diff", "-Oevil", "--show-signature", "1e evil", "w out", "/x/", "1p", "-e", "-f", "-n", "-L", "-R", "EXIT",
];

#[rustfmt::skip]
const JOINTS: &[&str] = &[" && ", " && ", "; ", " | ", " | ", " || ", "\n", " & ", ";", "&&", "|"];

/// A source of numbers that is the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound.max(1) as u64).unwrap_or_default()
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        let place = self.roll(all.len());
        *all.get(place).unwrap_or_else(|| unreachable!())
    }

    /// Writes a word in one of the ways in which bash reads it as the same word, or nearly so.
    fn spelled(&mut self, word: &str) -> String {
        let has_quotes = word.contains(['\'', '"', '\\', '\n']);
        let is_special =
            word.contains([' ', '$', '{', '[', '*', '?', '|', ';', '&', '<', '>', '(']);
        match self.roll(12) {
            0 if !has_quotes => format!("'{word}'"),
            1 if !has_quotes => format!("\"{word}\""),
            2 if !is_special && !has_quotes && word.len() > 1 => {
                let (start, end) = word.split_at_checked(1).unwrap_or((word, ""));
                format!("{start}''{end}")
            }
            3 if !is_special && !has_quotes => format!("\\{word}"),
            4 if !is_special && !has_quotes => format!("$'{word}'"),
            _ if is_special
                && !has_quotes
                && !matches!(word, "*" | "x/*" | "$HOME" | "[" | "]") =>
            {
                format!("'{word}'")
            }
            _ => word.to_owned(),
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        for place in 0..=self.roll(3) {
            if place > 0 {
                line.push_str(self.pick(JOINTS));
            }
            if self.roll(12) == 0 {
                line.push_str(self.pick(WRAPPERS));
                line.push(' ');
            }
            let words = self.pick(COMMANDS);
            let spelled: Vec<String> = words.iter().map(|word| self.spelled(word)).collect();
            line.push_str(&spelled.join(" "));
            for _ in 0..self.roll(5).saturating_sub(2) {
                line.push(' ');
                line.push_str(self.pick(ADDED));
            }
        }
        line
    }
}

fn wanted() -> usize {
    let given = std::env::var("LOOPD_POLICY_LINES").ok();
    given
        .and_then(|number| number.parse().ok())
        .unwrap_or(LINES)
}

/// Whether the words of a command can become this call.
fn may_become(words: &[Word], call: &[String]) -> bool {
    let Some((first, others)) = words.split_first() else {
        return call.is_empty();
    };
    if first.may_be_several() {
        return (0..=call.len())
            .any(|taken| may_become(others, call.get(taken..).unwrap_or_default()));
    }
    call.split_first()
        .is_some_and(|(own, rest)| first.may_be(own) && may_become(others, rest))
}

/// Makes lines until enough of them are allowed, and returns what `check` says of those.
fn run_allowed(
    permissions: &Permissions,
    seed: u64,
    mut check: impl FnMut(&str) -> Option<String>,
) -> Vec<String> {
    let mut dice = Dice(seed);
    let mut known = BTreeSet::new();
    let (mut wrong, mut ran, mut made) = (Vec::new(), 0, 0);
    while ran < wanted() && made < wanted() * ATTEMPTS {
        made += 1;
        let line = dice.line();
        if verdict(permissions, &line) == Verdict::Allow && known.insert(line.clone()) {
            ran += 1;
            wrong.extend(check(&line));
        }
    }
    assert!(ran >= wanted(), "only {ran} of {made} lines were allowed");
    wrong
}

/// Names what a line called that was not read in it.
fn unread(rig: &Rig, line: &str) -> Option<String> {
    let script = Script::read(line);
    let calls = rig.run(line).calls;
    let is_read = |call: &Vec<String>| {
        let mut commands = script.commands.iter();
        commands.any(|command| may_become(&command.words, call))
    };
    let call = calls.iter().find(|call| !is_read(call))?;
    Some(format!("{line:?} called {call:?}"))
}

#[test]
fn generated_lines_that_only_look_change_nothing() {
    let look = Permissions {
        approved: vec![PermissionRule {
            kind: "look".to_owned(),
            argument: None,
        }],
        ..Permissions::default()
    };
    let rig = Rig::new();
    // Names of files that are options of `sort` and others, which patterns are given to.
    rig.run("touch -- -oout -rf");
    let before = rig.files();
    assert!(before.len() > 8, "{before:?}");
    let wrong = run_allowed(&look, 0x9e37_79b9_7f4a_7c15, |line| {
        let called = unread(&rig, line);
        let after = rig.files();
        let changed = (after != before).then(|| format!("{line:?} changed {after:?}"));
        called.or(changed)
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn generated_lines_that_rules_allow_call_only_what_is_read_in_them() {
    let rig = Rig::new();
    let wrong = run_allowed(&only(ALLOWED), 0x2545_f491_4f6c_dd1d, |line| {
        unread(&rig, line)
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn generated_lines_call_nothing_that_is_denied() {
    let rig = Rig::new();
    let wrong = run_allowed(&everything_but(), 0xd1b5_4a32_d192_ed03, |line| {
        let calls = rig.run(line).calls;
        let call = calls.iter().find(|call| is_denied(call))?;
        Some(format!("{line:?} called {call:?}"))
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
