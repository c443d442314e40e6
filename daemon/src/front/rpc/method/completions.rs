//! Completes the names of slash commands and of agents while a person types.

use loopd_proto::id::SessionId;
use loopd_proto::params::agent::ListParams;
use loopd_proto::params::completion::{
    CompletionItem, CompletionParams, Completions, TriggerCharacters,
};
use loopd_proto::params::session::Of;

use super::agent;
use super::commands::AllCommands;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;

/// The most completions of one answer.
const MOST_ITEMS: usize = 100;

/// Names no character: clients of the public protocol complete commands by themselves, from
/// `session.commands.list`, and in a session on this machine they expect none. Who asks gets
/// completions all the same.
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
    let Some(word) = Word::at(&params.text, params.offset) else {
        return Ok(Completions { items: Vec::new() });
    };
    let mut items = match word {
        Word::Command { start, typed } => commands(&context, &session, start, typed).await?,
        Word::Agent { start, typed } => agents(&context, params.session_id, start, typed).await?,
    };
    for item in &mut items {
        item.range_end = Some(params.offset);
    }
    items.sort_by(|one, other| one.insert_text.cmp(&other.insert_text));
    items.truncate(MOST_ITEMS);
    Ok(Completions { items })
}

/// Returns whether a name begins like this; capitals do not matter.
fn begins(name: &str, typed: &str) -> bool {
    let start = name.get(..typed.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(typed))
}

async fn commands(
    context: &Context,
    session: &SessionHandle,
    start: u64,
    typed: &str,
) -> Result<Vec<CompletionItem>, RpcError> {
    let all = AllCommands::of(context, session).await?;
    let mut items = Vec::new();
    for command in all.list() {
        let aliases = command.aliases.unwrap_or_default();
        let names = [&command.name].into_iter().chain(&aliases);
        for name in names.filter(|name| begins(name, typed)) {
            items.push(CompletionItem {
                insert_text: format!("/{name} "),
                range_start: Some(start),
                range_end: None,
                label: Some(format!("/{name}: {}", command.description)),
                kind: Some("command".to_owned()),
            });
        }
    }
    Ok(items)
}

async fn agents(
    context: &Context,
    session_id: SessionId,
    start: u64,
    typed: &str,
) -> Result<Vec<CompletionItem>, RpcError> {
    let wanted = ListParams {
        session_id,
        include_built_in_agents: true,
        include_prompt: false,
    };
    let found = agent::list(context.clone(), wanted).await?;
    let agents = found.agents.into_iter();
    let agents =
        agents.filter(|agent| agent.user_invocable != Some(false) && begins(&agent.name, typed));
    let items = agents.map(|agent| CompletionItem {
        label: Some(format!("{}: {}", agent.name, agent.description)),
        insert_text: format!("{} ", agent.name),
        range_start: Some(start),
        range_end: None,
        kind: Some("agent".to_owned()),
    });
    Ok(items.collect())
}

/// The word that is being typed, if it can be completed: where it begins, in UTF-16 code units, and
/// what is there of it.
#[derive(Debug, PartialEq, Eq)]
enum Word<'a> {
    /// The name of a command, which is the first word of the text.
    Command { start: u64, typed: &'a str },
    /// The name of an agent, after the command that selects one.
    Agent { start: u64, typed: &'a str },
}

impl<'a> Word<'a> {
    fn at(text: &'a str, offset: u64) -> Option<Self> {
        let before = before(text, offset)?;
        let typed = before.trim_start();
        let units = |rest: &str| {
            let at = before.len() - rest.len();
            before.get(..at).map(|it| it.encode_utf16().count() as u64)
        };
        let name = typed.strip_prefix('/')?;
        if !name.contains(char::is_whitespace) {
            return Some(Self::Command {
                start: units(typed)?,
                typed: name,
            });
        }
        let argument = name.strip_prefix("agents")?;
        let argument = argument.strip_prefix(char::is_whitespace)?.trim_start();
        let is_word = !argument.contains(char::is_whitespace);
        let start = units(argument)?;
        is_word.then_some(Self::Agent {
            start,
            typed: argument,
        })
    }
}

/// Returns the text before a position that is given in UTF-16 code units.
fn before(text: &str, offset: u64) -> Option<&str> {
    let mut units = 0;
    let mut at = text.len();
    for (index, letter) in text.char_indices() {
        if units >= offset {
            at = index;
            break;
        }
        units += letter.len_utf16() as u64;
    }
    text.get(..at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_command_or_its_agent() {
        let command = |start, typed| Some(Word::Command { start, typed });
        let agent = |start, typed| Some(Word::Agent { start, typed });
        for (text, offset, expected) in [
            ("/mod", 4, command(0, "mod")),
            (" /MOD", 5, command(1, "MOD")),
            ("/model x", 3, command(0, "mo")),
            ("/model x", 8, None),
            ("/agents ", 8, agent(8, "")),
            ("/agents  pl", 11, agent(9, "pl")),
            ("/agents plan now", 16, None),
            ("/agentsx", 8, command(0, "agentsx")),
            ("say /mod", 8, None),
            ("Use @", 5, None),
            ("", 0, None),
            ("/mod", 0, None),
            ("/é𝄞x", 4, command(0, "é𝄞")),
        ] {
            assert_eq!(Word::at(text, offset), expected, "{text:?} {offset}");
        }
    }
}
