//! The rules of settings that people have on disk for other programs: `Bash(git diff:*)`,
//! `Read(./.env)`, `WebFetch(domain:example.com)`.
//!
//! Rules that deny or ask count beside the session's own. Rules that allow count like those that a
//! person gave the session. In the place of a rule that denies or asks and is not understood, a person
//! is asked about all that it may be about: [`NotEnforced::instead`].

mod instead;
mod subject;

use std::path::Path;

use loopd_proto::permission::{PermissionRule, Permissions};

use self::subject::Subject;
use super::check_denied;
use super::odd_rule::oddity;
use super::path_pattern;

pub use self::instead::everything;

/// The rules of all settings that count for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsRules {
    pub deny: Vec<PermissionRule>,
    /// Requests that a person has to approve.
    pub ask: Vec<PermissionRule>,
    pub allow: Vec<PermissionRule>,
    /// Requests that a person has to approve while a file cannot be read, because it may have rules
    /// about them.
    pub unread: Vec<PermissionRule>,
}

impl SettingsRules {
    pub fn is_empty(&self) -> bool {
        self.deny.is_empty()
            && self.ask.is_empty()
            && self.allow.is_empty()
            && self.unread.is_empty()
    }

    /// Adds all rules to those of a session.
    pub fn add_to(&self, permissions: &mut Permissions) {
        self.narrow(permissions);
        add(&mut permissions.approved, &self.allow);
    }

    /// Adds the rules that deny and ask to those of a session.
    pub fn narrow(&self, permissions: &mut Permissions) {
        add(&mut permissions.denied, &self.deny);
        add(&mut permissions.ask, &self.ask);
        add(&mut permissions.ask, &self.unread);
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
    /// The folder that the settings belong to.
    pub folder: &'a str,
    /// The user's home directory.
    pub user: Option<&'a str>,
}

/// Why a rule of settings is not enforced as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotEnforced {
    pub why: String,
    /// Rules that cover all that it could be about, and more. There are none if nothing here does what
    /// the rule is about.
    pub instead: Vec<PermissionRule>,
}

/// Reads one rule. The words after its kind are in parentheses.
pub fn read(text: &str, base: RuleBase<'_>) -> Result<PermissionRule, NotEnforced> {
    let text = text.trim();
    let (name, rest) = match text.split_once('(') {
        Some((name, rest)) => (name.trim(), Some(rest)),
        None => (text, None),
    };
    let subject = Subject::of(name)?;
    let about = match rest.map(|rest| rest.strip_suffix(')')) {
        Some(Some(about)) => Some(about.trim()),
        None => None,
        Some(None) => {
            return Err(NotEnforced {
                why: "has no closing parenthesis".to_owned(),
                instead: vec![subject.whole()],
            });
        }
    };
    let about = about.filter(|about| !matches!(*about, "" | "*" | "**" | ":*"));
    let Some(about) = about else {
        return Ok(subject.whole());
    };
    let argument = match &subject {
        Subject::Shell => command(about),
        Subject::Read | Subject::Search(_) | Subject::Write => place(about, base),
        Subject::Url => host(about),
        Subject::Mcp(None) => server(about),
        Subject::Mcp(Some(_)) | Subject::Tool(_) => {
            Err("has words in parentheses, which mean nothing here".to_owned())
        }
    };
    let odd = match &subject {
        // The others have their own way to be written, which is read above.
        Subject::Shell | Subject::Read | Subject::Search(_) | Subject::Write => {
            oddity(subject.kind(), about)
        }
        Subject::Url | Subject::Mcp(_) | Subject::Tool(_) => None,
    };
    let argument = match odd {
        Some(odd) => Err(odd.why().to_owned()),
        None => argument,
    };
    let rule = argument.and_then(|argument| {
        let rule = PermissionRule {
            kind: subject.kind().to_owned(),
            argument: Some(argument),
        };
        match check_denied(&rule) {
            Ok(()) => Ok(rule),
            Err(error) => Err(format!("cannot be understood: {error}")),
        }
    });
    rule.map_err(|why| NotEnforced {
        why,
        instead: instead::of(&subject, about, base),
    })
}

/// Reads the words of a command. `git push *` and `git push:*` mean the same.
fn command(about: &str) -> Result<String, String> {
    let program = about.split([' ', ':']).next().unwrap_or_default();
    // A star and the like are told apart later.
    let is_usual = |c: char| c.is_alphanumeric() || "_./+@-~*?['\"=$&|;<>()`\\".contains(c);
    if let Some(strange) = program.chars().find(|c| !is_usual(*c)) {
        return Err(format!(
            "names a program with `{strange}` in it; write a rule for each program, in plain words"
        ));
    }
    Ok(match about.strip_suffix(" *") {
        Some(words) => format!("{words}:*"),
        None => about.to_owned(),
    })
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
    } else if about.starts_with(['~', '$']) {
        return Err("begins with `~name` or a variable; write the path out".to_owned());
    } else if let Some(path) = about.strip_prefix("./") {
        joined(base.folder, path)
    } else if about.trim_end_matches('/').contains('/') {
        joined(base.folder, about)
    } else {
        joined(base.folder, &format!("**/{about}"))
    };
    path_pattern::argument(&path)
}

/// Reads `domain:` and a host, which may begin with `*.`.
fn host(about: &str) -> Result<String, String> {
    let name = about
        .strip_prefix("domain:")
        .ok_or("has to be like `WebFetch(domain:example.com)`")?;
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let is_usual = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if rest.is_empty() || !rest.chars().all(is_usual) {
        return Err(
            "is about no plain domain; `*` may stand only at the beginning, and a path cannot stand in it"
                .to_owned(),
        );
    }
    Ok(name.to_owned())
}

/// Reads the name of a server of tools, or `server/tool`.
fn server(about: &str) -> Result<String, String> {
    if about.contains(['*', '?', ',', ' ']) {
        return Err("names no server; `*` cannot be a part of its name".to_owned());
    }
    Ok(about.to_owned())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
