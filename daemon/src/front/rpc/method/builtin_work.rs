//! The built-in slash commands that let agents work: /review, /subconscious, /fleet, /autopilot, /todos.
//!
//! Each does what a method of the protocol does.

use std::path::Path;

use loopd_proto::params::command::{BegunWork, Invoked};
use loopd_proto::params::fleet::FleetStartParams;
use loopd_proto::params::todo::TodoRows;
use loopd_proto::session::Mode;

use super::builtin::{Call, MOST_LINES, line, switch_mode, text};
use super::{fleet, todos};
use crate::front::rpc::error::RpcError;

pub(super) fn review(call: Call<'_>) -> Invoked {
    let what = match call.input {
        "" => {
            "the changes in the working tree that are not committed; if there are none, what this \
               branch changes compared with the main branch"
        }
        what => what,
    };
    Invoked::AgentPrompt {
        prompt: format!(
            "Call the tool `task` with agent_type \"code-review\" and let that agent review {what}. Do not \
             review it yourself and change nothing. Then tell me what it found, the most serious first, \
             each with file and line, or that it found nothing."
        ),
        display_prompt: format!("/review {}", call.input).trim_end().to_owned(),
        mode: None,
        notice: None,
        run_scope: None,
    }
}

/// `/subconscious run` lets an agent keep what the session has learnt; without a word it lists the notes.
pub(super) async fn subconscious(call: Call<'_>) -> Result<Invoked, RpcError> {
    match call.input {
        "run" => {}
        "" => return board(call).await,
        other => {
            return Err(RpcError::Failed(format!(
                "/subconscious takes `run` or nothing after its name, not `{other}`"
            )));
        }
    }
    let mode = call.session.state(|state| state.mode).await?;
    if mode == Mode::Plan {
        return Err(RpcError::Failed(
            "notes are written down, and this session is in plan mode; leave it first".to_owned(),
        ));
    }
    Ok(Invoked::AgentPrompt {
        prompt: "Call the tool `task` exactly once, with agent_type \"rem-agent\", mode \"background\", name \"rem-consolidate\" \
                 and description \"Consolidate session learnings\". The agent knows nothing of this conversation, so let its prompt \
                 say what this session has learnt that will still be useful in a month: what the user wants and how they like it, \
                 decisions with their reasons, commands and facts that took effort to find, ways that failed, and where unfinished work \
                 stands. Leave out secrets. Say that the notes belong on the context board. Do nothing else, and do not wait for it."
            .to_owned(),
        display_prompt: "/subconscious run".to_owned(),
        mode: None,
        notice: None,
        run_scope: None,
    })
}

async fn board(call: Call<'_>) -> Result<Invoked, RpcError> {
    let cwd = call.session.state(|state| state.cwd.clone()).await?;
    let board = call.context.app.services.board(Path::new(&cwd));
    let listed = tokio::task::spawn_blocking(move || board.list(None)).await;
    match listed {
        Ok(Ok(notes)) => Ok(text(notes)),
        Ok(Err(error)) => Err(RpcError::Failed(error.to_string())),
        Err(error) => {
            tracing::error!(%error, "the context board could not be read");
            Err(RpcError::Failed(
                "the context board could not be read".to_owned(),
            ))
        }
    }
}

pub(super) async fn fleet(call: Call<'_>) -> Result<Invoked, RpcError> {
    let order = FleetStartParams {
        session_id: call.session.id().clone(),
        prompt: Some(call.input.to_owned()),
        attachments: Vec::new(),
        wait: false,
        max_workers: None,
        agent_type: None,
        billable: None,
        limits: call.limits,
    };
    Ok(Invoked::Completed {
        message_id: fleet::begin(call.context, call.session, order).await?,
        message: Some("The fleet works.".to_owned()),
        begun: Some(BegunWork::Fleet),
    })
}

/// Turns autopilot on or off. Without a word it turns it to the other.
pub(super) async fn autopilot(call: Call<'_>) -> Result<Invoked, RpcError> {
    let is_on = call.session.state(|state| state.mode == Mode::Autopilot);
    let is_on = is_on.await?;
    let silent = Call { input: "", ..call };
    match call.input.to_ascii_lowercase().as_str() {
        "on" => switch_mode(silent, Mode::Autopilot).await,
        "off" => switch_mode(silent, Mode::Interactive).await,
        "" if is_on => switch_mode(silent, Mode::Interactive).await,
        _ => switch_mode(call, Mode::Autopilot).await,
    }
}

pub(super) async fn todos(call: Call<'_>) -> Result<Invoked, RpcError> {
    let TodoRows { rows } = todos::rows(call.context.clone(), call.of()).await?;
    let mut lines = String::new();
    for row in rows.iter().take(MOST_LINES) {
        let mark = if row.status == "done" { "x" } else { " " };
        let status = row.status.replace('_', " ");
        // A title may have line ends of its own, and an entry has one line.
        let title: Vec<&str> = row.title.split_whitespace().collect();
        let title = title.join(" ");
        line(&mut lines, format_args!("- [{mark}] {title} ({status})"));
    }
    let more = rows.len().saturating_sub(MOST_LINES);
    if more > 0 {
        line(&mut lines, format_args!("- and {more} more"));
    }
    if lines.is_empty() {
        lines.push_str("Nothing is on the list.");
    }
    Ok(text(lines))
}
