//! The files of a project that the command of a hook names: scripts, above all.
//!
//! A hook is trusted together with them, and with the files that they load. Otherwise an agent could
//! change what a trusted hook does by changing the script that it runs.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::discovery::content_hash::ContentHash;
use crate::regular_file;

use super::definition::{HookAction, HookDefinition, HookOrigin, HookPlace};
use super::loaded_files::loaded_by;
use super::places::UserHookPlaces;

/// The most files and words of one hook that are looked at.
const MOST_FILES: usize = 64;
const MOST_WORDS: usize = 1024;
/// The most folders that a command enters.
const MOST_FOLDERS: usize = 4;
/// How much of a file counts.
const LARGEST_SCRIPT: u64 = 8 * 1024 * 1024;

/// The variables that stand for the folder of the project, and of the plugin.
pub(super) const PROJECT_VARIABLES: [&str; 3] =
    ["CLAUDE_PROJECT_DIR", "COPILOT_PROJECT_DIR", "PWD"];
pub(super) const PLUGIN_VARIABLES: [&str; 2] = ["CLAUDE_PLUGIN_ROOT", "COPILOT_PLUGIN_ROOT"];

/// Adds the files that a hook names to the hook and to its hash. `root` is the root of the project.
pub(super) fn include(hook: &mut HookDefinition, root: &Path) {
    root.clone_into(&mut hook.root);
    let Some(folder) = hook.source.folder.clone() else {
        return;
    };
    let files = find(hook, root, &folder);
    if files.is_empty() {
        return;
    }
    let names = files.iter().map(|file| {
        // A project that is moved as a whole says the same.
        let below = file
            .strip_prefix(&folder)
            .or_else(|_| file.strip_prefix(root));
        below.unwrap_or(file)
    });
    hook.hash = hash(hook, names.zip(&files));
    hook.named_files = files;
}

/// Returns the hash of a hook with its files, each with the name that counts.
fn hash<'f>(
    hook: &HookDefinition,
    files: impl Iterator<Item = (&'f Path, &'f PathBuf)>,
) -> ContentHash {
    let files = files.map(|(name, file)| (name.as_os_str().as_encoded_bytes(), content(file)));
    let files: Vec<(&[u8], Vec<u8>)> = files.collect();
    let said = std::iter::once(hook.said.as_str().as_bytes());
    let parts = files.iter().flat_map(|(name, content)| [*name, content]);
    ContentHash::of(said.chain(parts).collect::<Vec<_>>())
}

/// Adds the scripts that a guard of the user's own files names to the guard and to its hash: a command
/// of an agent may change them as well.
pub(super) fn include_own(hook: &mut HookDefinition, user: &UserHookPlaces) {
    if hook.source.origin != HookOrigin::User || !hook.kind.is_guard() {
        return;
    }
    let Some((words, place)) = words(&hook.action) else {
        return;
    };
    let mut paths = BTreeSet::new();
    let mut scripts = BTreeSet::new();
    for path in own_paths(&words, place, user.folder.as_deref()) {
        let real = path.canonicalize().ok();
        if scripts.len() < MOST_FILES
            && let Some(real) = real.filter(|real| is_own_script(real, user))
        {
            scripts.insert(real);
            paths.insert(path);
        }
    }
    if scripts.is_empty() {
        return;
    }
    let scripts: Vec<PathBuf> = scripts.into_iter().collect();
    hook.hash = hash_of_own(hook, &scripts);
    hook.named_files = scripts;
    hook.own_paths = paths.into_iter().collect();
}

fn hash_of_own(hook: &HookDefinition, scripts: &[PathBuf]) -> ContentHash {
    hash(hook, scripts.iter().map(|it| (it.as_path(), it)))
}

/// Returns the paths that the words of a command of the user's own may mean, wherever the session is.
fn own_paths(words: &[&str], place: &HookPlace, user: Option<&Path>) -> BTreeSet<PathBuf> {
    let words = words.get(..MOST_WORDS).unwrap_or(words);
    let meant = |at: usize| {
        let word = words.get(at).copied().unwrap_or_default();
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        // `"$HOME"/x` is two words, of which the second begins with a slash.
        let rest = word.strip_prefix('/').zip(before);
        let joined = rest.and_then(|(rest, before)| Some(own_path(before, user)?.join(rest)));
        own_path(word, user).into_iter().chain(joined)
    };
    let cwd = place.cwd.as_ref().map(PathBuf::from);
    let mut bases: Vec<PathBuf> = cwd.filter(|it| it.is_absolute()).into_iter().collect();
    let enters = words.iter().enumerate();
    let enters = enters.filter(|(_, word)| matches!(**word, "cd" | "pushd"));
    for (at, _) in enters.take(MOST_FOLDERS) {
        bases.extend(meant(at + 1));
        if words.get(at + 2).is_some_and(|rest| rest.starts_with('/')) {
            bases.extend(meant(at + 2));
        }
    }
    let mut paths = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        paths.extend(meant(at));
        if !word.starts_with(['/', '~', '$', '-']) {
            paths.extend(bases.iter().map(|base| base.join(word)));
        }
    }
    paths
}

/// Returns the path that a word certainly means, wherever the command runs.
fn own_path(word: &str, user: Option<&Path>) -> Option<PathBuf> {
    if matches!(word, "~" | "$HOME" | "${HOME}") {
        return user.map(Path::to_owned);
    }
    let below = ["~/", "$HOME/", "${HOME}/"];
    let rest = below.iter().find_map(|start| word.strip_prefix(start));
    match (rest, user) {
        (Some(rest), Some(user)) => Some(user.join(rest)),
        _ => word.starts_with('/').then(|| PathBuf::from(word)),
    }
}

/// Folders of programs that belong to the system.
const SYSTEM: [&str; 10] = [
    "/bin", "/dev", "/etc", "/lib", "/lib64", "/nix", "/proc", "/sbin", "/sys", "/usr",
];

/// The endings of scripts that a program is given to run.
const SCRIPTS: [&str; 14] = [
    "bash", "cjs", "fish", "js", "lua", "mjs", "php", "pl", "py", "rb", "sh", "ts", "tsx", "zsh",
];

/// Whether a file is one that the user's guard runs, and no data that changes while it does.
fn is_own_script(file: &Path, user: &UserHookPlaces) -> bool {
    let own = user.folder.iter().chain(&user.homes);
    let is_own = own
        .filter_map(|it| it.canonicalize().ok())
        .any(|it| file.starts_with(it));
    if !is_own && SYSTEM.iter().any(|system| file.starts_with(system)) {
        return false;
    }
    let ending = file.extension().and_then(|it| it.to_str());
    let is_script = ending.is_some_and(|ending| SCRIPTS.contains(&ending));
    file.is_file() && (is_script || is_executable(file))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|it| it.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_file: &Path) -> bool {
    false
}

/// Returns the files inside of the project, or of the hook's plugin, that its command names.
fn find(hook: &HookDefinition, root: &Path, folder: &Path) -> Vec<PathBuf> {
    let Candidates {
        paths,
        inside,
        starts,
    } = candidates(hook, root, folder);
    let real = paths.iter().filter_map(|path| path.canonicalize().ok());
    let real = real.filter(|real| is_inside(real, &inside));
    let mut files: BTreeSet<PathBuf> = real.filter(|real| real.is_file()).collect();
    files.extend(loaded_by(&files, &inside, &starts));
    files.into_iter().take(MOST_FILES).collect()
}

/// Returns files of the project beside those that a hook is trusted with. Whether the hook reads them is
/// not known.
pub(super) fn beside(hook: &HookDefinition) -> Vec<String> {
    let folders = hook.named_files.iter().filter_map(|file| file.parent());
    // A script at the top of a project has all of it beside it.
    let folders: BTreeSet<&Path> = folders.filter(|it| *it != hook.root).collect();
    let mut beside = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.take(MOST_WORDS).map(|entry| entry.path());
        let files = paths.filter(|it| it.is_file() && !hook.named_files.contains(it));
        beside.extend(files.filter(|it| *it != hook.file));
    }
    beside.sort_unstable();
    let below = |path: PathBuf| match path.strip_prefix(&hook.root) {
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    };
    beside.into_iter().map(below).collect()
}

/// Returns the paths of the project that the command of a trusted hook may mean, also those that lead
/// nowhere. A name that the command only writes to is its own. Of a guard of the user's own files these
/// are the paths of its scripts.
pub fn named_paths(hook: &HookDefinition) -> Vec<PathBuf> {
    let Some(folder) = &hook.source.folder else {
        return hook.own_paths.clone();
    };
    let Candidates {
        mut paths, inside, ..
    } = candidates(hook, &hook.root, folder);
    // Those that scripts load are not among the words of the command.
    paths.extend(hook.named_files.iter().cloned());
    let written = written(hook);
    paths.retain(|path| {
        let is_own = || written.iter().any(|name| path.ends_with(name));
        match path.canonicalize() {
            Ok(real) => is_inside(&real, &inside),
            Err(_) => is_inside(path, &inside) && !is_own(),
        }
    });
    paths.into_iter().collect()
}

fn is_inside(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// What the words of a command may mean.
#[derive(Default)]
struct Candidates {
    paths: BTreeSet<PathBuf>,
    /// What counts: the folders of the project and the plugin, and scripts of apps; without links.
    inside: Vec<PathBuf>,
    /// The folders in which the command may run.
    starts: Vec<PathBuf>,
}

fn candidates(hook: &HookDefinition, root: &Path, folder: &Path) -> Candidates {
    let Some((words, place)) = words(&hook.action) else {
        return Candidates::default();
    };
    let plugin = hook.source.plugin.as_deref();
    let mut bases: Vec<PathBuf> = [Some(root), Some(folder), plugin]
        .into_iter()
        .flatten()
        .map(Path::to_owned)
        .collect();
    bases.dedup();
    let mut inside: Vec<PathBuf> = bases
        .iter()
        .filter_map(|it| it.canonicalize().ok())
        .collect();
    if hook.source.origin == HookOrigin::App {
        // An app has its scripts anywhere.
        let scripts = own_paths(&words, place, None).into_iter();
        let scripts = scripts.filter_map(|path| path.canonicalize().ok());
        inside.extend(scripts.filter(|real| is_own_script(real, &UserHookPlaces::default())));
    }
    if let Some(cwd) = &place.cwd {
        let below: Vec<PathBuf> = bases.iter().map(|base| base.join(cwd)).collect();
        bases.extend(below);
    }
    // `cd scripts && ./x` names scripts/x.
    let folders = words.windows(2).filter_map(|pair| match pair {
        ["cd" | "pushd", folder] => Some(paths(folder, &bases, plugin)),
        _ => None,
    });
    let entered: Vec<PathBuf> = folders.take(MOST_FOLDERS).flatten().collect();
    bases.extend(entered);
    let words = words.iter().take(MOST_WORDS);
    Candidates {
        paths: words.flat_map(|word| paths(word, &bases, plugin)).collect(),
        inside,
        starts: bases,
    }
}

/// Returns the names after `>` and `>>` in a script.
fn written(hook: &HookDefinition) -> Vec<&str> {
    let HookAction::Script { script, .. } = &hook.action else {
        return Vec::new();
    };
    let mut end = 0;
    let names = without_write_targets(script).into_iter().map(|piece| {
        let start = piece.as_ptr().addr() - script.as_ptr().addr();
        let name = script.get(end..start).unwrap_or_default();
        end = start + piece.len();
        name
    });
    let names = names.map(|it| it.trim_start_matches(['>', '|', '&', ' ', '\t']));
    let names = names.map(|it| it.trim_matches(['"', '\'']).trim_start_matches("./"));
    names.filter(|it| !it.is_empty()).collect()
}

/// Returns whether the files that a hook names still hold what they held when the hook was loaded.
/// What runs a hook asks right before: a script may have been changed since.
pub fn is_unchanged(hook: &HookDefinition) -> bool {
    if hook.source.folder.is_none() {
        let scripts = &hook.named_files;
        let real = hook.own_paths.iter();
        let real = real.filter_map(|path| path.canonicalize().ok());
        // A link may lead elsewhere by now.
        let leads_there = || real.collect::<BTreeSet<_>>().iter().eq(scripts);
        return scripts.is_empty() || (leads_there() && hash_of_own(hook, scripts) == hook.hash);
    }
    let mut now = HookDefinition {
        hash: hook.said.clone(),
        named_files: Vec::new(),
        ..hook.clone()
    };
    include(&mut now, &hook.root);
    now.hash == hook.hash
}

/// Returns what the command and its variables consist of, as far as a word may name a file.
fn words(action: &HookAction) -> Option<(Vec<&str>, &HookPlace)> {
    let apart = |letter: char| letter.is_whitespace() || ";|&()<>`'\"=,".contains(letter);
    let (mut words, place): (Vec<&str>, _) = match action {
        HookAction::Script { script, place } => {
            let read = without_write_targets(script);
            (
                read.into_iter().flat_map(|it| it.split(apart)).collect(),
                place,
            )
        }
        HookAction::Program {
            program,
            args,
            place,
        } => {
            let args = args.iter().map(String::as_str);
            (
                std::iter::once(program.as_str()).chain(args).collect(),
                place,
            )
        }
        HookAction::Http { .. } | HookAction::Prompt { .. } => return None,
    };
    words.extend(place.env.values().flat_map(|value| value.split([':', ' '])));
    words.retain(|word| !word.is_empty());
    Some((words, place))
}

/// Returns the pieces of a script that are no names after `>` and `>>`. What a command only writes to
/// is no part of what it does: a guard that keeps a log stays the same.
fn without_write_targets(script: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut quote = None;
    let mut before = ' ';
    let mut letters = script.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let escaped = before == '\\' && quote != Some('\'');
        match (quote, letter) {
            _ if escaped => {}
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            // `<>` reads as well.
            (None, '>') if before != '<' => {
                let rest = script.get(at..).unwrap_or_default();
                let length = write_target(rest);
                pieces.push(script.get(start..at).unwrap_or_default());
                start = at + length;
                while letters.next_if(|(next, _)| *next < start).is_some() {}
                before = ' ';
                continue;
            }
            _ => {}
        }
        before = if escaped { ' ' } else { letter };
    }
    pieces.push(script.get(start..).unwrap_or_default());
    pieces
}

/// Returns the length of a redirection that writes: its operator, and the word after it.
fn write_target(text: &str) -> usize {
    let after = text.trim_start_matches('>');
    let after = after.strip_prefix(['|', '&']).unwrap_or(after);
    let word = after.trim_start_matches([' ', '\t']);
    let operator = text.len() - word.len();
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in word.char_indices() {
        match (quote, letter) {
            _ if before == '\\' => {}
            (Some(open), _) if open == letter => quote = None,
            // What a substitution in the name runs counts.
            (Some('"') | None, '`' | '(') => return operator + at,
            (None, '\'' | '"') => quote = Some(letter),
            (None, _) if letter.is_whitespace() || ";|&)<>".contains(letter) => {
                return operator + at;
            }
            _ => {}
        }
        before = if before == '\\' { ' ' } else { letter };
    }
    text.len()
}

/// Returns the paths that a word may mean.
fn paths(word: &str, bases: &[PathBuf], plugin: Option<&Path>) -> Vec<PathBuf> {
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

/// Returns what a file holds; of one that is too large, also its length and when it was changed.
fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let Ok(file) = regular_file::open(path) else {
        return b"cannot be read".to_vec();
    };
    let Ok(metadata) = file.metadata() else {
        return b"cannot be read".to_vec();
    };
    if file.take(LARGEST_SCRIPT).read_to_end(&mut content).is_err() {
        return b"cannot be read".to_vec();
    }
    if metadata.len() > LARGEST_SCRIPT {
        let rest = (metadata.len(), metadata.modified().ok());
        content.extend_from_slice(format!("{rest:?}").as_bytes());
    }
    content
}
