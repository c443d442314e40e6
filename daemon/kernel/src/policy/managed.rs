//! Managed settings: what an app decided for its users. They rank above every rule, mode and answer
//! of a session.
//!
//! The settings are read once, when a session is opened. A rule that cannot be enforced as written
//! is refused then and never ignored.

use std::path::Path;

use loopd_proto::permission::{
    ManagedPermissions, ManagedSettingsPermissions, PermissionRequest, PermissionRule, Permissions,
};

use super::odd_rule::oddity;
use super::{Verdict, Whereabouts, check_denied, judge_by_rules, url, within};

/// Judges a request by the managed rules and, within them, by the session's own.
pub(super) fn judge(
    managed: &ManagedPermissions,
    permissions: &Permissions,
    at: Whereabouts<'_>,
    request: &PermissionRequest,
) -> Verdict {
    let cwd = at.cwd;
    let mut own = permissions.clone();
    own.approve_all = permissions.approves_all();
    if managed.no_approve_all {
        // An approved rule for every command would amount to approving everything.
        own.approved
            .retain(|rule| rule.argument.is_some() || super::canonical(&rule.kind) != "shell");
    }
    own.denied.extend(managed.deny.iter().cloned());
    let verdict = judge_by_rules(&own, at, request);
    if let Verdict::Deny(_) = verdict {
        return verdict;
    }
    let admits = |approved: &Vec<PermissionRule>| {
        let only = Permissions {
            approved: approved.clone(),
            denied: own.denied.clone(),
            // An allow list names its paths itself.
            unrestricted_paths: true,
            ..Permissions::default()
        };
        judge_by_rules(&only, at, request) == Verdict::Allow
    };
    let verdict = if managed.allow.is_empty() {
        verdict
    } else if managed.allow.iter().all(admits) {
        Verdict::Allow
    } else {
        Verdict::Ask
    };
    // A request is asked about if the rule would deny it as a deny rule. That includes commands
    // that may hide from the rule.
    let asks = !managed.ask.is_empty() && against(&managed.ask, cwd, request) != Verdict::Allow;
    let asked = if asks { Verdict::Ask } else { Verdict::Allow };
    verdict.meet(unseen(managed, cwd, request)).meet(asked)
}

/// Returns the verdict of deny rules about files and URLs on a shell command, which can reach both.
fn unseen(managed: &ManagedPermissions, cwd: &str, request: &PermissionRequest) -> Verdict {
    if let PermissionRequest::Shell {
        possible_paths,
        possible_urls,
        ..
    } = request
    {
        // It cannot be seen what a command reads, writes and sends, so a person has to check it.
        let beyond =
            |rule: &&PermissionRule| matches!(rule.kind.as_str(), "read" | "write" | "url");
        let mut beyond = managed.deny.iter().filter(beyond);
        let named = |rule: &&PermissionRule| {
            let Some(argument) = rule.argument.as_deref() else {
                return false;
            };
            if rule.kind == "url" {
                return possible_urls.iter().any(|it| url::hits(argument, &it.url));
            }
            let here = |path: &String| Path::new(cwd).join(path).to_string_lossy().into_owned();
            possible_paths
                .iter()
                .any(|path| within(argument, &here(path)))
        };
        if let Some(rule) = beyond.clone().find(named) {
            return Verdict::denied_by(rule);
        }
        if beyond.next().is_some() {
            return Verdict::Ask;
        }
    }
    Verdict::Allow
}

/// Returns the verdict of deny rules alone: everything else is approved.
pub fn against(rules: &[PermissionRule], cwd: &str, request: &PermissionRequest) -> Verdict {
    let only = Permissions {
        approve_all: true,
        denied: rules.to_vec(),
        ..Permissions::default()
    };
    judge_by_rules(&only, cwd.into(), request)
}

/// Reads the rules of an app. Relative paths are resolved against `cwd`; `user` is the user's home
/// directory. The error names the member and the rule.
pub fn read(
    given: &ManagedSettingsPermissions,
    cwd: &str,
    user: Option<&str>,
) -> Result<ManagedPermissions, String> {
    if given.limit_to.is_some() {
        return Err(
            "limitTo: cannot be enforced, because commands reach the network by themselves; deny `Shell` and use `deny` for hosts, or leave it out"
                .to_owned(),
        );
    }
    let rules = |member: &str, texts: &Option<Vec<String>>| {
        let texts = texts.iter().flatten().enumerate();
        texts
            .map(|(at, text)| {
                rule(text, cwd, user).map_err(|why| format!("{member}[{at}]: `{text}` {why}"))
            })
            .collect::<Result<Vec<_>, _>>()
    };
    let mut deny = rules("deny", &given.deny)?;
    // A file that may not be read may not be changed either, because an edit reveals its contents.
    let unreadable = deny
        .iter()
        .filter(|rule| rule.kind == "read" && rule.argument.is_some());
    let unreadable = unreadable.map(|rule| PermissionRule {
        kind: "write".to_owned(),
        argument: rule.argument.clone(),
    });
    let unreadable: Vec<_> = unreadable.collect();
    deny.extend(unreadable);
    Ok(ManagedPermissions {
        deny,
        ask: rules("ask", &given.ask)?,
        allow: match &given.allow {
            Some(_) => vec![rules("allow", &given.allow)?],
            None => Vec::new(),
        },
        no_approve_all: given.disable_bypass_permissions_mode.is_some(),
    })
}

/// Reads one rule: a kind, or a kind with its argument in parentheses.
fn rule(text: &str, cwd: &str, user: Option<&str>) -> Result<PermissionRule, String> {
    let text = text.trim();
    let (kind, about) = match text.split_once('(') {
        Some((kind, rest)) => {
            let about = rest.strip_suffix(')').ok_or("has no closing parenthesis")?;
            (kind.trim(), Some(about.trim()))
        }
        None => (text, None),
    };
    let about = about.filter(|about| !matches!(*about, "*" | "**"));
    if about == Some("") {
        return Err("says nothing between its parentheses".to_owned());
    }
    let odd = |kind: &str, about: &str| match oddity(kind, about) {
        Some(odd) => Err(odd.why().to_owned()),
        None => Ok(()),
    };
    let (kind, argument) = match kind.to_ascii_lowercase().as_str() {
        "shell" | "bash" => ("shell", about.map(command).transpose()?),
        "read" => (
            "read",
            about.map(|path| place(path, cwd, user)).transpose()?,
        ),
        "write" | "edit" => (
            "write",
            about.map(|path| place(path, cwd, user)).transpose()?,
        ),
        "domain" | "url" | "webfetch" => ("url", about.map(host).transpose()?),
        "mcp" => ("mcp", about.map(literal).transpose()?),
        _ => {
            return Err(format!(
                "begins with `{kind}`, which is no kind of rule; use Shell, Read, Write, Domain or Mcp"
            ));
        }
    };
    if let Some(about) = about {
        odd(kind, about.strip_prefix("domain:").unwrap_or(about))?;
    }
    let rule = PermissionRule {
        kind: kind.to_owned(),
        argument,
    };
    check_denied(&rule).map_err(|error| format!("cannot be understood: {error}"))?;
    Ok(rule)
}

/// Reads the words of a command. `git push`, `git push *` and `git push:*` mean the same.
fn command(about: &str) -> Result<String, String> {
    let words = about
        .strip_suffix(":*")
        .or_else(|| about.strip_suffix(" *"))
        .unwrap_or(about);
    literal(words.trim_end())
}

/// Reads a file, or a directory with everything in it, as an absolute path.
pub fn place(about: &str, cwd: &str, user: Option<&str>) -> Result<String, String> {
    let path = about
        .strip_suffix("/**")
        .or_else(|| about.strip_suffix("/*"))
        .unwrap_or(about);
    let path = literal(path)?;
    if path.starts_with('$') {
        return Err(
            "begins with a variable, which is not replaced here, so the rule would match nothing; write the path out, or relative to the working directory"
                .to_owned(),
        );
    }
    if let Some(below) = path.strip_prefix('~') {
        if !below.is_empty() && !below.starts_with('/') {
            return Err("is about the home of another user; write the path out".to_owned());
        }
        let user = user.ok_or("is about the user's home, which is not known here")?;
        return Ok(format!("{user}{below}"));
    }
    Ok(Path::new(cwd).join(path).to_string_lossy().into_owned())
}

/// Reads a host, or `*.` followed by a domain.
fn host(about: &str) -> Result<String, String> {
    let name = about.strip_prefix("domain:").unwrap_or(about);
    literal(name.strip_prefix("*.").unwrap_or(name))?;
    Ok(name.to_owned())
}

fn literal(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['*', '?', '[', '{']) {
        return Err(
            "has a pattern that cannot be enforced; `*` may stand only at the end of a command or a folder, and at the beginning of a domain"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
