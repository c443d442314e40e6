//! The files that rules keep from being read, for the daemon: it makes no copies of them either.

use loopd_proto::permission::{PermissionRule, Permissions};

use super::canonical;
use super::path_pattern::covers;

/// What stands for all files.
const EVERYTHING: &str = "/";

/// The arguments of the rules that deny reading, or have a person asked each time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadFiles {
    arguments: Vec<String>,
}

impl UnreadFiles {
    pub fn of(permissions: &Permissions) -> Self {
        let managed = permissions.managed.as_deref();
        let managed = managed.map(|managed| managed.deny.iter().chain(&managed.ask));
        let own = permissions.denied.iter().chain(&permissions.ask);
        let rules = own.chain(managed.into_iter().flatten());
        let about_reading = rules.filter(|rule| canonical(&rule.kind) == "read");
        let argument = |rule: &PermissionRule| {
            let argument = rule.argument.as_deref();
            argument.unwrap_or(EVERYTHING).to_owned()
        };
        let mut arguments: Vec<String> = about_reading.map(argument).collect();
        arguments.sort_unstable();
        arguments.dedup();
        Self { arguments }
    }

    /// Returns whether a rule covers this path, as it is written.
    pub fn has(&self, path: &str) -> bool {
        self.arguments.iter().any(|argument| covers(argument, path))
    }

    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// Returns the arguments in order, each once.
    pub fn arguments(&self) -> &[String] {
        &self.arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_rules_keep_from_being_read() {
        let rule = |kind: &str, argument: &str| PermissionRule {
            kind: kind.to_owned(),
            argument: Some(argument.to_owned()),
        };
        let permissions = Permissions {
            denied: vec![rule("read", "/p/.env"), rule("write", "/p/locked")],
            ask: vec![rule("read", "glob:/p/**/*.key")],
            ..Permissions::default()
        };
        let unread = UnreadFiles::of(&permissions);
        for (path, expected) in [
            ("/p/.env", true),
            ("/p/sub/a.key", true),
            ("/p/locked", false),
            ("/p/.environment", false),
        ] {
            assert_eq!(unread.has(path), expected, "{path}");
        }
        let everything = Permissions {
            denied: vec![PermissionRule {
                kind: "read".to_owned(),
                argument: None,
            }],
            ..Permissions::default()
        };
        assert!(UnreadFiles::of(&everything).has("/p/a"));
    }
}
