//! What models and programs are told about an agent that has ended or was stopped.

use loopd_proto::event::task::{AgentWork, TaskOutcome, WorkUsage};
use loopd_proto::id::TaskId;
use serde_json::{Map, Value, json};

use super::{LONGEST_LEFT, end_of};
use crate::tasks::Task;

/// Why an agent has no answer: it ended with the daemon.
pub const AGENT_LOST: &str = "it was interrupted because the daemon stopped";

/// Why an agent has no answer: its session was closed.
pub const AGENT_CLOSED: &str = "it was stopped because the session was closed";

/// Why an agent cannot go on: its own log is not there.
pub const AGENT_LOG_GONE: &str = "it has no conversation to go on with: that was deleted, or the agent was interrupted before it began; start a new task";

/// Which agent it was, how its work ended and what it used.
#[derive(Debug, Clone, Copy)]
pub struct AgentRun<'a> {
    pub id: &'a TaskId,
    pub work: &'a AgentWork,
    pub status: &'static str,
    pub usage: &'a WorkUsage,
    pub duration_ms: u64,
}

impl AgentRun<'_> {
    /// Returns the line that says which agent it was and what it used.
    pub fn line(&self) -> String {
        format!(
            "[agent_id: {}, session: {}, status: {}, {} tokens, {} tool calls, {} s]",
            self.id,
            self.work.session_id,
            self.status,
            self.usage.tokens(),
            self.usage.tool_calls,
            self.duration_ms / 1_000
        )
    }

    /// Returns the same for programs.
    pub fn facts(&self) -> Map<String, Value> {
        let mut facts = started_facts(self.id, self.work, self.status);
        facts.insert(
            "metrics".to_owned(),
            json!({
                "totalTokens": self.usage.tokens(),
                "totalToolUseCount": self.usage.tool_calls,
                "durationMs": self.duration_ms,
            }),
        );
        facts
    }
}

/// Returns which agent it is, for programs.
pub fn started_facts(id: &TaskId, work: &AgentWork, status: &str) -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert(
        "properties".to_owned(),
        json!({
            "status": status,
            "agentId": id,
            "agentType": work.agent_type,
            "sessionId": work.session_id,
            "model": work.model,
            "outputFile": work.output_file,
            "worktree": work.worktree.as_ref().map(|worktree| &worktree.path),
        }),
    );
    facts
}

/// The name of an outcome.
pub fn status_of(outcome: TaskOutcome) -> &'static str {
    match outcome {
        TaskOutcome::Completed => "completed",
        TaskOutcome::Failed => "failed",
        TaskOutcome::Cancelled => "cancelled",
    }
}

/// The result of a call whose agent did not finish, because the daemon stopped or the session was
/// closed.
/// Tells the model of the conversation what a slash command came to that worked beside it.
pub(crate) fn command_ended(
    task: &Task,
    outcome: TaskOutcome,
    why: Option<&str>,
    said: Option<&str>,
) -> String {
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    let end = match outcome {
        TaskOutcome::Completed => "answered".to_owned(),
        TaskOutcome::Failed => format!("failed{why}; it said"),
        TaskOutcome::Cancelled => format!("was stopped{why}; it said"),
    };
    let said = said
        .filter(|said| !said.trim().is_empty())
        .unwrap_or("nothing");
    let command = &task.description;
    format!("The user ran {command}, which worked in a sub-agent and {end}:\n\n{said}")
}

pub(crate) fn agent_lost(task: &Task, why: &str, said: Option<&str>) -> String {
    let said = match said.map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => format!("The last it said:\n\n{}", end_of(said, LONGEST_LEFT)),
        None => "It had not said anything yet.".to_owned(),
    };
    let copy = worked_in(task).map(|copy| format!("\n\n{copy}"));
    format!(
        "The agent {} did not finish: {why}. {said}{}\n\nwrite_agent with agent_id \"{}\" lets it go on from there.",
        task.id,
        copy.unwrap_or_default(),
        task.id
    )
}

/// Says where an agent worked that did not finish. Whether its worktree has changes is not known
/// here.
pub fn worked_in(task: &Task) -> Option<String> {
    let copy = task.agent()?.worktree.as_ref()?;
    let finished = task
        .ending()
        .is_none_or(|ending| ending.outcome == TaskOutcome::Completed);
    let told = task.latest_response();
    if (finished && !task.is_running()) || told.is_some_and(|told| told.contains(&copy.path)) {
        return None;
    }
    Some(format!(
        "It worked in the worktree {}, which is kept if it has changes.",
        copy.path
    ))
}
