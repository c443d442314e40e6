//! Questions that clients receive as requests, and forms that the first client to answer fills in.

use std::sync::Arc;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::ask::{
    AutoModeSwitch, AutoModeSwitchRequested, ElicitationAction, ElicitationRequested,
    UserInputRequested,
};
use loopd_proto::id::RequestId;
use serde_json::Value;
use tokio::sync::oneshot;

use super::actor::Actor;
use super::journal;
use super::plan::shortened;
use crate::client::{AskError, Client, Notice};
use loopd_kernel::command::{Command, LogLevel};

/// The answer to a form.
#[derive(Debug, Clone)]
pub struct ElicitationAnswer {
    pub action: ElicitationAction,
    pub content: Option<Value>,
}

impl Actor {
    /// Sends a question to a client as a request; the first answer of any client counts.
    pub(super) fn ask(&mut self, client: &Arc<dyn Client>, asked: &UserInputRequested) {
        let asking = client.ask_user(&self.state.id, asked);
        let request = asked.request_id.clone();
        let reporter = self.reporter();
        let waiting = self.running.spawn(async move {
            match asking.await {
                Ok(answer) => {
                    reporter
                        .report(Command::AnswerUserInput {
                            request,
                            answer: answer.answer,
                            freeform: answer.was_freeform,
                        })
                        .await;
                }
                // Only a person can answer, so that the question stays open for another client, or for
                // this one later.
                Err(AskError::TooLarge(reason)) => {
                    reporter.report(not_taken(&request, &reason)).await;
                }
                Err(AskError::Failed(reason)) => {
                    reporter.report(not_usable(&request, &reason)).await;
                }
                Err(AskError::Gone) => tracing::debug!(%request, "a client left a question"),
            }
        });
        let request = asked.request_id.clone();
        self.question_waiters.sent(request, waiting);
    }

    /// Sends the open questions to a client that has just attached.
    pub(super) fn ask_late_joiner(&mut self, client: &Arc<dyn Client>) {
        let open: Vec<_> = self.state.questions.user_inputs().cloned().collect();
        for asked in open {
            self.ask(client, &asked);
        }
    }

    /// Asks a client whether another model may go on after a rate limit.
    pub(super) fn ask_for_model(
        &mut self,
        client: &Arc<dyn Client>,
        asked: &AutoModeSwitchRequested,
    ) {
        let asking = client.ask_switch(&self.state.id, asked);
        let request = asked.request_id.clone();
        let reporter = self.reporter();
        let waiting = self.running.spawn(async move {
            match asking.await {
                Ok(response) => {
                    reporter
                        .report(Command::AnswerAutoModeSwitch { request, response })
                        .await;
                }
                // Whoever waited for this client would wait for ever: it counts as a no.
                Err(AskError::Failed(reason) | AskError::TooLarge(reason)) => {
                    let response = AutoModeSwitch::No;
                    reporter.report(counts_as_no(&reason)).await;
                    reporter
                        .report(Command::AnswerAutoModeSwitch { request, response })
                        .await;
                }
                // The question stays open: another client may answer it, or this one later.
                Err(AskError::Gone) => tracing::debug!(%request, "a client left a question"),
            }
        });
        self.question_waiters
            .sent(asked.request_id.clone(), waiting);
    }

    /// Asks a client that has just attached whether another model may go on.
    pub(super) fn ask_late_joiner_for_models(&mut self, client: &Arc<dyn Client>) {
        let open: Vec<_> = self.state.questions.switches().cloned().collect();
        for asked in open {
            self.ask_for_model(client, &asked);
        }
    }

    /// Shows the open forms to a client that has just attached and can fill them in.
    pub(super) fn show_open_forms(&self, client: &Arc<dyn Client>) {
        for form in self.state.questions.forms() {
            let event = Ephemeral::ElicitationRequested(form.clone());
            match journal::pass(&self.state, &self.services.clock, &event) {
                Ok(outgoing) => {
                    let notice = Notice::event(&self.state.id, &outgoing.line);
                    client.tell(outgoing.class, &notice);
                }
                Err(error) => {
                    tracing::error!(session = %self.state.id, %error, "a form could not be written as JSON");
                }
            }
        }
    }

    pub(super) async fn elicit(
        &mut self,
        asked: Box<ElicitationRequested>,
        reply: oneshot::Sender<ElicitationAnswer>,
    ) {
        let request = asked.request_id.clone();
        self.question_waiters.wants_form(request.clone(), reply);
        let command = Command::Elicit(asked);
        if let Err(error) = self.execute(command).await {
            tracing::error!(session = %self.state.id, %error, "a question could not be stored");
            self.question_waiters.withdraw(&request);
        }
    }
}

/// Tells the clients that an answer to a user's question could not be used.
fn not_usable(request: &RequestId, reason: &str) -> Command {
    warning(
        "user_input",
        format!(
            "A client's answer to a question could not be used: {}. The question {request} stays open for \
             other clients: answer it with session.ui.handlePendingUserInput, or abort the turn",
            shortened(reason.to_owned())
        ),
    )
}

/// Tells the clients that an answer about another model could not be used.
fn counts_as_no(reason: &str) -> Command {
    warning(
        "auto_mode_switch",
        format!(
            "A client's answer to autoModeSwitch.request could not be used and counts as a no: {}",
            shortened(reason.to_owned())
        ),
    )
}

fn warning(kind: &str, message: String) -> Command {
    Command::Log {
        level: LogLevel::Warning,
        kind: kind.to_owned(),
        message,
        url: None,
        tip: None,
        stored: true,
    }
}

/// Tells the clients that an answer was too large. The question stays open, and nobody asks the same
/// client again by itself: it would give the same answer.
fn not_taken(request: &RequestId, reason: &str) -> Command {
    Command::Log {
        level: LogLevel::Warning,
        kind: "user_input".to_owned(),
        message: format!(
            "{reason}; the question {request} stays open: answer it with \
             session.ui.handlePendingUserInput, and put large texts into files"
        ),
        url: None,
        tip: None,
        stored: false,
    }
}
