//! The rules of settings that people have on disk for other programs: `Bash(git diff:*)`,
//! `Read(./.env)`, `WebFetch(domain:example.com)`.
//!
//! Rules that deny or ask count beside the session's own. Rules that allow count like those that a
//! person gave the session.

use std::path::Path;

use loopd_proto::permission::{PermissionRule, Permissions};

use super::check_denied;
use super::path_pattern;

/// The rules of all settings that count for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsRules {
    pub deny: Vec<PermissionRule>,
    /// Requests that a person has to approve each time.
    pub ask: Vec<PermissionRule>,
    pub allow: Vec<PermissionRule>,
}

impl SettingsRules {
    pub fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.ask.is_empty() && self.allow.is_empty()
    }

    /// Adds all rules to those of a session.
    pub fn add_to(&self, permissions: &mut Permissions) {
        self.narrow(permissions);
        add(&mut permissions.approved, &self.allow);
    }

    /// Adds the rules that deny and ask to those of a session.
    pub fn narrow(&self, permissions: &mut Permissions) {
        add(&mut permissions.denied, &self.deny);
        if !self.ask.is_empty() {
            let managed = permissions.managed.get_or_insert_default();
            add(&mut managed.ask, &self.ask);
        }
    }
}

fn add(rules: &mut Vec<PermissionRule>, more: &[PermissionRule]) {
    for rule in more {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
}

/// Where the paths of rules begin.
#[derive(Debug, Clone, Copy)]
pub struct RuleBase<'a> {
    /// The working directory of the session.
    pub cwd: &'a str,
    /// The folder that the settings belong to.
    pub folder: &'a str,
    /// The user's home directory.
    pub user: Option<&'a str>,
}

/// Why a rule of settings is not enforced as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotEnforced {
    pub why: String,
    /// The rule that covers all that it could be about, and more; `None` if there is none.
    pub wider: Option<PermissionRule>,
}

/// Reads one rule. The words after its kind are in parentheses.
pub fn read(text: &str, base: RuleBase<'_>) -> Result<PermissionRule, NotEnforced> {
    let text = text.trim();
    let refused = |why: &str, wider: Option<PermissionRule>| NotEnforced {
        why: why.to_owned(),
        wider,
    };
    let (name, about) = match text.split_once('(') {
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(about) => (name.trim(), Some(about.trim())),
            None => return Err(refused("has no closing parenthesis", whole(name.trim()))),
        },
        None => (text, None),
    };
    let Some(wider) = whole(name) else {
        return Err(refused(
            "is about a tool that rules cannot name; there are Bash, Read, Edit, Write, WebFetch and \
             mcp__server__tool",
            None,
        ));
    };
    let about = about.filter(|about| !matches!(*about, "" | "*" | "**" | ":*"));
    let Some(about) = about else {
        return Ok(wider);
    };
    let argument = match wider.kind.as_str() {
        "shell" => Ok(command(about)),
        "read" | "write" => place(about, base),
        "url" => host(about),
        _ => Err("has words in parentheses, which mean nothing here".to_owned()),
    };
    let refused = |why: String| NotEnforced {
        why,
        wider: Some(wider.clone()),
    };
    let rule = PermissionRule {
        kind: wider.kind.clone(),
        argument: Some(argument.map_err(refused)?),
    };
    check_denied(&rule).map_err(|error| refused(format!("cannot be understood: {error}")))?;
    Ok(rule)
}

/// Reads the words of a command. `git push *` and `git push:*` mean the same.
fn command(about: &str) -> String {
    match about.strip_suffix(" *") {
        Some(words) => format!("{words}:*"),
        None => about.to_owned(),
    }
}

/// Returns the rule for everything that a kind of rule is about.
fn whole(name: &str) -> Option<PermissionRule> {
    let rule = |kind: &str, argument: Option<String>| PermissionRule {
        kind: kind.to_owned(),
        argument,
    };
    if let Some(tool) = name.strip_prefix("mcp__") {
        let tool = tool.strip_suffix("__*").unwrap_or(tool);
        return (!tool.is_empty()).then(|| rule("mcp", Some(tool.replacen("__", "/", 1))));
    }
    match name {
        "Bash" => Some(rule("shell", None)),
        "Read" => Some(rule("read", None)),
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => Some(rule("write", None)),
        "WebFetch" => Some(rule("url", None)),
        _ => None,
    }
}

/// Reads a path as `.gitignore` does: a bare name is meant in every folder.
fn place(about: &str, base: RuleBase<'_>) -> Result<String, String> {
    let joined = |folder: &str, path: &str| {
        let path = Path::new(folder).join(path);
        path.to_string_lossy().into_owned()
    };
    let path = if let Some(path) = about.strip_prefix("//") {
        format!("/{path}")
    } else if let Some(path) = about.strip_prefix('/') {
        joined(base.folder, path)
    } else if let Some(path) = about.strip_prefix("~/") {
        let user = base
            .user
            .ok_or("is about the user's home, which is not known here")?;
        joined(user, path)
    } else if let Some(path) = about.strip_prefix("./") {
        joined(base.cwd, path)
    } else if about.trim_end_matches('/').contains('/') {
        joined(base.cwd, about)
    } else {
        joined(base.cwd, &format!("**/{about}"))
    };
    path_pattern::argument(&path)
}

/// Reads `domain:` and a host, which may begin with `*.`.
fn host(about: &str) -> Result<String, String> {
    let name = about
        .strip_prefix("domain:")
        .ok_or("has to be like `WebFetch(domain:example.com)`")?;
    let rest = name.strip_prefix("*.").unwrap_or(name);
    if rest.is_empty() || rest.contains(['*', '?', '[', '{', '/']) {
        return Err("has a pattern; `*` may stand only at the beginning of a domain".to_owned());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
