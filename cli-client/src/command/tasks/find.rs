//! Finds the sessions and the task that the arguments name.

use anyhow::bail;
use loopd_sdk::{Client, Session, SessionConfig, SessionId, TaskInfo, TaskNode};

use super::{WatchedSession, shown_id};
use crate::app::{App, find_session};
use crate::terminal::sanitize;

/// Joins a session as an observer and leaves its permission requests to other clients.
async fn watch(client: &Client, id: SessionId) -> anyhow::Result<Session> {
    let config = SessionConfig::default().leave_permissions_open();
    Ok(client.watch(id, config).await?)
}

/// Finds the named session, else the last one of this directory, else all sessions in memory that
/// have tasks.
pub(super) async fn sessions(
    app: &App,
    client: &Client,
    wanted: Option<&str>,
) -> anyhow::Result<Vec<WatchedSession>> {
    let one = match wanted {
        Some(beginning) => Some(find_session(client, beginning).await?),
        None => app.last_here_if_any(client).await?,
    };
    if let Some(id) = one {
        let session = watch(client, id).await?;
        let tasks = session.tasks().await?;
        return Ok(vec![WatchedSession { session, tasks }]);
    }
    let listed = client.sessions().await?;
    let live = client.daemon_status().await?.sessions;
    let mut watched = Vec::new();
    // The sessions of sub-agents are not listed: their tasks are in the trees of their parents.
    for id in listed.into_iter().map(|listed| listed.session_id) {
        if !live.iter().any(|live| live.session_id == id) {
            continue;
        }
        let session = watch(client, id).await?;
        let tasks = session.tasks().await?;
        if !tasks.is_empty() {
            watched.push(WatchedSession { session, tasks });
        }
    }
    if watched.is_empty() {
        bail!(
            "no session has worked in {}, and none in memory has tasks; name one, see loop sessions",
            app.directory.display()
        );
    }
    Ok(watched)
}

/// One task, and the session that started it.
pub(super) struct Found {
    pub(super) session: Session,
    /// Its id as lists show it.
    pub(super) shown: String,
    pub(super) node: TaskNode,
}

/// A task of the tree, with the sessions above it.
struct Candidate<'a> {
    top: &'a Session,
    /// The sub-agent's session that started the task; absent if `top` started it.
    agent: Option<&'a SessionId>,
    /// Its id as lists show it.
    shown: String,
    node: &'a TaskNode,
}

impl Candidate<'_> {
    fn id(&self) -> &str {
        self.node.task.id().as_str()
    }

    fn shown(&self) -> &str {
        &self.shown
    }

    fn is_called(&self, wanted: &str) -> bool {
        let name = match &self.node.task {
            TaskInfo::Agent(agent) => agent.display_name.as_deref(),
            TaskInfo::Shell(_) => None,
        };
        let last = self.id().rsplit('.').next();
        last == Some(wanted) || name.is_some_and(|name| name.eq_ignore_ascii_case(wanted))
    }
}

fn collect<'a>(
    top: &'a Session,
    agent: Option<&'a TaskNode>,
    tasks: &'a [TaskNode],
    all: &mut Vec<Candidate<'a>>,
) {
    for node in tasks {
        all.push(Candidate {
            top,
            agent: agent.and_then(|agent| agent.session_id.as_ref()),
            shown: shown_id(agent.map(|agent| agent.task.id().as_str()), node),
            node,
        });
        collect(top, Some(node), &node.children, all);
    }
}

/// Finds the only task that has this id or name, or whose id begins with it.
pub(super) async fn task(watched: &[WatchedSession], wanted: &str) -> anyhow::Result<Found> {
    let mut all = Vec::new();
    for watched in watched {
        collect(&watched.session, None, &watched.tasks, &mut all);
    }
    let found = choose(&all, wanted)?;
    let session = match found.agent {
        None => found.top.clone(),
        Some(agent) => watch(found.top.client(), agent.clone()).await?,
    };
    Ok(Found {
        session,
        shown: found.shown.clone(),
        node: found.node.clone(),
    })
}

fn choose<'a, 'b>(all: &'b [Candidate<'a>], wanted: &str) -> anyhow::Result<&'b Candidate<'a>> {
    let fits: [&dyn Fn(&Candidate<'_>) -> bool; 4] = [
        &|task| task.shown() == wanted,
        &|task| task.id() == wanted,
        &|task| task.is_called(wanted),
        &|task| task.shown().starts_with(wanted),
    ];
    for fits in fits {
        let fitting: Vec<&Candidate<'_>> = all.iter().filter(|task| fits(task)).collect();
        match fitting.as_slice() {
            [] => {}
            [one] => return Ok(one),
            several => bail!(
                "`{}` could be any of {}; give the whole id, and --session when several sessions have it",
                sanitize(wanted),
                ids(several.iter().copied())
            ),
        }
    }
    if all.is_empty() {
        bail!(
            "no task is called `{}`: the session has none",
            sanitize(wanted)
        );
    }
    bail!(
        "no task is called `{}`; there are {}",
        sanitize(wanted),
        ids(all.iter())
    )
}

fn ids<'a, 'b: 'a>(tasks: impl Iterator<Item = &'a Candidate<'b>>) -> String {
    let ids: Vec<String> = tasks.map(|task| sanitize(task.shown())).collect();
    ids.join(", ")
}
