//! Requests to the daemon that run beside the conversation, and what comes of them.

use loopd_sdk::proto::method::{
    LocationsResolve, ShellCancelUserRequested, ShellExecuteUserRequested,
};
use loopd_sdk::proto::params::permission::LocationParams;
use loopd_sdk::proto::params::shell::{CancelParams, UserRequestedParams};
use loopd_sdk::proto::permission::Approval;
use loopd_sdk::{
    Error, Interrupted, KeepsWaiting, Message, MessageId, PermissionDecision, RequestId, SendMode,
    Session, TaskInfo, TaskNode,
};

use super::Chat;
use super::complete::{self, Candidates, Menu};
use super::question::Question;
use super::styled::Look;
use crate::terminal::sanitize;

/// What came of a request.
pub(super) enum JobResult {
    Sent {
        text: String,
        result: Result<MessageId, Error>,
    },
    Tasks(Vec<TaskNode>),
    Completions(Candidates),
    Promoted(Result<Option<TaskInfo>, Error>),
    Stopped(Result<Interrupted, Error>),
    Ran(Result<(), Error>),
    Located {
        question: Box<Question>,
        approval: Approval,
        result: Result<String, Error>,
    },
    Nothing,
}

impl Chat<'_> {
    /// Sends a message. While the session works, it joins the running turn.
    pub(super) fn send(&mut self, mut message: Message) {
        let text = message.display_prompt.clone();
        let text = text.unwrap_or_else(|| message.prompt.clone());
        if self.transcript.is_working() {
            message.mode = SendMode::Immediate;
        }
        self.transcript.waiting.push((None, text.clone()));
        let session = self.session.clone();
        let autopilot = self.app.options.asks_for_autopilot();
        self.jobs.spawn(async move {
            let mut result = session.send(message).await;
            // Who asks for the autopilot does not mean a paused one.
            if autopilot
                && result.is_ok()
                && let Err(error) = session.continue_autopilot().await
            {
                result = Err(error);
            }
            JobResult::Sent { text, result }
        });
    }

    pub(super) fn read_tasks(&mut self) {
        let session = self.session.clone();
        self.jobs.spawn(async move {
            // The list is read again when something changes.
            session
                .tasks()
                .await
                .map_or(JobResult::Nothing, JobResult::Tasks)
        });
    }

    pub(super) fn ask_completions(&mut self, typed: String) {
        let session = self.session.clone();
        let asking = complete::ask(session, typed);
        self.jobs
            .spawn(async move { JobResult::Completions(asking.await) });
    }

    /// Moves what the session waits for to the background.
    pub(super) fn promote(&mut self) {
        let session = self.session.clone();
        self.jobs
            .spawn(async move { JobResult::Promoted(session.promote_current_task().await) });
    }

    /// Stops what runs.
    pub(super) fn stop(&mut self) {
        self.handle.stop();
        if let Some(request_id) = self.user_command.clone() {
            let session = self.session.clone();
            self.jobs.spawn(async move {
                let params = CancelParams {
                    session_id: session.id().clone(),
                    request_id,
                };
                match session.call::<ShellCancelUserRequested>(&params).await {
                    Ok(_) => JobResult::Nothing,
                    Err(error) => JobResult::Ran(Err(error)),
                }
            });
        }
        if self.transcript.is_working() {
            let session = self.session.clone();
            self.jobs.spawn(async move {
                JobResult::Stopped(session.interrupt(None, KeepsWaiting::No).await)
            });
        }
    }

    /// Runs a command of the user in the directory of the session. Its events show what comes of it.
    pub(super) fn run_user_command(&mut self, command: &str) {
        if self.user_command.is_some() {
            let told = "a command of yours runs already; Esc stops it";
            self.transcript.error(told);
            return;
        }
        let request_id = RequestId::from(format!("loop-{}-{}", std::process::id(), self.tick));
        self.user_command = Some(request_id.clone());
        let params = UserRequestedParams {
            session_id: self.session.id().clone(),
            request_id,
            command: command.to_owned(),
        };
        let session = self.session.clone();
        self.jobs.spawn(async move {
            let ran = session.call::<ShellExecuteUserRequested>(&params).await;
            JobResult::Ran(ran.map(|_| ()))
        });
    }

    /// Finds the name of this folder for an approval that holds here for good.
    pub(super) fn locate(&mut self, question: Question, approval: Approval) {
        let session = self.session.clone();
        self.jobs.spawn(async move {
            JobResult::Located {
                question: Box::new(question),
                approval,
                result: location_key(&session).await,
            }
        });
    }

    pub(super) fn done(&mut self, done: JobResult) {
        match done {
            JobResult::Sent { text, result } => self.sent(text, result),
            JobResult::Tasks(tasks) => self.tasks = tasks,
            JobResult::Completions(candidates) => {
                if self.question.is_none() {
                    self.menu = Menu::open(&mut self.editor, candidates);
                }
            }
            JobResult::Promoted(Ok(Some(task))) => {
                let what = match task {
                    TaskInfo::Shell(shell) => sanitize(&shell.command),
                    TaskInfo::Agent(agent) => sanitize(agent.id.as_str()),
                };
                let told = format!("in the background now: {what}");
                self.transcript.note(Look::DIM, &told);
                self.read_tasks();
            }
            JobResult::Promoted(Ok(None)) => {
                let told = "nothing is waited for that could go on in the background";
                self.transcript.note(Look::DIM, told);
            }
            JobResult::Stopped(Ok(stopped)) => {
                let removed = &stopped.removed_message_ids;
                let mut back = Vec::new();
                self.transcript.waiting.retain(|(id, text)| {
                    let is_removed = id.as_ref().is_some_and(|id| removed.contains(id));
                    if is_removed {
                        back.push(text.clone());
                    }
                    !is_removed
                });
                // What was not taken can be edited and sent again.
                if !back.is_empty() {
                    self.put_back(&back.join("\n"));
                }
            }
            JobResult::Ran(ran) => {
                self.user_command = None;
                if let Err(error) = ran {
                    self.transcript.error(&format!("loop: {error}"));
                }
            }
            JobResult::Located {
                question,
                approval,
                result,
            } => match result {
                Ok(location_key) => {
                    self.transcript
                        .note(Look::DIM, "  allowed in this folder from now on");
                    question.decide(PermissionDecision::ApproveForLocation {
                        approval,
                        location_key,
                    });
                }
                Err(error) => {
                    self.transcript.error(&format!("loop: {error}"));
                    self.waiting_questions.push_front(*question);
                }
            },
            JobResult::Promoted(Err(error)) | JobResult::Stopped(Err(error)) => {
                self.transcript.error(&format!("loop: {error}"));
            }
            JobResult::Nothing => {}
        }
    }

    fn sent(&mut self, text: String, result: Result<MessageId, Error>) {
        let waiting = &mut self.transcript.waiting;
        let position = waiting
            .iter()
            .position(|(id, waits)| id.is_none() && *waits == text);
        match (result, position) {
            (Ok(id), Some(at)) => {
                if let Some(entry) = waiting.get_mut(at) {
                    entry.0 = Some(id);
                }
            }
            // The session has taken it already.
            (Ok(_), None) => {}
            (Err(error), position) => {
                if let Some(at) = position {
                    waiting.remove(at);
                }
                self.transcript.error(&format!("loop: {error}"));
                self.put_back(&text);
            }
        }
    }
}

/// Returns the name of the folder in which a session works, for approvals that hold there.
async fn location_key(session: &Session) -> Result<String, Error> {
    let directory = super::directory(session).await?;
    let params = LocationParams {
        session_id: session.id().clone(),
        working_directory: directory.to_string_lossy().into_owned(),
    };
    let found = session.call::<LocationsResolve>(&params).await?;
    Ok(found.location_key)
}
