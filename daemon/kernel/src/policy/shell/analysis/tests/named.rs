//! Rules that name one program, such as `shell(patch:*)`. They cover what the program does itself.
//! They do not cover what its input, its files or another program make of the call.

use super::rig::lines;
use super::rules::{only, verdict};
use crate::policy::Verdict;

/// Judges a line by a rule for each of its programs.
fn is_allowed(line: &str) -> bool {
    let program = line.split(' ').next().unwrap_or_default();
    let rule = format!("{program}:*");
    verdict(&only(&[&rule]), line) == Verdict::Allow
}

#[test]
fn a_rule_for_a_name_covers_what_that_program_does_itself() {
    let mut wrong = Vec::new();
    for line in lines(include_str!("data/named.txt")) {
        let (mark, text) = line.split_once(' ').unwrap_or_default();
        if is_allowed(text) != (mark == "+") {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
