//! `loopd.taskTree`: the tasks of a session, and below each sub-agent its own tasks. What a sub-agent
//! that rests has done is read from its log.

use std::collections::BTreeSet;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::read_durable;
use loopd_proto::event::task::TaskOutcome;
use loopd_proto::id::{SessionId, TaskId};
use loopd_proto::params::session::Of;
use loopd_proto::params::task::{TaskInfo, TaskNode, TaskTree};
use loopd_proto::time::Timestamp;

use super::task_info::{node, of_job};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::{SessionError, SessionHandle};
use crate::subagent::Subagents;
use loopd_kernel::apply::apply;
use loopd_kernel::state::State;
use loopd_kernel::tasks::{Ending, Task, TaskStatus};
use loopd_kernel::texts;

/// How deep a tree is shown.
const DEEPEST: usize = 32;

pub(super) async fn tree(context: Context, params: Of) -> Result<TaskTree, RpcError> {
    let session = context.session(&params.session_id)?;
    let tree = Tree {
        context: &context,
        with_agents: with_agents(&context).await?,
    };
    Ok(TaskTree {
        tasks: tree.live(session, DEEPEST).await?,
    })
}

/// Returns the sessions that have sub-agents, so that only their logs are read.
async fn with_agents(context: &Context) -> Result<BTreeSet<SessionId>, RpcError> {
    let records = context.app.services.store.list().await;
    let records = records.map_err(|error| SessionError::Store(error.into()))?;
    let agents = records.into_iter().filter(|record| record.agent.is_some());
    Ok(agents.filter_map(|record| record.parent).collect())
}

struct Tree<'a> {
    context: &'a Context,
    with_agents: BTreeSet<SessionId>,
}

impl Tree<'_> {
    /// Returns the tasks of a live session.
    fn live(
        &self,
        session: SessionHandle,
        depth: usize,
    ) -> BoxFuture<'_, Result<Vec<TaskNode>, RpcError>> {
        async move {
            let (tasks, agents, in_front) = session
                .view(|view| {
                    let tasks: Vec<Task> = view.state.tasks.iter().cloned().collect();
                    (tasks, view.agents.clone(), view.shells.foreground())
                })
                .await?;
            let waited_for = in_front.into_iter().map(|job| TaskNode {
                task: TaskInfo::Shell(of_job(&job)),
                latest_intent: None,
                tool_calls: 0,
                tokens: 0,
                session_id: None,
                output_file: None,
                worktree: None,
                children: Vec::new(),
            });
            let mut nodes: Vec<TaskNode> = waited_for.collect();
            nodes.extend(self.nodes(tasks, Some(&agents), depth).await);
            Ok(nodes)
        }
        .boxed()
    }

    async fn nodes(
        &self,
        tasks: Vec<Task>,
        agents: Option<&Subagents>,
        depth: usize,
    ) -> Vec<TaskNode> {
        let now = self.context.app.services.clock.now();
        let own: BTreeSet<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
        let mut nodes = Vec::new();
        for task in tasks {
            let run = agents.and_then(|agents| agents.run(&task.id));
            let progress = run.map(|run| run.progress());
            let mut node = node(&task, progress.as_ref(), now);
            if let Some(work) = task.agent().filter(|_| depth > 0) {
                node.children = self.below(&work.session_id, depth - 1).await;
                // A command that it left running is a task of who started it, also when it has ended.
                let is_listed = |child: &TaskNode| {
                    let left = TaskId::new(format!("{}:{}", task.id, child.task.id()));
                    // The id of one that an agent further below has left is unique in the tree.
                    let same = child.task.id().as_str().contains(':');
                    let is_shell = matches!(child.task, TaskInfo::Shell(_));
                    is_shell && (own.contains(&left) || same && own.contains(child.task.id()))
                };
                node.children.retain(|child| !is_listed(child));
            }
            nodes.push(node);
        }
        nodes
    }

    /// Returns the tasks of a sub-agent: from its session if that is live, else from its log.
    fn below<'b>(&'b self, session: &'b SessionId, depth: usize) -> BoxFuture<'b, Vec<TaskNode>> {
        async move {
            if let Some(live) = self.context.app.sessions.get(session)
                && let Ok(nodes) = self.live(live, depth).await
            {
                return nodes;
            }
            if !self.with_agents.contains(session) {
                return Vec::new();
            }
            self.nodes(self.stored(session).await, None, depth).await
        }
        .boxed()
    }

    /// Returns the tasks in the log of a session that is not live.
    async fn stored(&self, session: &SessionId) -> Vec<Task> {
        let (record, events) = match self.context.app.services.store.load(session).await {
            Ok(Some(stored)) => stored,
            Ok(None) => return Vec::new(),
            Err(error) => {
                tracing::warn!(%session, %error, "an agent's log could not be read");
                return Vec::new();
            }
        };
        let mut state = State::new(session.clone());
        let about_tasks = events
            .iter()
            .filter(|event| event.kind.starts_with("loopd.task"));
        for event in about_tasks {
            if let Ok((head, event)) = read_durable(&event.json) {
                apply(&mut state, &head, &event);
            }
        }
        let last = Timestamp(record.modified_ms);
        let tasks = state.tasks.iter().cloned();
        tasks.map(|task| closed(task, last)).collect()
    }
}

/// Describes a task of a session that is not live. What still ran when the session ended is over,
/// unless it outlives the session.
fn closed(task: Task, at: Timestamp) -> Task {
    if !task.is_running() || task.is_detached() {
        return task;
    }
    let ending = Ending {
        outcome: TaskOutcome::Failed,
        exit_code: None,
        reason: Some(texts::AGENT_LOST.to_owned()),
        at,
    };
    Task {
        status: TaskStatus::Ended(ending),
        active_since: None,
        ..task
    }
}
