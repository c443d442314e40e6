//! Paths with wildcards in rules that settings of other programs bring: `glob:/app/**/.env`.
//!
//! `*` and `?` stand for letters of one name, `**` for any number of folders. A folder that fits stands
//! for everything in it, as in `.gitignore`.

use super::{plain, within};

/// What the argument of a rule with wildcards begins with.
const MARK: &str = "glob:";

/// The most `**` in a pattern; each multiplies the work.
const MOST_GAPS: usize = 3;

/// Returns the argument of a rule about a path. The error says why it cannot be enforced.
pub(super) fn argument(path: &str) -> Result<String, String> {
    let plain = |path: &str| !path.contains(['*', '?']);
    let path = &without_dots(path)?;
    let path = path.strip_suffix("/**").unwrap_or(path);
    let path = match path.strip_suffix("/*") {
        Some(folder) if plain(folder) => folder,
        _ => path,
    };
    if path.contains(['[', '{', '!', '\\']) {
        return Err("has a pattern other than `*`, `**` and `?`".to_owned());
    }
    if plain(path) {
        return Ok(path.to_owned());
    }
    if path.split('/').filter(|part| *part == "**").count() > MOST_GAPS {
        return Err(format!("has more than {MOST_GAPS} times `**`"));
    }
    Ok(format!("{MARK}{path}"))
}

/// Returns the argument for a path that may have wildcards.
pub(super) fn with_wildcards(path: &str) -> String {
    if path.contains(['*', '?']) {
        format!("{MARK}{path}")
    } else {
        path.to_owned()
    }
}

/// Returns the path without `.` and `..`.
fn without_dots(path: &str) -> Result<String, String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => match parts.pop() {
                Some("**") => return Err("goes up from `**`".to_owned()),
                Some("") | None => parts.push(""),
                Some(_) => {}
            },
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    Ok(if path.is_empty() {
        "/".to_owned()
    } else {
        path
    })
}

/// Returns the folder before the first part of a path that is no plain name; `None` if there is none.
pub(super) fn folder_before(path: &str) -> Option<&str> {
    let at = path.find(['*', '?', '[', '{', '!', '\\'])?;
    let (folder, _) = path.get(..at)?.rsplit_once('/')?;
    // A bare name would be meant in every folder, and a slash alone is the whole project.
    folder
        .trim_matches(['/', '.', '~'])
        .contains(|_| true)
        .then_some(folder)
}

/// Returns the pattern of an argument, if it has one.
pub fn pattern(argument: &str) -> Option<&str> {
    argument.strip_prefix(MARK)
}

/// Whether the path of a rule, with or without wildcards, covers a path.
pub fn covers(argument: &str, path: &str) -> bool {
    let Some(pattern) = pattern(argument) else {
        return within(argument, path);
    };
    let path = plain(path);
    let path = path.to_string_lossy();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let wanted: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    fits(&wanted, &parts)
}

/// Whether the pattern fits the path or a folder that it lies in.
fn fits(pattern: &[&str], path: &[&str]) -> bool {
    match pattern.split_first() {
        None => true,
        Some((&"**", rest)) => (0..=path.len()).any(|skipped| {
            let below = path.get(skipped..);
            below.is_some_and(|below| fits(rest, below))
        }),
        Some((name, rest)) => path
            .split_first()
            .is_some_and(|(first, below)| is_like(name, first) && fits(rest, below)),
    }
}

/// Whether a name fits a pattern for one name.
pub fn is_like(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut read) = (0, 0);
    // Where to go on if the last star has to take one letter more.
    let mut retry = None;
    while read < name.len() {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                retry = Some((at, read));
            }
            Some(&letter) if letter == '?' || Some(&letter) == name.get(read) => {
                at += 1;
                read += 1;
            }
            _ => match retry {
                None => return false,
                Some((after, from)) => {
                    at = after;
                    read = from + 1;
                    retry = Some((after, read));
                }
            },
        }
    }
    pattern.iter().skip(at).all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_paths_a_pattern_covers() {
        let table = [
            ("/app/**/.env", "/app/.env", true),
            ("/app/**/.env", "/app/a/b/.env", true),
            ("/app/**/.env", "/app/a/.env.local", false),
            ("/app/**/.env", "/other/.env", false),
            ("/app/**/.env*", "/app/a/.env.local", true),
            ("/app/**/secrets", "/app/a/secrets/key", true),
            ("/app/*.pem", "/app/a.pem", true),
            ("/app/*.pem", "/app/b/a.pem", false),
            ("/app/*/key", "/app/b/key", true),
            ("/app/*/key", "/app/b/../key", false),
            ("/app/a?c", "/app/abc", true),
            ("/app/a?c", "/app/ac", false),
            ("/app/a*b*c", "/app/aXbXbc", true),
        ];
        for (pattern, path, expected) in table {
            let argument = argument(pattern).unwrap_or_default();
            assert_eq!(covers(&argument, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn what_needs_no_pattern_is_a_plain_path() {
        for (given, path) in [
            ("/app/src/**", "/app/src"),
            ("/app/src/*", "/app/src"),
            ("/app/src", "/app/src"),
            ("/app/sub/../src", "/app/src"),
            ("/app/sub/../../../src", "/src"),
            ("/app/./sub/../*.pem", "glob:/app/*.pem"),
        ] {
            assert_eq!(argument(given).as_deref(), Ok(path));
        }
        for wrong in ["/a/[b]", "/a/{b,c}", "/**/a/**/b/**/c/**/d", "/a/**/../b"] {
            assert!(argument(wrong).is_err(), "{wrong}");
        }
    }
}
