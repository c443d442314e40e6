//! The folders of hooks that a client names: it vouches for what is in them at that moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loopd_proto::event::hook::VouchedFolder;

use super::discover::look;
use crate::discovery::Problem;
use crate::discovery::hooks::{GuardRecord, HookOrigin, HookPlaces, load};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::trust::project_root;

/// How many folders a session may have.
const MOST_FOLDERS: usize = 64;

/// Returns what is in the folders of hooks that a client names for a session that works in `cwd`. What
/// cannot be used is refused: the client means the session not to work without it.
pub(super) async fn vouched(
    context: &Context,
    named: Option<&[String]>,
    cwd: &Path,
) -> Result<Option<Vec<VouchedFolder>>, RpcError> {
    let Some(named) = named else {
        return Ok(None);
    };
    if named.len() > MOST_FOLDERS {
        return Err(RpcError::InvalidParams(format!(
            "hookDirectories: {} folders are more than the limit of {MOST_FOLDERS}",
            named.len()
        )));
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for (at, folder) in named.iter().enumerate() {
        let real = found(folder, &cwd.join(folder))
            .map_err(|why| RpcError::InvalidParams(format!("hookDirectories[{at}]: {why}")))?;
        if !folders.contains(&real) {
            folders.push(real);
        }
    }
    let (env, cwd) = (context.connection.launch().env.clone(), cwd.to_owned());
    let read = look(move || read(folders, &env, &cwd)).await?;
    read.map(Some)
        .map_err(|why| RpcError::InvalidParams(format!("hookDirectories: {why}")))
}

/// Returns the folders as the options of a session have them: they stay where they are when it moves.
pub(super) fn names(vouched: Option<&[VouchedFolder]>) -> Option<Vec<String>> {
    let folders = vouched?.iter().map(|folder| folder.path.clone());
    Some(folders.collect())
}

/// Returns a folder without links.
fn found(named: &str, path: &Path) -> Result<PathBuf, String> {
    if named.is_empty() {
        return Err("it is empty; name an existing directory".to_owned());
    }
    let real = path.canonicalize().map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist".to_owned(),
            _ => format!("cannot be used: {error}"),
        };
        format!("{named} {why}; name an existing directory with files of hooks")
    })?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(format!(
            "{named} is not a directory; name the directory that the file is in"
        ))
    }
}

/// Reads the folders. Blocks on the disk, within the bounds of `discovery`.
fn read(
    folders: Vec<PathBuf>,
    env: &BTreeMap<String, String>,
    cwd: &Path,
) -> Result<Vec<VouchedFolder>, String> {
    let folders = folders.into_iter().map(|folder| VouchedFolder {
        path: folder.to_string_lossy().into_owned(),
        hooks: Vec::new(),
        guards: Vec::new(),
    });
    let mut folders: Vec<VouchedFolder> = folders.collect();
    let places = HookPlaces::default().vouching(folders.clone(), env, || project_root(cwd));
    let loaded = load(&places);
    let hooks = loaded.hooks.iter();
    let hooks = hooks.filter(|hook| hook.source.origin == HookOrigin::App);
    for hook in hooks {
        if let Some(why) = &hook.unusable {
            let place = Problem {
                file: hook.file.clone(),
                line: Some(hook.line),
                what: why.clone(),
            };
            return Err(format!(
                "{place}; mend it, because the session would work without a guard"
            ));
        }
        let folder = hook.source.folder.as_deref();
        let mut all = folders.iter_mut();
        if let Some(vouched) = all.find(|it| Some(Path::new(&it.path)) == folder) {
            vouched.hooks.push(hook.hash.to_string());
            vouched
                .guards
                .extend(GuardRecord::of(hook).map(|guard| guard.vouched()));
        }
    }
    Ok(folders)
}
