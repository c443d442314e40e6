//! What is asked about in the place of a rule that is not understood.

use std::collections::BTreeSet;

use loopd_proto::permission::PermissionRule;
use loopd_proto::visible::visible;

use super::super::odd_rule::without_quotes;
use super::subject::Subject;
use super::{RuleBase, check_denied, path_pattern, place};

/// Returns rules for everything that a permission can be asked for.
pub fn everything() -> Vec<PermissionRule> {
    let kinds = ["shell", "read", "write", "url", "mcp", "custom-tool"];
    kinds.into_iter().map(|kind| rule(kind, None)).collect()
}

fn rule(kind: &str, argument: Option<String>) -> PermissionRule {
    PermissionRule {
        kind: kind.to_owned(),
        argument,
    }
}

/// Returns rules that cover what the words in a rule may be about, and as little else as can be.
pub(super) fn of(subject: &Subject, about: &str, base: RuleBase<'_>) -> Vec<PermissionRule> {
    let narrower = match subject {
        Subject::Shell => commands(about),
        Subject::Read | Subject::Search(_) | Subject::Write => paths(subject.kind(), about, base),
        Subject::Url => host(about).map(|host| vec![rule("url", Some(host))]),
        Subject::Mcp(_) | Subject::Tool(_) => None,
    };
    narrower.unwrap_or_else(|| vec![rule_for_all(subject)])
}

fn rule_for_all(subject: &Subject) -> PermissionRule {
    match subject {
        // With words in parentheses it is about files.
        Subject::Search(_) => Subject::Read.whole(),
        subject => subject.whole(),
    }
}

/// Returns rules for the programs that the words begin with, each with the plain words after it.
fn commands(about: &str) -> Option<Vec<PermissionRule>> {
    let about = about.strip_suffix(":*").unwrap_or(about);
    let about = without_quotes(about);
    let pieces = about.split(['|', '&', ';', ',']);
    let pieces = pieces.map(str::trim).filter(|piece| !piece.is_empty());
    let rules: Option<Vec<PermissionRule>> = pieces.map(command).collect();
    rules.filter(|rules| !rules.is_empty())
}

fn command(piece: &str) -> Option<PermissionRule> {
    let is_plain = |word: &&str| {
        let usual = |c: char| c.is_alphanumeric() || "_./+@-".contains(c);
        word.chars().all(usual)
    };
    let words: Vec<&str> = piece.split_whitespace().take_while(is_plain).collect();
    let rule = rule("shell", Some(format!("{}:*", words.join(" "))));
    (!words.is_empty() && check_denied(&rule).is_ok()).then_some(rule)
}

/// Returns rules for the folders before the patterns of a path, or for each of several paths. A path with
/// quotes or a comma is meant with or without them.
fn paths(kind: &str, about: &str, base: RuleBase<'_>) -> Option<Vec<PermissionRule>> {
    if about.contains("://") || visible(about) != about {
        return None;
    }
    let between = if about.contains('{') { ", " } else { "," };
    let parts = about.split(between).map(str::trim);
    let plain = parts.clone().map(without_quotes);
    // Nobody writes a name with a comma and a blank.
    let whole = Some(about).filter(|about| !about.contains(", "));
    let each: BTreeSet<&str> = parts.chain(plain).chain(whole).collect();
    let each = each.into_iter().filter(|path| !path.is_empty());
    let each = each.map(|path| {
        let argument = place(path, base).ok().or_else(|| {
            let folder = path_pattern::folder_before(path)?;
            place(folder, base).ok()
        });
        Some(rule(kind, Some(argument?)))
    });
    each.collect()
}

/// Returns the host of an address, or a host without `domain:` before it.
fn host(about: &str) -> Option<String> {
    let name = about.strip_prefix("domain:").unwrap_or(about);
    let name = name.split_once("://").map_or(name, |(_, rest)| rest);
    let name = name.split(['/', '?', '#']).next()?;
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let is_usual = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
    (rest.contains('.') && rest.chars().all(is_usual)).then(|| name.to_owned())
}
