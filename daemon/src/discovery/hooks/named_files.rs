//! The files of a project that the command of a hook names: scripts, above all.
//!
//! A hook is trusted together with them. Otherwise an agent could change what a trusted hook does by
//! changing the script that it runs.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::discovery::content_hash::ContentHash;
use crate::discovery::files::LARGEST_FILE;
use crate::regular_file;

use super::definition::{HookAction, HookDefinition, HookPlace};

/// The most files and words of one hook that are looked at.
const MOST_FILES: usize = 16;
const MOST_WORDS: usize = 256;

/// The variables that stand for the folder of the project, and of the plugin.
const PROJECT_VARIABLES: [&str; 3] = ["CLAUDE_PROJECT_DIR", "COPILOT_PROJECT_DIR", "PWD"];
const PLUGIN_VARIABLES: [&str; 2] = ["CLAUDE_PLUGIN_ROOT", "COPILOT_PLUGIN_ROOT"];

/// Adds the files that a hook names to the hook and to its hash. `root` is the root of the project.
pub(super) fn include(hook: &mut HookDefinition, root: &Path) {
    let Some(folder) = hook.source.folder.clone() else {
        return;
    };
    hook.root = Some(root.to_owned());
    let Some((words, place)) = words(&hook.action) else {
        return;
    };
    let mut bases: Vec<PathBuf> = vec![root.to_owned(), folder];
    bases.extend(hook.source.plugin.clone());
    if let Some(cwd) = &place.cwd {
        let below: Vec<PathBuf> = bases.iter().map(|base| base.join(cwd)).collect();
        bases.extend(below);
    }
    bases.dedup();
    let mut real_bases = bases.iter().filter_map(|base| base.canonicalize().ok());
    let real_root = real_bases.next();
    let mut allowed: Vec<PathBuf> = real_root.into_iter().collect();
    let plugin = hook.source.plugin.as_ref();
    allowed.extend(plugin.and_then(|plugin| plugin.canonicalize().ok()));
    let mut files = Vec::new();
    for word in words.iter().take(MOST_WORDS) {
        for path in paths(word, &bases, plugin) {
            let Ok(real) = path.canonicalize() else {
                continue;
            };
            let inside = allowed.iter().any(|folder| real.starts_with(folder));
            if inside && real.is_file() && !files.contains(&real) && files.len() < MOST_FILES {
                files.push(real);
            }
        }
    }
    if files.is_empty() {
        return;
    }
    files.sort_unstable();
    let contents: Vec<Vec<u8>> = files.iter().map(|file| content(file)).collect();
    let names = files.iter().map(|file| {
        let below = allowed.iter().find_map(|base| file.strip_prefix(base).ok());
        below.unwrap_or(file).as_os_str().as_encoded_bytes()
    });
    let pairs = names.zip(&contents);
    let parts = pairs.flat_map(|(name, content)| [name, content.as_slice()]);
    let parts: Vec<&[u8]> = std::iter::once(hook.hash.as_str().as_bytes())
        .chain(parts)
        .collect();
    hook.hash = ContentHash::of(parts);
    hook.named_files = files;
}

/// Returns whether the files that a hook names still hold what they held when the hook was loaded.
/// What runs a hook asks right before: a script may have been changed since.
pub fn is_unchanged(hook: &HookDefinition, root: &Path) -> bool {
    if hook.source.folder.is_none() {
        return true;
    }
    let mut now = HookDefinition {
        hash: hook.said.clone(),
        named_files: Vec::new(),
        ..hook.clone()
    };
    include(&mut now, root);
    now.hash == hook.hash
}

/// Returns what the command consists of, as far as a word may name a file.
fn words(action: &HookAction) -> Option<(Vec<&str>, &HookPlace)> {
    match action {
        HookAction::Script { script, place } => {
            let apart = |letter: char| letter.is_whitespace() || ";|&()<>`'\"=,".contains(letter);
            let words = script.split(apart).filter(|word| !word.is_empty());
            Some((words.collect(), place))
        }
        HookAction::Program {
            program,
            args,
            place,
        } => {
            let args = args.iter().map(String::as_str);
            Some((
                std::iter::once(program.as_str()).chain(args).collect(),
                place,
            ))
        }
        HookAction::Http { .. } | HookAction::Prompt { .. } => None,
    }
}

/// Returns the paths that a word may mean.
fn paths(word: &str, bases: &[PathBuf], plugin: Option<&PathBuf>) -> Vec<PathBuf> {
    let below = |variable: &str| {
        let plain = word
            .strip_prefix('$')
            .and_then(|it| it.strip_prefix(variable));
        let braced = word
            .strip_prefix("${")
            .and_then(|it| it.strip_prefix(variable));
        let braced = braced.and_then(|it| it.strip_prefix('}'));
        let rest = braced.or(plain)?;
        // Quotes around the variable alone leave the rest as a word of its own.
        rest.strip_prefix('/')
    };
    if let Some(rest) = PLUGIN_VARIABLES.iter().find_map(|name| below(name)) {
        return plugin.iter().map(|plugin| plugin.join(rest)).collect();
    }
    let rest = PROJECT_VARIABLES.iter().find_map(|name| below(name));
    // `"$CLAUDE_PROJECT_DIR"/x` is two words, of which the second begins with a slash.
    let rest = rest.unwrap_or(word);
    let mut paths: Vec<PathBuf> = bases.iter().map(|base| base.join(rest)).collect();
    if let Some(relative) = rest.strip_prefix('/') {
        paths.extend(bases.iter().map(|base| base.join(relative)));
    }
    paths
}

/// Returns what a file holds; of one that cannot be read in full, what can be told of it.
fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let Ok(file) = regular_file::open(path) else {
        return b"cannot be read".to_vec();
    };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    if file.take(LARGEST_FILE).read_to_end(&mut content).is_err() {
        return b"cannot be read".to_vec();
    }
    if length > LARGEST_FILE {
        content.extend_from_slice(&length.to_be_bytes());
    }
    content
}
