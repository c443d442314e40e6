//! The texts that models read about sub-agents. Recorded conversations compare the first sentences,
//! so these must not change.

use std::fmt::Write as _;

use loopd_proto::event::task::{TaskOutcome, TaskWork};
use loopd_proto::id::TaskId;
use loopd_proto::time::Timestamp;
use serde_json::{Map, Value};

use crate::discovery::agents::AgentOrigin;
use crate::subagent::{Renamed, RunEnd, RunEnding, RunProgress, Started};
use crate::tool::{Outcome, Status};
use loopd_kernel::tasks::{Task, TaskStatus};
use loopd_kernel::texts;

/// The outcome when a sub-agent was started in the background.
pub(in crate::tool) fn launched(started: &Started) -> Outcome {
    let mut text = format!(
        "Agent started in background with agent_id: {}. You'll be notified when it completes. Tell the user you're waiting and \
         end your response, or continue unrelated work until notified.",
        started.id
    );
    also(&mut text, started);
    Outcome::success(text).with_facts(launched_facts(started))
}

/// The outcome when the user moved a sub-agent to the background while the call waited for it.
pub(super) fn promoted(started: &Started) -> Outcome {
    let mut text = format!(
        "The user moved the agent to the background; it goes on as agent_id: {}. You'll be notified when it completes.",
        started.id
    );
    also(&mut text, started);
    Outcome::success(text).with_facts(launched_facts(started))
}

fn launched_facts(started: &Started) -> Map<String, Value> {
    texts::started_facts(&started.id, &started.work, "async_launched")
}

fn also(text: &mut String, started: &Started) {
    // Writing to a string cannot fail.
    if let Some(file) = &started.work.output_file {
        write!(text, " What it does can be read meanwhile in {file}.").ok();
    }
    if let Some(note) = &started.note {
        write!(text, " Note: {note}.").ok();
    }
}

/// The outcome when the run of a sub-agent ended while the call waited for it.
pub(super) fn ended(started: &Started, ending: &RunEnding) -> Outcome {
    let said = ending
        .response
        .as_deref()
        .map(str::trim_end)
        .unwrap_or_default();
    let (status, outcome) = match &ending.end {
        RunEnd::Answered if said.is_empty() => (
            "completed",
            Outcome::success("The agent finished without saying anything."),
        ),
        // Its text says why; the status of the line must not contradict that.
        RunEnd::Answered if ending.unfinished.is_some() => ("incomplete", Outcome::success(said)),
        RunEnd::Answered => ("completed", Outcome::success(said)),
        RunEnd::Failed(why) => {
            let text = partial(&format!("The agent failed: {why}."), said);
            let go_on = format!(
                "\n\nwrite_agent with agent_id \"{}\" lets it go on from there.",
                started.id
            );
            ("failed", Outcome::failure(text + &go_on))
        }
        RunEnd::Cancelled => {
            let text = partial("The agent was stopped before it was done.", said);
            ("cancelled", Outcome::failure(text))
        }
    };
    let mut outcome = outcome;
    if let Some(cut) = &ending.cut_calls {
        write!(
            outcome.text,
            "\n\nIts calls were interrupted with it:\n\n{cut}"
        )
        .ok();
    }
    for note in [&ending.worktree, &started.note].into_iter().flatten() {
        write!(outcome.text, "\n\n{note}").ok();
    }
    if !ending.left.is_empty() {
        let ids: Vec<&str> = ending.left.iter().map(TaskId::as_str).collect();
        write!(
            outcome.text,
            "\n\n[It left running in the background: {}. You'll be notified when it ends.]",
            ids.join(", ")
        )
        .ok();
    }
    // Recorded conversations have the bare answer of a built-in agent.
    let plain = matches!(started.origin, None | Some(AgentOrigin::BuiltIn))
        && started.renamed == Renamed::No
        && started.work.worktree.is_none()
        && status == "completed";
    if !plain {
        write!(
            outcome.text,
            "\n\n{}",
            run_of(status, started, ending).line()
        )
        .ok();
    }
    outcome.with_facts(run_of(status, started, ending).facts())
}

/// The outcome when the turn that waited for a sub-agent was aborted.
pub(super) fn interrupted(started: &Started, ending: &RunEnding) -> Outcome {
    let ending = RunEnding {
        response: ending.response.as_deref().map(shortened),
        ..ending.clone()
    };
    Outcome {
        status: Status::Interrupted,
        ..ended(started, &ending)
    }
}

/// Returns the end of a long text, so that there is room for what follows it.
fn shortened(said: &str) -> String {
    const LONGEST: usize = 8 * 1024;
    let from = said.len().saturating_sub(LONGEST);
    let from = (from..said.len()).find(|at| said.is_char_boundary(*at));
    match from.and_then(|from| said.get(from..)) {
        Some(end) if end.len() < said.len() => format!("[…]{end}"),
        Some(_) | None => said.to_owned(),
    }
}

/// Returns which sub-agent it was and what it used.
fn run_of<'a>(
    status: &'static str,
    started: &'a Started,
    ending: &'a RunEnding,
) -> texts::AgentRun<'a> {
    texts::AgentRun {
        id: &started.id,
        work: &started.work,
        status,
        usage: &ending.usage,
        duration_ms: ending.duration_ms,
    }
}

fn partial(what: &str, said: &str) -> String {
    if said.is_empty() {
        format!("{what} It had not said anything yet.")
    } else {
        format!("{what} The last it said:\n\n{said}")
    }
}

/// Describes the status of a sub-agent and its answers, or only those after `since_turn`.
pub(super) fn status(
    task: &Task,
    progress: Option<&RunProgress>,
    since_turn: Option<usize>,
    now: Timestamp,
) -> String {
    let (headline, status) = match &task.status {
        TaskStatus::Running => ("Agent is still running.", "running"),
        TaskStatus::Idle { .. } => ("Agent is idle (waiting for messages).", "idle"),
        TaskStatus::Ended(ending) => match ending.outcome {
            TaskOutcome::Completed => ("Agent completed.", "completed"),
            TaskOutcome::Failed => ("Agent failed.", "failed"),
            TaskOutcome::Cancelled => ("Agent was stopped.", "cancelled"),
        },
    };
    let until = task.rested_at().unwrap_or(now);
    let elapsed = until.0.saturating_sub(task.started_at.0) / 1_000;
    let mut text = format!(
        "{headline} agent_id: {}, agent_type: {}, status: {status}, description: {}, elapsed: {elapsed}s, total_turns: {}",
        task.id,
        agent_type(task),
        task.description,
        task.turns.len()
    );
    // Writing to a string cannot fail.
    if task.ending().is_some() {
        write!(text, ", duration: {}s", task.worked_ms(now) / 1_000).ok();
    }
    if let Some(reason) = task.ending().and_then(|ending| ending.reason.as_ref()) {
        write!(text, "\nReason: {reason}").ok();
    }
    if let Some(copy) = texts::worked_in(task).filter(|_| !task.is_running()) {
        write!(text, "\n{copy}").ok();
    }
    if let (true, Some(note)) = (task.is_running(), &task.note) {
        write!(text, "\nLatest: {note}").ok();
    }
    if let (true, Some(progress)) = (task.is_running(), progress) {
        write!(
            text,
            "\n{} tool calls, {} tokens so far. Recent steps:",
            progress.tool_calls, progress.tokens
        )
        .ok();
        for step in &progress.recent {
            write!(text, "\n- {}", step.message).ok();
        }
    }
    let skipped = since_turn.unwrap_or(0);
    let numbered = task.turns.len() > 1 || task.is_idle();
    for (index, turn) in task.turns.iter().enumerate().skip(skipped) {
        if numbered {
            write!(text, "\n\n[Turn {}]\n{}", index + 1, turn.response).ok();
        } else {
            write!(text, "\n\n{}", turn.response).ok();
        }
    }
    if skipped > 0 && skipped >= task.turns.len() {
        write!(text, "\n\nNothing new since turn {skipped}.").ok();
    }
    text
}

pub(super) fn agent_type(task: &Task) -> &str {
    match &task.work {
        TaskWork::Agent(work) => &work.agent_type,
        TaskWork::External(work) => &work.agent_type,
        TaskWork::Shell(_) => "shell",
    }
}

/// Describes a sub-agent in one line of the list.
pub(super) fn line(task: &Task, progress: Option<&RunProgress>, now: Timestamp) -> String {
    let status = match &task.status {
        TaskStatus::Running => "running",
        TaskStatus::Idle { .. } => "idle",
        TaskStatus::Ended(ending) => match ending.outcome {
            TaskOutcome::Completed => "completed",
            TaskOutcome::Failed => "failed",
            TaskOutcome::Cancelled => "cancelled",
        },
    };
    let intent = progress.and_then(|progress| progress.latest_intent.as_deref());
    let intent = intent
        .map(|intent| format!(", now: {intent}"))
        .unwrap_or_default();
    format!(
        "- {} ({}): {status}, {}, {}s{intent}",
        task.id,
        agent_type(task),
        task.description,
        task.worked_ms(now) / 1_000
    )
}
