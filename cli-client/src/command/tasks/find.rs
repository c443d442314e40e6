//! Which sessions and which task are meant.

use anyhow::bail;
use loopd_sdk::{Client, Session, SessionConfig, SessionId, TaskInfo, TaskNode};

use super::Seen;
use crate::open::{Desk, find};
use crate::terminal::harmless;

/// Joins a session as one who only looks; what it asks is left to others.
async fn look_at(client: &Client, id: SessionId) -> anyhow::Result<Session> {
    let config = SessionConfig::default().leave_permissions_open();
    Ok(client.watch(id, config).await?)
}

/// The sessions that are meant: the one that is named, else the last one of this directory, else
/// all in memory that have tasks.
pub(super) async fn sessions(
    desk: &Desk,
    client: &Client,
    wanted: Option<&str>,
) -> anyhow::Result<Vec<Seen>> {
    let one = match wanted {
        Some(beginning) => Some(find(client, beginning).await?),
        None => desk.last_here_if_any(client).await?,
    };
    if let Some(id) = one {
        let session = look_at(client, id).await?;
        let tasks = session.tasks().await?;
        return Ok(vec![Seen { session, tasks }]);
    }
    let listed = client.sessions().await?;
    let live = client.daemon_status().await?.sessions;
    let mut seen = Vec::new();
    // The sessions of agents are not listed, and seen below those that started them.
    for id in listed.into_iter().map(|listed| listed.session_id) {
        if !live.iter().any(|live| live.session_id == id) {
            continue;
        }
        let session = look_at(client, id).await?;
        let tasks = session.tasks().await?;
        if !tasks.is_empty() {
            seen.push(Seen { session, tasks });
        }
    }
    if seen.is_empty() {
        bail!(
            "no session has worked in {}, and none in memory has tasks; name one, see loop sessions",
            desk.directory.display()
        );
    }
    Ok(seen)
}

/// One task, and the session that started it.
pub(super) struct Found {
    pub(super) session: Session,
    pub(super) node: TaskNode,
}

/// A task on its way down the tree.
struct Candidate<'a> {
    top: &'a Session,
    /// The session that started it, when that is not the one at the top.
    agent: Option<&'a SessionId>,
    node: &'a TaskNode,
}

impl Candidate<'_> {
    fn id(&self) -> &str {
        self.node.task.id().as_str()
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

fn gather<'a>(
    top: &'a Session,
    agent: Option<&'a SessionId>,
    tasks: &'a [TaskNode],
    all: &mut Vec<Candidate<'a>>,
) {
    for node in tasks {
        all.push(Candidate { top, agent, node });
        gather(top, node.session_id.as_ref(), &node.children, all);
    }
}

/// The one task of this id or name, or whose id begins like this.
pub(super) async fn task(seen: &[Seen], wanted: &str) -> anyhow::Result<Found> {
    let mut all = Vec::new();
    for seen in seen {
        gather(&seen.session, None, &seen.tasks, &mut all);
    }
    let found = choose(&all, wanted)?;
    let session = match found.agent {
        None => found.top.clone(),
        Some(agent) => look_at(found.top.client(), agent.clone()).await?,
    };
    Ok(Found {
        session,
        node: found.node.clone(),
    })
}

fn choose<'a, 'b>(all: &'b [Candidate<'a>], wanted: &str) -> anyhow::Result<&'b Candidate<'a>> {
    let fits: [&dyn Fn(&Candidate<'_>) -> bool; 3] = [
        &|task| task.id() == wanted,
        &|task| task.is_called(wanted),
        &|task| task.id().starts_with(wanted),
    ];
    for fits in fits {
        let fitting: Vec<&Candidate<'_>> = all.iter().filter(|task| fits(task)).collect();
        match fitting.as_slice() {
            [] => {}
            [one] => return Ok(one),
            several => bail!(
                "`{}` could be any of {}; give the whole id, and --session when several sessions have it",
                harmless(wanted),
                ids(several.iter().copied())
            ),
        }
    }
    if all.is_empty() {
        bail!(
            "no task is called `{}`: the session has none",
            harmless(wanted)
        );
    }
    bail!(
        "no task is called `{}`; there are {}",
        harmless(wanted),
        ids(all.iter())
    )
}

fn ids<'a, 'b: 'a>(tasks: impl Iterator<Item = &'a Candidate<'b>>) -> String {
    let ids: Vec<String> = tasks.map(|task| harmless(task.id())).collect();
    ids.join(", ")
}
