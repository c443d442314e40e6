//! `loop tasks`: shows the tasks of sessions as a tree, and the subcommands that act on one task.

mod find;
mod follow;
mod lines;
mod tree;
mod verbs;

use std::time::{SystemTime, UNIX_EPOCH};

use loopd_sdk::proto::time::Timestamp;
use loopd_sdk::{Session, TaskInfo, TaskNode, TaskStatus};

use crate::app::App;
use crate::outcome::{Outcome, WrongUsage};

pub(crate) use verbs::act;

/// A session that this client observes, and its tasks at the last refresh.
pub(super) struct WatchedSession {
    pub(super) session: Session,
    pub(super) tasks: Vec<TaskNode>,
}

pub(crate) async fn show(
    app: &App,
    session: Option<&str>,
    once: bool,
    follow: bool,
) -> anyhow::Result<Outcome> {
    if follow && !app.options.json {
        return Err(WrongUsage::error(
            "--follow goes with --json; on a terminal the list follows by itself",
        ));
    }
    let client = app.connect().await?;
    let watched = find::sessions(app, &client, session).await?;
    let outcome = match (app.options.json, follow) {
        (true, false) => lines::print(app, &watched)?,
        (true, true) => follow::run(app, watched, lines::Changes::default()).await?,
        (false, _) if once || !app.terminal.is_live() => tree::print(app, &watched)?,
        (false, _) => follow::run(app, watched, tree::Screen::default()).await?,
    };
    client.close().await;
    Ok(outcome)
}

fn status_of(node: &TaskNode) -> TaskStatus {
    match &node.task {
        TaskInfo::Shell(shell) => shell.status,
        TaskInfo::Agent(agent) => agent.status,
    }
}

/// Returns the id by which a task is shown and found. A shell of an agent has an id that is unique only
/// among the shells of that agent, so that the agent is named before it.
fn shown_id(agent: Option<&str>, node: &TaskNode) -> String {
    let id = node.task.id().as_str();
    match (agent, &node.task) {
        (Some(agent), TaskInfo::Shell(_)) if !id.contains(':') => format!("{agent}:{id}"),
        (_, TaskInfo::Shell(_) | TaskInfo::Agent(_)) => id.to_owned(),
    }
}

/// Returns whether any of these tasks or their children is running.
fn any_running(tasks: &[TaskNode]) -> bool {
    let mut tasks = tasks.iter();
    tasks.any(|node| status_of(node) == TaskStatus::Running || any_running(&node.children))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a terminal shows how long a command has been running by now"
)]
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    Timestamp(i64::try_from(millis).unwrap_or(i64::MAX))
}
