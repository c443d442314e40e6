//! The permission rules that `loop` gives to the daemon: the default ones, and `--allow-tool`.

use loopd_sdk::PermissionRule;

/// Returns the rules of every new session: commands that only look, and reading in its own
/// directory.
pub(crate) fn default_rules(directory: &str) -> impl Iterator<Item = PermissionRule> + use<> {
    let rule = |kind: &str, argument: Option<&str>| PermissionRule {
        kind: kind.to_owned(),
        argument: argument.map(str::to_owned),
    };
    [rule("look", None), rule("read", Some(directory))].into_iter()
}

/// The names that a rule may begin with, and the kind of rule that each stands for.
const KINDS: [(&str, &str); 14] = [
    ("look", "look"),
    ("shell", "shell"),
    ("bash", "shell"),
    ("write", "write"),
    ("create", "write"),
    ("edit", "write"),
    ("apply_patch", "write"),
    ("read", "read"),
    ("view", "read"),
    ("url", "url"),
    ("web_fetch", "url"),
    ("mcp", "mcp"),
    ("custom-tool", "custom-tool"),
    ("memory", "memory"),
];

/// Parses `kind` or `kind(argument)`.
pub(crate) fn parse(text: &str) -> Result<PermissionRule, String> {
    let (name, argument) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let argument = rest
                .strip_suffix(')')
                .filter(|argument| !argument.is_empty())
                .ok_or("write it as `kind(argument)`, for example `shell(git status)`")?;
            (name, Some(argument.to_owned()))
        }
    };
    let kind = KINDS
        .iter()
        .find(|(known, _)| *known == name.trim())
        .map(|(_, kind)| (*kind).to_owned())
        .ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
            format!("`{name}` is not one of {}", known.join(", "))
        })?;
    Ok(PermissionRule { kind, argument })
}

/// Parses a rule that denies.
pub(crate) fn parse_denied(text: &str) -> Result<PermissionRule, String> {
    let rule = parse(text)?;
    if rule.kind == "look" {
        return Err("`look` can only be allowed; deny `shell` or a command instead".to_owned());
    }
    Ok(rule)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_with_and_without_an_argument() {
        let rule = |text| {
            let rule = parse(text).unwrap();
            (rule.kind, rule.argument)
        };
        assert_eq!(rule("bash"), ("shell".to_owned(), None));
        let git = ("shell".to_owned(), Some("git:*".to_owned()));
        assert_eq!(rule("shell(git:*)"), git);
        assert!(parse("shell(").is_err());
        assert!(parse("shell()").is_err());
        assert!(parse("everything").unwrap_err().contains("custom-tool"));
    }
}
