//! `loop tasks`: what sessions have going on beside their conversations, as a tree; and the verbs
//! that deal with one of them.

mod find;
mod follow;
mod lines;
mod tree;
mod verbs;

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use loopd_sdk::proto::time::Timestamp;
use loopd_sdk::{Session, TaskInfo, TaskNode, TaskStatus};

use crate::open::Desk;
use crate::outcome::Outcome;

pub(crate) use verbs::act;

/// A session that is looked at, and its tasks when last seen.
pub(super) struct Seen {
    pub(super) session: Session,
    pub(super) tasks: Vec<TaskNode>,
}

pub(crate) async fn show(
    desk: &Desk,
    session: Option<&str>,
    once: bool,
    follow: bool,
) -> anyhow::Result<Outcome> {
    if follow && !desk.options.json {
        bail!("--follow goes with --json; on a terminal the list follows by itself");
    }
    let client = desk.connect().await?;
    let seen = find::sessions(desk, &client, session).await?;
    let outcome = match (desk.options.json, follow) {
        (true, false) => lines::print(desk, &seen)?,
        (true, true) => follow::run(desk, seen, lines::Changes::default()).await?,
        (false, _) if once || !desk.terminal.is_live() => tree::print(desk, &seen)?,
        (false, _) => follow::run(desk, seen, tree::Screen::default()).await?,
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

/// Whether any of these tasks, or of those below them, runs.
fn runs(tasks: &[TaskNode]) -> bool {
    let mut tasks = tasks.iter();
    tasks.any(|node| status_of(node) == TaskStatus::Running || runs(&node.children))
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
