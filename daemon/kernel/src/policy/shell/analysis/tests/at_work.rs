//! How many needless questions people get about commands that only look, with the default rules.

use loopd_proto::permission::{PermissionRule, Permissions};

use super::rig::lines;
use super::stubs::request;
use crate::policy::{Verdict, judge};

#[test]
fn commands_that_only_look_are_seldom_asked_about() {
    let rule = |kind: &str, argument: Option<&str>| PermissionRule {
        kind: kind.to_owned(),
        argument: argument.map(str::to_owned),
    };
    // The rules that `loop` gives to every new session.
    let permissions = Permissions {
        approved: vec![rule("look", None), rule("read", Some("/project"))],
        ..Permissions::default()
    };
    let all: Vec<String> = lines(include_str!("data/at_work.txt")).collect();
    let (mut looks, mut needless, mut unasked) = (0, Vec::new(), Vec::new());
    for line in &all {
        let (mark, text) = line.split_once(' ').unwrap_or_default();
        let allowed = judge(&permissions, "/project", &request(text)) == Verdict::Allow;
        looks += usize::from(mark == "-");
        if mark == "-" && !allowed {
            needless.push(text);
        }
        if mark == "?" && allowed {
            unasked.push(text);
        }
    }
    assert!(
        needless.len() * 20 <= looks,
        "{} of {looks}: {needless:#?}",
        needless.len()
    );
    assert!(unasked.is_empty(), "{unasked:#?}");
}
