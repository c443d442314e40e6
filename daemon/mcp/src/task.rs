//! Calls that a server carries out as tasks, in both dialects of the protocol.
//!
//! In the older dialect the caller wants a task, and fetches what it came to with `tasks/result`. In the
//! newer one the server makes a task of a call by itself, and `tasks/get` says everything.

use std::sync::Arc;
use std::time::Duration;

use loopd_proto::event::task::McpTaskDialect;
use rmcp::model::InputRequests;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::calls::{CallGuard, Progress};
use crate::config::LONGEST_CALL;
use crate::connection::{CallError, Connection, MOST_ROUNDS};
use crate::port::CallRef;
use crate::result::CallResult;
use crate::server::Server;

/// How long a task may take. The server is asked to keep it for so long.
pub(crate) const LONGEST_TASK: Duration = Duration::from_secs(24 * 3600);
/// How often a server is asked how far a task is, if it does not say.
const POLL: Duration = Duration::from_secs(1);
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(60);
/// How long a server may take to say how far a task is, or that it is cancelled.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);
const CANCELLED_WITHIN: Duration = Duration::from_secs(3);
/// How often the connection may be lost in a row before a task is given up.
const MOST_LOSSES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// What a call came to.
pub enum Called {
    Result(CallResult),
    /// The server goes on with it.
    Task(StartedTask),
}

/// A task on a server, by the name that it has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHandle {
    pub id: String,
    pub dialect: McpTaskDialect,
}

/// A task that has just begun, with the connection that it began on.
pub struct StartedTask {
    pub handle: TaskHandle,
    connection: Arc<Connection>,
    /// Takes the reports of progress, which go on under the name of the call.
    guard: CallGuard,
}

/// A task that is followed to its end.
pub struct FollowedTask {
    pub handle: TaskHandle,
    /// `None` for one that began on an earlier connection.
    pub started: Option<StartedTask>,
    /// The call that it belongs to.
    pub label: CallRef,
    /// Takes what the server says about its progress.
    pub notes: mpsc::Sender<String>,
    /// Cancels the task on the server.
    pub cancel: CancellationToken,
}

/// What `tasks/get` says.
struct TaskState {
    status: String,
    message: Option<String>,
    poll: Option<Duration>,
    all: Value,
}

impl TaskState {
    fn read(all: Value) -> Result<Self, CallError> {
        let status = all.get("status").and_then(Value::as_str);
        let Some(status) = status.map(str::to_owned) else {
            let why = "it did not say how far its task is".to_owned();
            return Err(CallError::Unreadable(why));
        };
        let text = all.get("statusMessage").and_then(Value::as_str);
        let message = text.map(str::to_owned);
        let poll = ["pollInterval", "pollIntervalMs"]
            .iter()
            .find_map(|name| all.get(*name)?.as_f64())
            .filter(|ms| ms.is_finite() && *ms >= 0.0)
            .map(|ms| Duration::from_secs_f64(ms.min(60_000.0) / 1_000.0));
        Ok(Self {
            status,
            message,
            poll,
            all,
        })
    }
}

impl Connection {
    /// Returns whether a tool may be called as a task that the caller wants.
    pub(crate) fn has_tasks(&self) -> bool {
        self.can("tasks/requests/tools/call")
    }

    /// Reads the result of a call, which may say that the call goes on as a task.
    pub(crate) fn called(
        self: &Arc<Self>,
        result: &Value,
        guard: CallGuard,
    ) -> Result<Called, CallError> {
        let kind = result.get("resultType").and_then(Value::as_str);
        let (task, dialect) = match result.get("task") {
            Some(task @ Value::Object(_)) if result.get("content").is_none() => {
                (task, McpTaskDialect::Requested)
            }
            _ if kind == Some("task") => (result, McpTaskDialect::Extension),
            _ => return Ok(Called::Result(CallResult::read(result)?)),
        };
        let Some(id) = task.get("taskId").and_then(Value::as_str) else {
            let why = "it began a task and did not say its name".to_owned();
            return Err(CallError::Unreadable(why));
        };
        Ok(Called::Task(StartedTask {
            handle: TaskHandle {
                id: id.to_owned(),
                dialect,
            },
            connection: self.clone(),
            guard,
        }))
    }

    async fn get_task(&self, id: &str) -> Result<TaskState, CallError> {
        let params = json!({"taskId": id});
        let got = self.request_by_name("tasks/get", params, ANSWERED_WITHIN);
        match got.await {
            Ok(state) => TaskState::read(state),
            Err(CallError::Refused { message, .. }) => Err(CallError::TaskUnknown(message)),
            Err(error) => Err(error),
        }
    }

    /// Returns what a task of the older dialect came to. The server may ask people meanwhile.
    async fn task_result(&self, id: &str) -> Result<CallResult, CallError> {
        let params = json!({"taskId": id});
        let result = self.request_by_name("tasks/result", params, LONGEST_CALL);
        CallResult::read(&result.await?)
    }

    /// Answers what a task of the newer dialect asks.
    async fn answer_task(&self, id: &str, state: &Value) -> Result<(), CallError> {
        let asked: InputRequests = state
            .get("inputRequests")
            .map(|asked| serde_json::from_value(asked.clone()))
            .transpose()
            .map_err(|error| CallError::Unreadable(error.to_string()))?
            .unwrap_or_default();
        let answers = self.answers(asked).await?;
        let params = json!({"taskId": id, "inputResponses": answers});
        let updated = self.request_by_name("tasks/update", params, ANSWERED_WITHIN);
        updated.await.map(|_| ())
    }

    /// Tells the server that nobody wants a task any more.
    async fn cancel_task(&self, id: &str) {
        let params = json!({"taskId": id});
        let told = self.request_by_name("tasks/cancel", params, CANCELLED_WITHIN);
        if let Err(error) = told.await {
            self.handler
                .log
                .add(&format!("the task {id} could not be cancelled: {error}"));
        }
    }

    /// Follows a task as long as this connection lasts.
    async fn watch_task(
        &self,
        task: &FollowedTask,
        guard: &mut CallGuard,
    ) -> Result<CallResult, CallError> {
        let FollowedTask {
            handle,
            notes,
            cancel,
            ..
        } = task;
        let mut reports = guard.listen_again();
        let end = Instant::now() + LONGEST_TASK;
        let (mut said, mut rounds) = (None, 0);
        loop {
            let changed = self.handler.tasks_changed.notified();
            tokio::pin!(changed);
            // What the server says from now on is not missed.
            changed.as_mut().enable();
            let state = tokio::select! {
                state = self.get_task(&handle.id) => state?,
                () = cancel.cancelled() => return self.cancelled(&handle.id).await,
            };
            match (state.status.as_str(), handle.dialect) {
                ("completed" | "failed" | "input_required", McpTaskDialect::Requested) => {
                    return tokio::select! {
                        result = self.task_result(&handle.id) => result,
                        () = cancel.cancelled() => self.cancelled(&handle.id).await,
                    };
                }
                ("completed", McpTaskDialect::Extension) => {
                    let result = state.all.get("result").cloned().unwrap_or_default();
                    return CallResult::read(&result);
                }
                ("failed", McpTaskDialect::Extension) => return Err(failure(&state)),
                ("input_required", McpTaskDialect::Extension) => {
                    rounds += 1;
                    if rounds > MOST_ROUNDS {
                        let why = format!("it asked for more input {MOST_ROUNDS} times");
                        return Err(CallError::Unreadable(why));
                    }
                    tokio::select! {
                        answered = self.answer_task(&handle.id, &state.all) => answered?,
                        () = cancel.cancelled() => return self.cancelled(&handle.id).await,
                    }
                    continue;
                }
                ("cancelled", _) => return Err(CallError::CancelledByServer),
                // It works, or is in a state that is not known yet.
                _ => {}
            }
            if state.message.is_some() && state.message != said {
                said.clone_from(&state.message);
                note(notes, state.message);
            }
            let poll = state
                .poll
                .unwrap_or(POLL)
                .clamp(SHORTEST_POLL, LONGEST_POLL);
            let due = (Instant::now() + poll).min(end);
            loop {
                tokio::select! {
                    () = tokio::time::sleep_until(due) => break,
                    () = &mut changed => {
                        // A server that never stops saying so is asked now and then.
                        tokio::time::sleep(SHORTEST_POLL).await;
                        break;
                    }
                    Some(report) = heard(&mut reports) => note(notes, Some(report.text())),
                    () = cancel.cancelled() => return self.cancelled(&handle.id).await,
                }
            }
            if Instant::now() >= end {
                self.cancel_task(&handle.id).await;
                return Err(CallError::Timeout(LONGEST_TASK));
            }
        }
    }

    async fn cancelled(&self, id: &str) -> Result<CallResult, CallError> {
        self.cancel_task(id).await;
        Err(CallError::Cancelled)
    }
}

impl Server {
    /// Follows a task to its end, over several connections if need be. A server that does not know the
    /// task any more has lost it.
    pub async fn follow(self: &Arc<Self>, mut task: FollowedTask) -> Result<CallResult, CallError> {
        let mut current = task.started.take();
        let mut losses = 0;
        loop {
            let (connection, mut guard) = if let Some(started) = current.take() {
                (started.connection, started.guard)
            } else {
                let connection = tokio::select! {
                    connection = self.connection() => connection,
                    () = task.cancel.cancelled() => return Err(CallError::Cancelled),
                };
                match connection {
                    Ok(connection) => {
                        let guard = connection.calls.begin(task.label.clone());
                        (connection, guard)
                    }
                    Err(error) if losses >= MOST_LOSSES => return Err(error),
                    Err(_) => {
                        wait(&mut losses, &task.cancel).await;
                        continue;
                    }
                }
            };
            match connection.watch_task(&task, &mut guard).await {
                Err(
                    error @ (CallError::Closed
                    | CallError::NotSent
                    | CallError::NotConnected(_)
                    | CallError::Forgotten
                    | CallError::Timeout(ANSWERED_WITHIN)),
                ) => {
                    if losses >= MOST_LOSSES {
                        return Err(error);
                    }
                    drop(guard);
                    if error == CallError::Forgotten {
                        self.connect_anew(&connection);
                    }
                    wait(&mut losses, &task.cancel).await;
                }
                ended => return ended,
            }
        }
    }
}

/// Waits before a lost connection is made again, longer each time.
async fn wait(losses: &mut u32, cancel: &CancellationToken) {
    let pause = FIRST_WAIT.saturating_mul(1 << (*losses).min(8));
    *losses += 1;
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        () = cancel.cancelled() => {}
    }
}

async fn heard(reports: &mut Option<mpsc::Receiver<Progress>>) -> Option<Progress> {
    match reports {
        Some(reports) => reports.recv().await,
        None => std::future::pending().await,
    }
}

/// Passes on what the server said. What does not fit is dropped: the next note says more.
fn note(notes: &mpsc::Sender<String>, said: Option<String>) {
    if let Some(said) = said {
        notes.try_send(said).ok();
    }
}

/// Says why a task of the newer dialect failed.
fn failure(state: &TaskState) -> CallError {
    let error = state.all.get("error");
    let text = error.and_then(|error| error.get("message")?.as_str());
    let code = error.and_then(|error| error.get("code")?.as_i64());
    CallError::Refused {
        code: code
            .and_then(|code| i32::try_from(code).ok())
            .unwrap_or(-32603),
        message: text
            .map(str::to_owned)
            .or_else(|| state.message.clone())
            .unwrap_or_else(|| "the task failed".to_owned()),
    }
}
