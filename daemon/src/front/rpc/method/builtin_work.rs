//! The built-in slash commands that let agents work: /review, /fleet, /autopilot, /todos.
//!
//! Each does what a method of the protocol does.

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
