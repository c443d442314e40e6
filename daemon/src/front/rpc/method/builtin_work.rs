//! The built-in slash commands that let agents work: /review, /research, /fleet, /autopilot, /todos.
//!
//! Each does what a method of the protocol does.

use loopd_proto::params::command::Invoked;
use loopd_proto::params::fleet::FleetStartParams;
use loopd_proto::params::todo::TodoRows;
use loopd_proto::run_scope::RunScope;
use loopd_proto::session::Mode;

use super::builtin::{Call, MOST_LINES, completed, line, switch_mode, text};
use super::{fleet, todos};
use crate::front::rpc::error::RpcError;

/// The tools of the agent that leads a research: others do the research.
const RESEARCH_TOOLS: [&str; 4] = [
    "builtin:task",
    "builtin:create",
    "builtin:view",
    "builtin:report_intent",
];

pub(super) fn review(call: Call<'_>) -> Invoked {
    let what = match call.input {
        "" => {
            "the changes in the working tree that are not committed; if there are none, what this \
               branch changes compared with the main branch"
        }
        what => what,
    };
    agent_prompt(
        call,
        "review",
        format!(
            "Call the tool `task` with agent_type \"code-review\" and let that agent review {what}. Do not \
             review it yourself and change nothing. Then tell me what it found, the most serious first, \
             each with file and line, or that it found nothing."
        ),
        None,
    )
}

pub(super) fn research(call: Call<'_>) -> Result<Invoked, RpcError> {
    if call.input.is_empty() {
        return Err(RpcError::Failed("/research needs a topic".to_owned()));
    }
    let services = &call.context.app.services;
    let folder = services.scratch_folder(call.session.id());
    let report = folder.join(format!("research-{}.md", services.clock.id()));
    let prompt = format!(
        "Lead a research about this topic:\n\n{}\n\nYou do not search or read sources yourself. Divide the \
         topic into questions. Give each to an agent with the tool `task`, agent_type \"research\" and mode \
         \"sync\", three to five of them at once, in several rounds if questions are left open or answers \
         contradict each other. Then write a report with the tool `create` to {}. Every statement in it \
         names its source. Last, tell me the path of the report and its main results in a few sentences.",
        call.input,
        report.display()
    );
    let scope = RunScope {
        command: "research".to_owned(),
        tools: Some(RESEARCH_TOOLS.map(str::to_owned).to_vec()),
        ..RunScope::default()
    };
    Ok(agent_prompt(
        call,
        "research",
        prompt,
        Some(Box::new(scope)),
    ))
}

fn agent_prompt(
    call: Call<'_>,
    name: &str,
    prompt: String,
    run_scope: Option<Box<RunScope>>,
) -> Invoked {
    Invoked::AgentPrompt {
        prompt,
        display_prompt: format!("/{name} {}", call.input).trim_end().to_owned(),
        mode: None,
        notice: None,
        run_scope,
    }
}

pub(super) async fn fleet(call: Call<'_>) -> Result<Invoked, RpcError> {
    let order = FleetStartParams {
        session_id: call.session.id().clone(),
        prompt: Some(call.input.to_owned()).filter(|prompt| !prompt.is_empty()),
        max_workers: None,
        agent_type: None,
    };
    fleet::start(call.context.clone(), order).await?;
    Ok(completed("The fleet works.".to_owned()))
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
        line(
            &mut lines,
            format_args!("- [{mark}] {} ({status})", row.title),
        );
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
