//! The tasks of a session (sub-agents and background shells): list, read, message, stop, promote.

use std::time::Duration;

use loopd_proto::error as code;
use loopd_proto::id::TaskId;
use loopd_proto::method;
use loopd_proto::params::task::{
    MessageParams, Progress, ReadParams, TaskInfo, TaskNode, TaskOf, TaskRead,
};

use crate::{Error, Session};

/// A task belongs to the session that started it. The tasks of a sub-agent belong to its own
/// session, which [`TaskNode::session_id`] names and [`crate::Client::watch`] joins.
impl Session {
    /// Returns the tasks of the session, and below each running agent the tasks that it started.
    pub async fn tasks(&self) -> Result<Vec<TaskNode>, Error> {
        let tree = self.call::<method::LoopdTaskTree>(&self.of()).await?;
        Ok(tree.tasks)
    }

    /// Returns what an agent has answered; with `wait`, waits at most that long for its answer.
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

    /// Returns the progress of a task; `None` if no task has this id.
    pub async fn task_progress(&self, id: impl Into<TaskId>) -> Result<Option<Progress>, Error> {
        let params = self.task(id);
        let found = self.call::<method::TasksGetProgress>(&params).await?;
        Ok(found.progress)
    }

    /// Sends a message to an agent. A running agent reads it at its next safe point, an idle one
    /// at once.
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
        // At most once: an agent that reads a message twice may act on it twice.
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

    /// Stops a task and everything it started; returns `false` if it was not running.
    pub async fn stop_task(&self, id: impl Into<TaskId>) -> Result<bool, Error> {
        let params = self.task(id);
        let stopped = self.call::<method::TasksCancel>(&params).await?;
        Ok(stopped.cancelled)
    }

    /// Stops every agent of the session and returns how many there were. Shells go on.
    pub async fn stop_agents(&self) -> Result<u64, Error> {
        let of = self.of();
        self.call::<method::CancelAllBackgroundAgents>(&of).await
    }

    /// Moves a task to the background; returns `false` if the loop was not waiting for it.
    pub async fn promote_task(&self, id: impl Into<TaskId>) -> Result<bool, Error> {
        let params = self.task(id);
        let promoted = self.call::<method::TasksPromote>(&params).await?;
        Ok(promoted.promoted)
    }

    /// Moves the task that the loop waits for to the background; `None` if it waits for none.
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
