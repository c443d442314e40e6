//! Which variables of an environment hold secrets, by their names and by the looks of their values.

use std::collections::BTreeMap;

/// Returns the variables that are taken out of the memory of a process that has copied its
/// environment: those that hold a secret by their names or by the looks of their values.
pub fn private_variables<'a>(
    env: &'a BTreeMap<String, String>,
    auth_token_env: Option<&'a str>,
) -> Vec<&'a str> {
    let has_password = |value: &str| value.contains("://") && value.contains('@');
    let is_private = |name: &str, value: &str| {
        is_secret_name(name)
            || auth_token_env == Some(name)
            || looks_secret(value)
            || has_password(value)
    };
    let private = env.iter().filter(|(name, value)| is_private(name, value));
    private.map(|(name, _)| name.as_str()).collect()
}

/// Returns whether a variable of this name is likely to hold a key. Children never see it.
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 7] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "API_KEY",
        "APIKEY",
        "ACCESS_KEY",
    ];
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.contains(word)) || name.ends_with("_KEY") || name.ends_with("_PAT")
}

/// Returns whether the value of such a variable is likely a key. Masking `true`, a number or a path
/// in tool results would do more harm than good.
pub fn looks_secret(value: &str) -> bool {
    let is_place = value.starts_with(['/', '.', '~']) || value.contains("://");
    let has = |is: fn(&char) -> bool| value.chars().any(|letter| is(&letter));
    let mixed = has(char::is_ascii_alphabetic) && has(char::is_ascii_digit);
    !is_place && ((value.len() >= 8 && mixed) || value.len() >= 20)
}
