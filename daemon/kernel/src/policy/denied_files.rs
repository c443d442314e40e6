//! Deny rules about files, compared with what a command may read and write. Links that the daemon
//! followed count by where they lead, and so do the directories that earlier commands may have led
//! the shell to.
//!
//! For reading, the daemon also says which places of rules a command may reach by patterns, by words
//! that are computed, or in folders that it goes through. What a script opens is its own matter.

use std::path::{Path, PathBuf};

use loopd_proto::permission::{PermissionRequest, PermissionRule, Permissions};

use super::path_pattern::{covers, pattern};
use super::plain;
use super::process_path::is_through_process;
use super::shell::directories::below;
use super::shell::looks;
use super::shell::word::Word;
use super::shell::{Denial, write_targets::WriteTargets};
use super::typed::is_typed;

/// What stands for a place that the daemon did not look up.
const NOT_LOOKED_UP: &str = "/";

/// Whether a line may read what does not stand in it.
fn may_reach_something(text: &str) -> bool {
    let reach = looks::reach::reach(text);
    reach.is_none_or(|reach| {
        let mut walks = reach.walks.iter();
        !reach.computed.is_empty()
            || !reach.patterns.is_empty()
            || walks.any(|walk| walk.shows == looks::reach::Shows::Content)
    })
}

/// Returns the verdict of deny rules for reading on the paths that a command names, and on the places
/// that it may reach without naming them.
pub(super) fn read<'p>(
    permissions: &'p Permissions,
    cwd: &str,
    request: &PermissionRequest,
) -> Denial<'p> {
    let PermissionRequest::Shell {
        full_command_text,
        resolved_paths,
        reached,
        ..
    } = request
    else {
        return Denial::No;
    };
    let mut rules = about(permissions, &["read"]).peekable();
    if rules.peek().is_none() {
        return Denial::No;
    }
    let Some(read) = looks::reads::places(full_command_text) else {
        return Denial::Possible;
    };
    let starts = Starts::of(cwd, request);
    let mut paths: Vec<String> = resolved_paths.values().cloned().collect();
    for place in &read.places {
        for path in starts.paths("", &place.path) {
            paths.push(path.to_string_lossy().into_owned());
        }
    }
    let hit = rules.find(|(_, argument)| paths.iter().any(|path| covers(argument, path)));
    if let Some((rule, _)) = hit {
        return Denial::By(rule);
    }
    let is_lost = (starts.is_unknown || read.is_elsewhere)
        && read.places.iter().any(|place| is_relative(&place.path));
    let is_unclear = paths.iter().any(|path| is_through_process(path));
    let is_reached = match reached {
        Some(reached) => about(permissions, &["read"])
            .any(|(_, argument)| reached.iter().any(|path| covers(argument, path))),
        // What is typed is not looked up: whatever is not known may reach it.
        None => is_typed(request) && may_reach_something(full_command_text),
    };
    if is_lost || is_unclear || is_reached || read.is_unclear {
        Denial::Possible
    } else {
        Denial::No
    }
}

/// Returns the verdict of deny rules for writing, and of those for reading, on what a command
/// writes to. If it names such a path and may write to it, or writes to a path that is computed
/// when it runs, that is asked about; so is a command that may run text which is not understood.
pub(super) fn written<'p>(
    permissions: &'p Permissions,
    cwd: &str,
    request: &PermissionRequest,
) -> Denial<'p> {
    let PermissionRequest::Shell {
        full_command_text,
        resolved_paths,
        ..
    } = request
    else {
        return Denial::No;
    };
    let rules: Vec<_> = about(permissions, &["write", "read"]).collect();
    if rules.is_empty() {
        return Denial::No;
    }
    let Some(targets) = WriteTargets::of(full_command_text) else {
        return Denial::Possible;
    };
    let starts = Starts::of(cwd, request);
    let folders = &targets.directories.folders;
    let raw = |names: &[String]| -> Vec<PathBuf> {
        let places = |name: &String| {
            let below = |folder: &String| starts.paths(folder, name);
            folders.iter().flat_map(below).collect::<Vec<_>>()
        };
        names.iter().flat_map(places).collect()
    };
    let plain = |paths: &[PathBuf]| -> Vec<PathBuf> {
        let plain = |path: &PathBuf| plain(&path.to_string_lossy());
        paths.iter().map(plain).collect()
    };
    let (certain, removed) = (raw(&targets.certain), raw(&targets.removed));
    let (possible, swept) = (raw(&targets.possible), raw(&targets.swept));
    let all = [&certain, &removed, &possible, &swept];
    let mut through_process = all.into_iter().flatten();
    let is_unclear = through_process.any(|path| is_through_process(&path.to_string_lossy()))
        || targets.computed.iter().any(|word| {
            let (folder, _) = word.prefix().rsplit_once('/').unwrap_or_default();
            is_through_process(folder)
        });
    let is_lost = starts.is_unknown || targets.directories.is_unknown;
    let was_looked_up = |path: &String| path != NOT_LOOKED_UP;
    let (certain, removed) = (plain(&certain), plain(&removed));
    let (possible, swept) = (plain(&possible), plain(&swept));
    let bases: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| starts.paths("", folder))
        .collect();
    let writes = !all_empty(&targets);
    let may_do_anything = targets.is_unclear && rules.iter().any(|(rule, _)| rule.kind == "write");
    let mut denial = if may_do_anything
        || is_unclear
        || (is_lost && targets.is_relative)
        || (writes && !resolved_paths.values().all(was_looked_up))
    {
        Denial::Possible
    } else {
        Denial::No
    };
    for (rule, argument) in rules {
        let guarded = super::plain(argument);
        let is_below = |path: &PathBuf| covers(argument, &path.to_string_lossy());
        let is_above = |path: &PathBuf| guarded.starts_with(path);
        if certain.iter().any(is_below) || removed.iter().any(is_above) {
            return Denial::By(rule);
        }
        let may_be_named = |word: &Word| {
            if word.expands() && !word.is_braced() {
                return may_end(word, &bases, argument, &guarded);
            }
            bases.iter().any(|base| may_reach(word, base, &guarded))
        };
        let may_be = |word: &Word| {
            (targets.leads_up && word.expands())
                || bases.iter().any(|base| may_reach(word, base, &guarded))
        };
        if possible.iter().chain(&swept).any(is_below)
            || swept.iter().any(is_above)
            || targets.computed.iter().any(may_be)
            || targets.named.iter().any(may_be_named)
            || (targets.is_lax
                && targets
                    .named
                    .iter()
                    .chain(&targets.computed)
                    .any(Word::matches))
            || (pattern(argument).is_some() && !targets.computed.is_empty())
        {
            denial = Denial::Possible;
        }
    }
    denial
}

fn all_empty(targets: &WriteTargets) -> bool {
    targets.certain.is_empty() && targets.removed.is_empty() && targets.swept.is_empty()
}

fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && !path.starts_with('-')
}

/// The directories in which a line may begin.
struct Starts<'r> {
    /// The working directory of the session, with and without links.
    here: Vec<&'r str>,
    /// Where earlier commands may have led the shell.
    moved: &'r [String],
    resolved: &'r std::collections::BTreeMap<String, String>,
    /// Whether the line may also begin elsewhere.
    is_unknown: bool,
}

impl<'r> Starts<'r> {
    fn of(cwd: &'r str, request: &'r PermissionRequest) -> Self {
        static NOTHING: std::collections::BTreeMap<String, String> =
            std::collections::BTreeMap::new();
        let PermissionRequest::Shell {
            resolved_paths,
            resolved_working_directory,
            shell_directories,
            shell_directory_unknown,
            ..
        } = request
        else {
            return Self {
                here: vec![cwd],
                moved: &[],
                resolved: &NOTHING,
                is_unknown: true,
            };
        };
        // A directory that the daemon did not look up may be a link.
        let is_known = |directory: &String| resolved_paths.contains_key(directory);
        Self {
            here: [Some(cwd), resolved_working_directory.as_deref()]
                .into_iter()
                .flatten()
                .collect(),
            moved: shell_directories,
            resolved: resolved_paths,
            is_unknown: *shell_directory_unknown == Some(true)
                || !shell_directories.iter().all(is_known),
        }
    }

    /// Returns what a name may be, in a folder that the line goes to: as it is written, and by
    /// where links lead.
    fn paths(&self, folder: &str, name: &str) -> Vec<PathBuf> {
        let whole = below(folder, name);
        let mut paths = Vec::new();
        for start in &self.here {
            paths.push(Path::new(start).join(&whole));
        }
        // The daemon looks up a word, and a word in the folder that the line goes to.
        let real = |key: &str| self.resolved.get(key).map(PathBuf::from);
        paths.extend(real(name));
        paths.extend(real(&whole));
        paths.extend(real(folder).map(|folder| folder.join(name)));
        for start in self.moved {
            paths.push(Path::new(start).join(&whole));
            let key = |below: &str| Path::new(start).join(below).to_string_lossy().into_owned();
            paths.extend(real(start).map(|start| start.join(&whole)));
            paths.extend(real(&key(&whole)));
            paths.extend(real(&key(folder)).map(|folder| folder.join(name)));
        }
        paths
    }
}

/// Whether a word with gaps may become a guarded path, or one in it. A gap is not expected to lead
/// up again with `..`.
fn may_reach(word: &Word, base: &Path, guarded: &Path) -> bool {
    let folder = match word.prefix().rsplit_once('/') {
        Some(("", _)) => PathBuf::from("/"),
        Some((folder, _)) => base.join(folder),
        None if word.prefix().is_empty() && word.expands() => return true,
        None => base.to_owned(),
    };
    let folder = plain(&folder.to_string_lossy());
    if folder.starts_with(guarded) {
        return true;
    }
    let Ok(rest) = guarded.strip_prefix(&folder) else {
        return false;
    };
    let Some(next) = rest.components().next() else {
        return true;
    };
    let name = next.as_os_str().to_string_lossy();
    let start = word.prefix().rsplit('/').next().unwrap_or_default();
    let last = word.texts().last().unwrap_or_default();
    // A pattern for the name in one folder. What stands after a further `/` is not compared.
    let is_name = !word.expands() && !last.contains('/');
    name.starts_with(start) && (!is_name || word.may_name(&name))
}

/// Whether the known end of a word may be the end of a guarded path, or lie in it.
fn may_end(word: &Word, bases: &[PathBuf], argument: &str, guarded: &Path) -> bool {
    let end = word.known_end();
    let Some(name) = guarded.file_name().map(|name| name.to_string_lossy()) else {
        return !end.is_empty();
    };
    let mut parts = end.split('/');
    let first = parts.next().unwrap_or_default();
    (!first.is_empty() && name.ends_with(first))
        || parts.any(|part| part == name)
        || bases.iter().any(|base| {
            let whole = format!("{}{end}", base.to_string_lossy());
            end.starts_with('/') && covers(argument, &whole)
        })
}

/// Returns the deny rules of these kinds that name a path.
fn about<'p>(
    permissions: &'p Permissions,
    kinds: &'static [&'static str],
) -> impl Iterator<Item = (&'p PermissionRule, &'p str)> {
    let denied = permissions.denied.iter();
    let denied = denied.filter(move |rule| kinds.contains(&rule.kind.as_str()));
    denied.filter_map(|rule| Some((rule, rule.argument.as_deref()?)))
}
