//! What goes on beside the loop of a session: its agents and background commands, looked at,
//! spoken to, stopped and moved to the background.

use std::time::Duration;

use loopd_proto::error as code;
use loopd_proto::id::TaskId;
use loopd_proto::method;
use loopd_proto::params::task::{
    MessageParams, Progress, ReadParams, TaskInfo, TaskNode, TaskOf, TaskRead,
};

use crate::{Error, Session};

/// Tasks are known by the session that started them: those of an agent belong to the agent's own
/// session, which [`TaskNode::session_id`] names and [`crate::Client::watch`] joins.
impl Session {
    /// The tasks of the session, and below each agent that works those that it started.
    pub async fn tasks(&self) -> Result<Vec<TaskNode>, Error> {
        let tree = self.call::<method::LoopdTaskTree>(&self.of()).await?;
        Ok(tree.tasks)
    }

    /// What an agent answered so far; with `wait`, after its answer or that long.
    pub async fn read_task(
        &self,
        id: impl Into<TaskId>,
        wait: Option<Duration>,
    ) -> Result<TaskRead, Error> {
        let params = ReadParams {
            session_id: self.id().clone(),
            id: id.into(),
            wait: wait.map(|wait| wait.as_secs_f64()),
        };
        self.call::<method::LoopdTaskRead>(&params).await
    }

    /// How a task gets on; `None` when there is none of this id.
    pub async fn task_progress(&self, id: impl Into<TaskId>) -> Result<Option<Progress>, Error> {
        let params = self.task(id);
        let found = self.call::<method::TasksGetProgress>(&params).await?;
        Ok(found.progress)
    }

    /// Gives an agent more to do: at its next safe point when it works, else at once.
    pub async fn send_to_task(
        &self,
        id: impl Into<TaskId>,
        message: impl Into<String>,
    ) -> Result<(), Error> {
        let params = MessageParams {
            session_id: self.id().clone(),
            id: id.into(),
            message: message.into(),
            from_agent_id: None,
        };
        // Once: an agent that is told a thing twice may do it twice.
        let shared = &self.client().shared;
        let sent = shared
            .call_once::<method::TasksSendMessage>(&params)
            .await?;
        match sent.error {
            None if sent.sent => Ok(()),
            error => Err(Error::Refused {
                code: i64::from(code::FAILED),
                message: error.unwrap_or_else(|| "it takes no messages now".to_owned()),
            }),
        }
    }

    /// Stops a task, and whatever it started; `false` when it did not run.
    pub async fn stop_task(&self, id: impl Into<TaskId>) -> Result<bool, Error> {
        let params = self.task(id);
        let stopped = self.call::<method::TasksCancel>(&params).await?;
        Ok(stopped.cancelled)
    }

    /// Stops every agent of the session, and says how many that were. Commands go on.
    pub async fn stop_agents(&self) -> Result<u64, Error> {
        let of = self.of();
        self.call::<method::CancelAllBackgroundAgents>(&of).await
    }

    /// Lets the loop go on without waiting for a task; `false` when it did not wait for it.
    pub async fn promote_task(&self, id: impl Into<TaskId>) -> Result<bool, Error> {
        let params = self.task(id);
        let promoted = self.call::<method::TasksPromote>(&params).await?;
        Ok(promoted.promoted)
    }

    /// Lets the loop go on without waiting for what it waits for; `None` when that is nothing.
    pub async fn promote_current_task(&self) -> Result<Option<TaskInfo>, Error> {
        let of = self.of();
        let promoted = self.call::<method::TasksPromoteCurrent>(&of).await?;
        Ok(promoted.task)
    }

    fn task(&self, id: impl Into<TaskId>) -> TaskOf {
        TaskOf {
            session_id: self.id().clone(),
            id: id.into(),
        }
    }
}
