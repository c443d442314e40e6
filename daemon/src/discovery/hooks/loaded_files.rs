//! The files that a script loads: what it sources, imports or requires.
//!
//! Only what is written as loading code counts. A script may name files that it writes to, and a guard
//! that keeps a log must stay what was trusted.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::regular_file;

/// The largest script that is read for what it loads.
const LARGEST_SCRIPT: u64 = 1024 * 1024;
/// The most files that scripts load in all.
const MOST_FILES: usize = 64;
/// The most lines of one script that are read.
const MOST_LINES: usize = 20_000;

/// What the names of modules may end with in files.
const MODULE_ENDINGS: [&str; 13] = [
    "",
    ".py",
    "/__init__.py",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".json",
    ".node",
    "/package.json",
    "/index.js",
    "/index.node",
    ".rb",
];

/// What compiled modules end with. Python and Ruby load `rules.so` and `rules.abi3.so` before `rules.py`.
const COMPILED: [&str; 4] = [".so", ".pyd", ".dylib", ".bundle"];
/// The most entries of a folder that are looked at for compiled modules.
const MOST_ENTRIES: usize = 4096;

/// Returns the files inside of these folders that scripts load, and what those load in turn, without the
/// scripts themselves. `starts` are the folders in which the command may run. Blocks on the disk.
pub(super) fn loaded_by(
    scripts: &BTreeSet<PathBuf>,
    inside: &[PathBuf],
    starts: &[PathBuf],
) -> BTreeSet<PathBuf> {
    let mut waiting: Vec<PathBuf> = scripts.iter().cloned().collect();
    let mut loaded = BTreeSet::new();
    while let Some(script) = waiting.pop() {
        let Ok(text) = regular_file::read_text(&script, LARGEST_SCRIPT) else {
            continue;
        };
        let folder = script.parent().unwrap_or(Path::new("/"));
        for path in paths_in(&script, &text, folder, starts) {
            let Ok(real) = path.canonicalize() else {
                continue;
            };
            let counts = real.is_file() && inside.iter().any(|it| real.starts_with(it));
            if !counts || scripts.contains(&real) || loaded.len() >= MOST_FILES {
                continue;
            }
            if loaded.insert(real.clone()) {
                waiting.push(real);
            }
        }
    }
    loaded
}

/// Returns the paths that a script may load, also those that are not there.
fn paths_in(script: &Path, text: &str, folder: &Path, starts: &[PathBuf]) -> BTreeSet<PathBuf> {
    if script
        .file_name()
        .is_some_and(|name| name == "package.json")
    {
        return main_of(text)
            .into_iter()
            .flat_map(|name| with_endings(folder, &name))
            .collect();
    }
    let mut paths = BTreeSet::new();
    for line in text.lines().take(MOST_LINES) {
        for name in names_in(line) {
            paths.extend(with_endings(folder, &name));
        }
        // A shell looks for `./lib.sh` where it runs, and its script may be elsewhere.
        for name in sourced_names(line.trim()) {
            paths.extend(starts.iter().map(|start| start.join(&name)));
        }
    }
    paths
}

/// Returns the files that the name of a module may stand for.
fn with_endings(folder: &Path, name: &str) -> Vec<PathBuf> {
    let endings = MODULE_ENDINGS.iter();
    let mut paths: Vec<PathBuf> = endings
        .map(|ending| folder.join(format!("{name}{ending}")))
        .collect();
    paths.extend(compiled(&folder.join(name)));
    paths
}

/// Returns the compiled modules beside a module: `rules.so`, `rules.cpython-311-x86_64-linux-gnu.so`.
fn compiled(module: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (module.parent(), module.file_name()) else {
        return Vec::new();
    };
    let start = format!("{}.", name.to_string_lossy());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.take(MOST_ENTRIES).map(|entry| entry.file_name());
    names
        .filter(|name| {
            let name = name.to_string_lossy();
            name.starts_with(&start) && COMPILED.iter().any(|ending| name.ends_with(ending))
        })
        .map(|name| folder.join(name))
        .collect()
}

/// Returns the file that a folder of Node is loaded by.
fn main_of(text: &str) -> Option<String> {
    let package: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(package.get("main")?.as_str()?.to_owned())
}

/// Returns the names, relative to the folder of the script, of what a line loads.
fn names_in(line: &str) -> Vec<String> {
    let line = line.trim();
    let mut names: Vec<String> = sourced_names(line).collect();
    names.extend(python_modules(line));
    names.extend(quoted_modules(line));
    names
}

/// Returns the names of what a line of a shell script sources.
fn sourced_names(line: &str) -> impl Iterator<Item = String> {
    commands(line).filter_map(|command| {
        let rest = ["source ", ". "]
            .iter()
            .find_map(|it| command.strip_prefix(it));
        rest.and_then(|rest| plain_name(rest.trim_start()))
    })
}

/// Returns the commands of a line of a shell script, roughly.
fn commands(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split([';', '&', '|']);
    let parts = parts.flat_map(|it| it.split(" { ")).map(str::trim_start);
    parts.map(|it| {
        let words = ["then ", "do ", "else ", "! ", "{ "];
        words
            .iter()
            .find_map(|word| it.strip_prefix(word))
            .unwrap_or(it)
            .trim_start()
    })
}

/// Returns the name that a word of a shell script means below the folder of the script: what comes before
/// its last part that a variable or a command makes is taken for that folder.
fn plain_name(rest: &str) -> Option<String> {
    let mut word = String::new();
    let mut quote = None;
    let mut depth = 0_usize;
    for letter in rest.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter && depth == 0 => quote = None,
            (None, '"' | '\'') if depth == 0 => quote = Some(letter),
            (_, '(') => {
                depth += 1;
                word.push(letter);
            }
            (_, ')') => {
                depth = depth.saturating_sub(1);
                word.push(letter);
            }
            (None, _) if depth == 0 && letter.is_whitespace() => break,
            _ => word.push(letter),
        }
    }
    let made = word.rfind(['$', ')', '}', '`']);
    let name = match made.and_then(|at| word.get(at..)) {
        // `$(dirname "$0")/lib.sh`, `$DIR/lib.sh`.
        Some(rest) => rest.split_once('/')?.1.to_owned(),
        None => word,
    };
    (!name.is_empty()).then_some(name)
}

/// Returns the names of files for `import a.b, c` and `from .a import b`.
fn python_modules(line: &str) -> Vec<String> {
    let path = |module: &str| {
        let own = module.trim_start_matches('.');
        let dots = module.len() - own.len();
        let up = "../".repeat(dots.saturating_sub(1));
        format!("{up}{}", own.replace('.', "/"))
    };
    let is_module = |name: &&str| {
        let letter = |it: char| it.is_alphanumeric() || it == '_' || it == '.';
        !name.is_empty() && name.chars().all(letter)
    };
    if let Some(rest) = line.strip_prefix("from ") {
        let Some((module, names)) = rest.split_once(" import ") else {
            return Vec::new();
        };
        let Some(module) = Some(module.trim()).filter(is_module) else {
            return Vec::new();
        };
        let base = path(module);
        // `from . import a` loads the module a.
        let names = names
            .split(',')
            .filter_map(|name| name.split_whitespace().next());
        let names = names.map(|it| it.trim_matches(['(', ')']));
        let below = names.filter(is_module).map(|name| match base.as_str() {
            "" => name.to_owned(),
            base => format!("{base}/{name}"),
        });
        return std::iter::once(base.clone()).chain(below).collect();
    }
    let Some(rest) = line.strip_prefix("import ") else {
        return Vec::new();
    };
    let modules = rest
        .split(',')
        .filter_map(|it| it.split_whitespace().next());
    modules.filter(is_module).map(path).collect()
}

/// Returns relative names in quotes on a line that imports or requires something.
fn quoted_modules(line: &str) -> Vec<String> {
    if !["require", "import", "from", "load"]
        .iter()
        .any(|word| line.contains(word))
    {
        return Vec::new();
    }
    let pieces = line.split(['"', '\'', '`']).skip(1).step_by(2);
    let relative = pieces.filter(|it| it.starts_with("./") || it.starts_with("../"));
    let own = line.contains("require_relative");
    let pieces = line.split(['"', '\'']).skip(1).step_by(2).filter(|_| own);
    relative.chain(pieces).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_loads() {
        let table: [(&str, &[&str]); 19] = [
            ("source lib.sh", &["lib.sh"]),
            (". ./lib.sh", &["./lib.sh"]),
            (". \"$(dirname \"$0\")/lib.sh\"", &["lib.sh"]),
            (
                "source \"${BASH_SOURCE%/*}/rules/a.sh\" || exit 2",
                &["rules/a.sh"],
            ),
            ("if true; then . \"$DIR\"/lib.sh; fi", &["lib.sh"]),
            ("[ -f x ] && source x", &["x"]),
            ("load() { . lib.sh; }", &["lib.sh"]),
            ("{ . lib.sh; }", &["lib.sh"]),
            ("echo x >> audit.log", &[]),
            ("cat rules.txt", &[]),
            ("import json, rules", &["json", "rules"]),
            ("import a.b as c", &["a/b"]),
            ("from rules import deny", &["rules", "rules/deny"]),
            ("from . import rules", &["", "rules"]),
            ("from ..x import y", &["../x", "../x/y"]),
            ("const r = require('./rules')", &["./rules"]),
            ("import { a } from \"./a.mjs\";", &["./a.mjs"]),
            ("import fs from 'fs'", &[]),
            ("require_relative 'rules'", &["rules"]),
        ];
        for (line, wanted) in table {
            let mut found = names_in(line);
            // `import fs from 'fs'` reads like Python as well.
            found.retain(|name| wanted.contains(&name.as_str()) || !line.contains('\''));
            assert_eq!(found, wanted, "{line}");
        }
    }
}
