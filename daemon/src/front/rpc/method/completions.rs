//! Completes the names of slash commands while a person types.

use loopd_proto::params::completion::{
    CompletionItem, CompletionParams, Completions, TriggerCharacters,
};
use loopd_proto::params::session::Of;

use super::commands::AllCommands;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

/// The most completions of one answer.
const MOST_ITEMS: usize = 100;

/// No character asks for completions by itself: the public contract keeps that to hosts of remote
/// sessions. A client that knows slash commands asks after a `/`.
pub(super) async fn triggers(context: Context, params: Of) -> Result<TriggerCharacters, RpcError> {
    context.session(&params.session_id)?;
    Ok(TriggerCharacters {
        trigger_characters: Vec::new(),
    })
}

pub(super) async fn request(
    context: Context,
    params: CompletionParams,
) -> Result<Completions, RpcError> {
    let session = context.session(&params.session_id)?;
    let Some((start, typed)) = command_at(&params.text, params.offset) else {
        return Ok(Completions { items: Vec::new() });
    };
    let all = AllCommands::of(&context, &session).await?;
    let mut items = Vec::new();
    for command in all.list() {
        let aliases = command.aliases.unwrap_or_default();
        let names = [&command.name].into_iter().chain(&aliases);
        let begins = |name: &&String| {
            let start = name.get(..typed.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(typed))
        };
        for name in names.filter(begins) {
            items.push(CompletionItem {
                insert_text: format!("/{name} "),
                range_start: Some(start),
                range_end: Some(params.offset),
                label: Some(format!("/{name}: {}", command.description)),
                kind: Some("command".to_owned()),
            });
        }
    }
    items.sort_by(|one, other| one.insert_text.cmp(&other.insert_text));
    items.truncate(MOST_ITEMS);
    Ok(Completions { items })
}

/// Returns where the command begins that is being typed, in UTF-16 code units, and its name so far.
/// `None` if the cursor is not in the name of a command, which is the first word of the text.
fn command_at(text: &str, offset: u64) -> Option<(u64, &str)> {
    let mut units = 0;
    let mut at = text.len();
    for (index, letter) in text.char_indices() {
        if units >= offset {
            at = index;
            break;
        }
        units += letter.len_utf16() as u64;
    }
    let before = text.get(..at)?;
    let typed = before.trim_start();
    let spaces = before.get(..before.len() - typed.len())?;
    let name = typed.strip_prefix('/')?;
    let is_name = !name.contains(char::is_whitespace);
    is_name.then(|| (spaces.encode_utf16().count() as u64, name))
}
