//! Deny rules about files, compared with what a command may read and write. Links that the daemon
//! followed count by where they lead.
//!
//! Only paths that stand in the text are known. A path that a program finds by itself is not: a
//! rule cannot stop `grep -r x .` or a script that writes somewhere.

use std::path::{Path, PathBuf};

use loopd_proto::permission::{PermissionRequest, PermissionRule, Permissions};

use super::shell::looks::{self, Place};
use super::shell::word::Word;
use super::shell::{Denial, write_targets::WriteTargets};
use super::{plain, within};

/// Returns the verdict of deny rules for reading on the paths that a command names. A path that is
/// computed when the command runs is not known: the rule cannot stop `cat "$x"`.
pub(super) fn read<'p>(
    permissions: &'p Permissions,
    cwd: &str,
    request: &PermissionRequest,
) -> Denial<'p> {
    let PermissionRequest::Shell {
        full_command_text,
        resolved_paths,
        resolved_working_directory,
        ..
    } = request
    else {
        return Denial::No;
    };
    let mut rules = about(permissions, "read").peekable();
    if rules.peek().is_none() {
        return Denial::No;
    }
    let Some(places) = looks::reads::places(full_command_text) else {
        return Denial::Possible;
    };
    let folders = [Some(cwd), resolved_working_directory.as_deref()];
    let named = folders.into_iter().flatten().flat_map(|folder| {
        let path = |place: &Place| Path::new(folder).join(&place.path);
        places.iter().map(path)
    });
    let paths: Vec<String> = named
        .map(|path| path.to_string_lossy().into_owned())
        .chain(resolved_paths.values().cloned())
        .collect();
    let hit = rules.find(|(_, argument)| paths.iter().any(|path| within(argument, path)));
    hit.map_or(Denial::No, |(rule, _)| Denial::By(rule))
}

/// Returns the verdict of deny rules for writing on what a command writes to. If it names such a
/// path and may write to it, or writes to a path that is computed when it runs, that is asked about;
/// so is a command that may run text which is not understood, unless everything is approved.
pub(super) fn written<'p>(
    permissions: &'p Permissions,
    cwd: &str,
    request: &PermissionRequest,
) -> Denial<'p> {
    let PermissionRequest::Shell {
        full_command_text,
        resolved_paths,
        resolved_working_directory,
        ..
    } = request
    else {
        return Denial::No;
    };
    let mut rules = about(permissions, "write").peekable();
    if rules.peek().is_none() {
        return Denial::No;
    }
    let Some(targets) = WriteTargets::of(full_command_text) else {
        return Denial::Possible;
    };
    let bases: Vec<PathBuf> = [Some(cwd), resolved_working_directory.as_deref()]
        .into_iter()
        .flatten()
        .flat_map(|base| {
            let folder = |folder: &String| Path::new(base).join(folder);
            targets.folders.iter().map(folder)
        })
        .collect();
    let paths = |names: &[String]| -> Vec<PathBuf> {
        let joined = |name: &String| {
            let named = bases.iter().map(|base| base.join(name)).collect::<Vec<_>>();
            let real = resolved_paths.get(name).map(PathBuf::from);
            named.into_iter().chain(real)
        };
        let all = names.iter().flat_map(joined);
        all.map(|path| plain(&path.to_string_lossy())).collect()
    };
    let certain = paths(&targets.certain);
    let removed = paths(&targets.removed);
    let possible = paths(&targets.possible);
    // Who approves everything also approves what nobody can foresee, such as scripts.
    let mut denial = if targets.is_unclear && !permissions.approve_all {
        Denial::Possible
    } else {
        Denial::No
    };
    for (rule, argument) in rules {
        let guarded = plain(argument);
        let is_below = |path: &PathBuf| path.starts_with(&guarded);
        if certain.iter().any(is_below) || removed.iter().any(|path| guarded.starts_with(path)) {
            return Denial::By(rule);
        }
        let may_be = |word: &Word| bases.iter().any(|base| may_reach(word, base, &guarded));
        if possible.iter().any(is_below) || targets.computed.iter().any(may_be) {
            denial = Denial::Possible;
        }
    }
    denial
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

/// Returns the deny rules of a kind that name a path.
fn about<'p>(
    permissions: &'p Permissions,
    kind: &'static str,
) -> impl Iterator<Item = (&'p PermissionRule, &'p str)> {
    let denied = permissions.denied.iter();
    let denied = denied.filter(move |rule| rule.kind == kind);
    denied.filter_map(|rule| Some((rule, rule.argument.as_deref()?)))
}
