//! The plan of a session: the file that holds it, and the question whether plan mode may end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loopd_proto::event::ask::ExitPlanModeRequested;
use loopd_proto::event::session::FileOperation;
use loopd_proto::id::RequestId;
use loopd_proto::params::pending::ExitPlanMode;

use super::actor::Actor;
use super::{SessionError, SessionHandle};
use crate::client::{AskError, Client};
use crate::tool::exit_plan_mode::read_plan;
use loopd_kernel::command::{Answer, Command};
use loopd_kernel::state::State;

impl Actor {
    /// Asks a client about a plan; the first answer of any client counts.
    pub(super) fn ask_about_plan(
        &mut self,
        client: &Arc<dyn Client>,
        asked: &ExitPlanModeRequested,
    ) {
        let asking = client.ask_plan(&self.state.id, asked);
        let asked = asked.clone();
        let request = asked.request_id.clone();
        let file = PathBuf::from(self.services.plan_file(&self.state.id));
        let reporter = self.reporter();
        let session = SessionHandle {
            id: self.state.id.clone(),
            mailbox: self.mailbox.clone(),
        };
        let waiting = self.running.spawn(async move {
            let failed = |why: String| Command::ExitPlanModeFailed {
                request: asked.request_id.clone(),
                why: shortened(why),
            };
            let report = match asking.await {
                Ok(answer) => {
                    if let Some(why) = not_offered(&asked, &answer) {
                        failed(why)
                    } else {
                        let answered = session.command(command(&file, &asked, answer).await);
                        match answered.await {
                            // What was offered is not possible any more.
                            Err(SessionError::Refused(why)) => failed(why.to_string()),
                            Ok(_) | Err(_) => return,
                        }
                    }
                }
                // The question stays open: another client may answer it, or this one later.
                Err(AskError::Gone) => return,
                // Whoever waited for this client would wait for ever.
                Err(AskError::Failed(why) | AskError::TooLarge(why)) => failed(why),
            };
            reporter.report(report).await;
        });
        self.question_waiters.sent(request, waiting);
    }

    /// Asks a client that has just attached about the plans that wait for approval.
    pub(super) fn ask_late_joiner_about_plans(&mut self, client: &Arc<dyn Client>) {
        let plans: Vec<_> = self.state.questions.plans().cloned().collect();
        for plan in plans {
            self.ask_about_plan(client, &plan.asked);
        }
    }

    /// Keeps a plan that came with a call as the plan of the session.
    pub(super) fn keep_plan(&mut self, content: &str) {
        let session = SessionHandle {
            id: self.state.id.clone(),
            mailbox: self.mailbox.clone(),
        };
        let file = PathBuf::from(self.services.plan_file(&self.state.id));
        let content = content.to_owned();
        let kept = session.change_file(move || {
            let operation =
                write(&file, &content).map_err(|error| PlanNotKept(error.to_string()))?;
            Ok::<_, PlanNotKept>(Some(Command::PlanChanged(operation)))
        });
        let id = self.state.id.clone();
        self.running.spawn(async move {
            if let Err(PlanNotKept(error)) = kept.await {
                tracing::error!(session = %id, %error, "the plan could not be written; its question shows it");
            }
        });
    }
}

impl SessionHandle {
    /// Takes the answer to a plan that came by a method; returns whether it counted.
    pub async fn answer_plan(
        &self,
        file: PathBuf,
        request: RequestId,
        answer: ExitPlanMode,
    ) -> Result<bool, SessionError> {
        let wanted = request.clone();
        let asked = move |state: &State| {
            let mut plans = state.questions.plans();
            let plan = plans.find(|plan| plan.asked.request_id == wanted)?;
            Some(plan.asked.clone())
        };
        let Some(asked) = self.view(move |view| asked(view.state)).await? else {
            return Ok(false);
        };
        let done = self.command(command(&file, &asked, answer).await).await?;
        Ok(done.answer == Answer::Accepted(true))
    }
}

/// The longest text about an answer that could not be used, in characters.
const LONGEST_WHY: usize = 500;

pub(super) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_WHY) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Says that an answer chooses what was not offered.
fn not_offered(asked: &ExitPlanModeRequested, answer: &ExitPlanMode) -> Option<String> {
    let chosen = answer.selected_action.filter(|_| answer.approved)?;
    if asked.actions.contains(&chosen) {
        return None;
    }
    let chosen = serde_json::to_value(chosen).unwrap_or_default();
    Some(format!("the action {chosen} was not offered"))
}

/// Returns the answer to a plan, together with the plan if somebody has edited it since.
async fn command(file: &Path, asked: &ExitPlanModeRequested, answer: ExitPlanMode) -> Command {
    let now = read_plan(file).await;
    let edited = now.filter(|now| !now.trim().is_empty() && *now != asked.plan_content);
    Command::AnswerExitPlanMode {
        request: asked.request_id.clone(),
        answer,
        edited,
    }
}

/// Why a plan was not written.
struct PlanNotKept(String);

impl From<SessionError> for PlanNotKept {
    fn from(error: SessionError) -> Self {
        Self(error.to_string())
    }
}

/// Writes the plan in one step, so that nobody reads half of it.
fn write(file: &Path, content: &str) -> io::Result<FileOperation> {
    use std::io::Write as _;
    let folder = file.parent().ok_or(io::ErrorKind::NotFound)?;
    std::fs::create_dir_all(folder)?;
    let operation = if file.exists() {
        FileOperation::Update
    } else {
        FileOperation::Create
    };
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(content.as_bytes())?;
    fresh.persist(file)?;
    Ok(operation)
}
