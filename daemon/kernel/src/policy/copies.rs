//! Rules about files of a repository, in the copies of it that agents work in.
//!
//! A rule names a file where the repository is. The same file in a copy has another path, so each rule
//! that denies or asks is repeated for every copy. What allows is not: nobody may do more for a copy.

use loopd_proto::event::agent::Profile;
use loopd_proto::event::task::WorktreeWork;
use loopd_proto::permission::{PermissionRule, Permissions};

use super::path_pattern::{is_like, pattern, with_wildcards};
use super::plain;

/// A copy of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryCopy {
    /// The top folders that rules may know the files by: of what was copied, and of its repository.
    originals: Vec<String>,
    /// The top folder of the copy.
    root: String,
}

impl RepositoryCopy {
    /// Returns the copy that a task works in.
    pub fn of_task(work: &WorktreeWork) -> Self {
        let mut originals = work.copied.clone();
        originals.push(work.repository.clone());
        Self {
            originals,
            root: work.path.clone(),
        }
    }

    /// Returns the copy that an agent with this profile works in.
    pub fn of_profile(profile: &Profile) -> Option<Self> {
        let root = profile.worktree.clone()?;
        Some(Self {
            originals: profile.copied.clone(),
            root,
        })
    }

    /// Returns what the argument of a rule about files comes to in this copy.
    fn counterparts(&self, argument: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for original in &self.originals {
            for rest in rests_below(argument, original) {
                let path = match rest.as_str() {
                    "" => self.root.clone(),
                    rest => format!("{}/{rest}", self.root.trim_end_matches('/')),
                };
                let argument = match pattern(argument) {
                    Some(_) => with_wildcards(&path),
                    None => path,
                };
                if !found.contains(&argument) {
                    found.push(argument);
                }
            }
        }
        found
    }
}

/// Repeats the rules that deny and ask for these copies.
pub fn hold_in_copies(permissions: &mut Permissions, copies: &[RepositoryCopy]) {
    for copy in copies {
        repeat(&mut permissions.denied, copy);
        repeat(&mut permissions.ask, copy);
        if let Some(managed) = &mut permissions.managed {
            repeat(&mut managed.deny, copy);
            repeat(&mut managed.ask, copy);
        }
    }
}

fn repeat(rules: &mut Vec<PermissionRule>, copy: &RepositoryCopy) {
    let mut more = Vec::new();
    for rule in rules.iter() {
        let is_about_files = matches!(rule.kind.as_str(), "read" | "write");
        let Some(argument) = rule.argument.as_deref().filter(|_| is_about_files) else {
            continue;
        };
        more.extend(
            copy.counterparts(argument)
                .into_iter()
                .map(|argument| PermissionRule {
                    kind: rule.kind.clone(),
                    argument: Some(argument),
                }),
        );
    }
    for rule in more {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
}

/// Returns what is left of the path of a rule below a folder; empty for the folder as a whole, which
/// a rule about it or a folder above it covers.
fn rests_below(argument: &str, folder: &str) -> Vec<String> {
    let folder = plain(folder).to_string_lossy().into_owned();
    let folder: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let path = match pattern(argument) {
        Some(pattern) => pattern.to_owned(),
        None => plain(argument).to_string_lossy().into_owned(),
    };
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let mut found = Vec::new();
    let has_wildcards = pattern(argument).is_some();
    rests(&parts, &folder, has_wildcards, &mut found);
    found
}

fn rests(parts: &[&str], folder: &[&str], has_wildcards: bool, found: &mut Vec<String>) {
    let (Some((part, after)), Some((name, below))) = (parts.split_first(), folder.split_first())
    else {
        let rest = parts.join("/");
        if !found.contains(&rest) {
            found.push(rest);
        }
        return;
    };
    if has_wildcards && *part == "**" {
        rests(after, folder, has_wildcards, found);
        rests(parts, below, has_wildcards, found);
    } else if part == name || (has_wildcards && is_like(part, name)) {
        rests(after, below, has_wildcards, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_name_in_a_copy() {
        let copy = RepositoryCopy {
            originals: vec!["/app".to_owned(), "/linked/app".to_owned()],
            root: "/copies/one".to_owned(),
        };
        let table: &[(&str, &[&str])] = &[
            ("/app/secrets", &["/copies/one/secrets"]),
            ("/app/sub/../secrets/key", &["/copies/one/secrets/key"]),
            ("/linked/app/x", &["/copies/one/x"]),
            ("/app", &["/copies/one"]),
            ("/", &["/copies/one"]),
            ("/other/secrets", &[]),
            ("/apple/x", &[]),
            ("glob:/app/**/.env", &["glob:/copies/one/**/.env"]),
            ("glob:/app/*.pem", &["glob:/copies/one/*.pem"]),
            ("glob:/*/secrets", &["/copies/one/secrets"]),
            ("glob:/**/.env", &["glob:/copies/one/**/.env"]),
            ("glob:/other/**/.env", &[]),
        ];
        for (argument, expected) in table {
            assert_eq!(&copy.counterparts(argument), expected, "{argument}");
        }
    }
}
