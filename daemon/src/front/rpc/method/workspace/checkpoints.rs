//! The checkpoints of a session: Markdown files in its own folder, numbered in the order in which they
//! were made. Their names are `<number>-<what>.md`; the first heading is the title.

use loopd_proto::params::session::Of;
use loopd_proto::params::workspace::{
    Checkpoint, CheckpointContent, CheckpointParams, Checkpoints,
};

use super::files::{self, FileError, Inside, OwnFolder};
use super::own_folder;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::method::discover::look;

/// The name of their folder.
const FOLDER: &str = "checkpoints";

pub(in crate::front::rpc::method) async fn list(
    context: Context,
    params: Of,
) -> Result<Checkpoints, RpcError> {
    context.session(&params.session_id)?;
    let folder = own_folder(&context, &params.session_id, FOLDER);
    let checkpoints = look(move || listed(&folder)).await??;
    Ok(Checkpoints { checkpoints })
}

pub(in crate::front::rpc::method) async fn read(
    context: Context,
    params: CheckpointParams,
) -> Result<CheckpointContent, RpcError> {
    context.session(&params.session_id)?;
    let folder = own_folder(&context, &params.session_id, FOLDER);
    let read = look(move || content(&folder, params.number)).await??;
    Ok(CheckpointContent { content: read })
}

/// Returns the number in the name of a checkpoint.
fn number_of(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(".md")?;
    stem.split_once('-')
        .map_or(stem, |(number, _)| number)
        .parse()
        .ok()
}

fn listed(folder: &OwnFolder) -> Result<Vec<Checkpoint>, FileError> {
    let mut found = Vec::new();
    for filename in files::list(folder)? {
        let Some(number) = number_of(&filename) else {
            continue;
        };
        let text = files::read(folder, &Inside::new(&filename)?)?;
        let heading = text.lines().find_map(|line| line.strip_prefix("# "));
        let title = heading.map_or_else(|| filename.clone(), |title| title.trim().to_owned());
        found.push(Checkpoint {
            number,
            title,
            filename,
        });
    }
    found.sort_by_key(|checkpoint| checkpoint.number);
    Ok(found)
}

fn content(folder: &OwnFolder, number: u64) -> Result<Option<String>, FileError> {
    let names = files::list(folder)?;
    let Some(name) = names.iter().find(|name| number_of(name) == Some(number)) else {
        return Ok(None);
    };
    match files::read(folder, &Inside::new(name)?) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error),
    }
}
