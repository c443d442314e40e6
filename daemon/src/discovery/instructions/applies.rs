//! Compares files with the patterns of `applyTo`.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde_json::Value;

/// The most patterns of one file.
const MOST_GLOBS: usize = 100;

/// Returns whether a pattern is for all files.
pub(super) fn is_universal(glob: &str) -> bool {
    matches!(glob.trim_start_matches("./"), "*" | "**" | "**/*" | "**/**")
}

/// Reads the value of `applyTo`: text with commas, or a list. Returns the patterns that can be used,
/// and what is wrong with the others.
pub(super) fn globs(value: &Value) -> (Vec<String>, Vec<String>) {
    let mut globs = Vec::new();
    let mut wrong = Vec::new();
    let items: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    };
    for item in items {
        let Value::String(text) = item else {
            wrong.push(format!("applyTo: {item} is no pattern of file names"));
            continue;
        };
        for word in split(text) {
            match build(&word) {
                _ if globs.len() == MOST_GLOBS => {
                    wrong.push(format!(
                        "applyTo: only the first {MOST_GLOBS} patterns are used"
                    ));
                    return (globs, wrong);
                }
                Ok(_) => globs.push(word),
                Err(error) => wrong.push(format!("applyTo: {error}")),
            }
        }
    }
    if globs.is_empty() && wrong.is_empty() {
        wrong.push("applyTo: there is no pattern, so that it applies to no file".to_owned());
    }
    (globs, wrong)
}

/// Divides at commas that are not between braces, and takes quotes away.
fn split(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let words = text.split(|letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    let words = words.map(|word| word.trim().trim_matches(['"', '\'']).trim());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn build(glob: &str) -> Result<globset::Glob, globset::Error> {
    let glob = glob.trim_start_matches("./").trim_start_matches('/');
    GlobBuilder::new(glob).literal_separator(true).build()
}

/// Returns whether one of the patterns, which start from `root`, is for this file. A pattern without a
/// slash is for files of that name in every folder.
pub(super) fn matches(globs: &[String], root: &Path, file: &Path) -> bool {
    let Ok(inside) = file.strip_prefix(root) else {
        return false;
    };
    set(globs).is_some_and(|set| set.is_match(inside))
}

fn set(globs: &[String]) -> Option<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let plain = glob.trim_start_matches("./").trim_start_matches('/');
        set.add(build(plain).ok()?);
        if !plain.contains('/') {
            set.add(build(&format!("**/{plain}")).ok()?);
        } else if let Some(folder) = plain.strip_suffix('/') {
            set.add(build(&format!("{folder}/**")).ok()?);
        }
    }
    set.build().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_start_from_the_project() {
        let table = [
            ("*.rs", "src/a.rs", true),
            ("*.rs", "a.ts", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/b/a.rs", false),
            ("src/**/*.rs", "src/b/a.rs", true),
            ("./src/**", "src/b/a.rs", true),
            ("/src/**", "src/b/a.rs", true),
            ("**/*.{ts,tsx}", "a/b.tsx", true),
            ("docs/", "docs/a/b.md", true),
            ("**", "x", true),
        ];
        for (glob, file, expected) in table {
            let file = Path::new("/app").join(file);
            let is = matches(&[glob.to_owned()], Path::new("/app"), &file);
            assert_eq!(is, expected, "{glob} {}", file.display());
        }
        let outside = Path::new("/other/a.rs");
        assert!(!matches(&["**".to_owned()], Path::new("/app"), outside));
    }

    #[test]
    fn patterns_come_as_text_or_as_a_list() {
        let table = [
            (json!("a, b"), json!(["a", "b"]), 0),
            (json!("**/*.{ts,tsx},x"), json!(["**/*.{ts,tsx}", "x"]), 0),
            (json!(["a", "'b'"]), json!(["a", "b"]), 0),
            (json!(["a", 7]), json!(["a"]), 1),
            (json!("a[, b"), json!(["b"]), 1),
            (json!(""), json!([]), 1),
            (json!(true), json!([]), 1),
        ];
        for (value, expected, problems) in table {
            let (found, wrong) = globs(&value);
            assert_eq!(
                (json!(found), wrong.len()),
                (expected, problems),
                "{value}: {wrong:?}"
            );
        }
    }
}
