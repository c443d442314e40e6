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
                .trim_end()
                .strip_suffix(')')
                .map(str::trim)
                .filter(|argument| !argument.is_empty())
                .ok_or("write it as `kind(argument)`, for example `shell(git status)`")?;
            if !is_one(argument) {
                return Err("give each rule by an option of its own".to_owned());
            }
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

/// Returns whether the parentheses of an argument are its own: `rm),shell(mv` is two rules.
fn is_one(argument: &str) -> bool {
    let mut depth = 0_i32;
    argument.chars().all(|letter| {
        depth += match letter {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth >= 0
    })
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
    fn two_rules_in_one_option_are_refused() {
        for text in ["shell(rm),shell(mv)", "shell(rm) shell(mv)", "write(a)b)"] {
            assert!(
                parse(text).is_err() && parse_denied(text).is_err(),
                "{text}"
            );
        }
        assert_eq!(parse("write(a(b))").unwrap().argument.unwrap(), "a(b)");
        assert!(parse_denied("look").is_err());
    }

    #[test]
    fn blanks_around_the_argument_do_not_belong_to_it() {
        for text in ["read(a b )", "read( a b)", " read (a b) "] {
            let rule = parse(text).unwrap();
            assert_eq!(
                (rule.kind.as_str(), rule.argument.unwrap().as_str()),
                ("read", "a b")
            );
        }
        assert!(parse("read( )").is_err());
    }

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
