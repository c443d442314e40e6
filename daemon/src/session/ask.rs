//! Questions that go to clients as requests, and forms that wait for whoever answers first.

use loopd_proto::event::Ephemeral;
use loopd_proto::event::ask::{ElicitationAction, UserInputRequested};
use loopd_proto::event::fact::Asked;
use loopd_proto::id::RequestId;
use loopd_proto::wire::{Peer, PeerId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use super::actor::Actor;
use super::journal;
use crate::publish::frame;
use loopd_kernel::command::Command;

/// What came of a form.
#[derive(Debug, Clone)]
pub struct ElicitationAnswer {
    pub action: ElicitationAction,
    pub content: Option<Value>,
}

impl Actor {
    /// Sends a question as a request; the first answer of any client counts.
    pub(super) fn ask(&mut self, peer: Peer, asked: &UserInputRequested) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a str,
            question: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            choices: Option<&'a Vec<String>>,
            allow_freeform: bool,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            answer: String,
            #[serde(default)]
            was_freeform: bool,
        }
        let params = Params {
            session_id: self.state.id.as_str(),
            question: &asked.question,
            choices: asked.choices.as_ref(),
            allow_freeform: asked.allow_freeform.unwrap_or(true),
        };
        let pending = match peer.start_request("userInput.request", &params) {
            Ok(pending) => pending,
            Err(error) => {
                tracing::debug!(%error, "a client could not be asked");
                return;
            }
        };
        let request = asked.request_id.clone();
        let reporter = self.reporter();
        let waiting = self.running.spawn(async move {
            let reply = pending.await;
            let answer = reply.map_err(|error| error.to_string()).and_then(|raw| {
                serde_json::from_str::<Answer>(raw.get()).map_err(|e| e.to_string())
            });
            match answer {
                Ok(answer) => {
                    reporter
                        .report(Command::AnswerUserInput {
                            request,
                            answer: answer.answer,
                            freeform: answer.was_freeform,
                        })
                        .await;
                }
                // The question stays open for others and for later.
                Err(error) => tracing::debug!(%error, "a client did not answer a question"),
            }
        });
        self.asked
            .entry(asked.request_id.clone())
            .or_default()
            .push(waiting);
    }

    /// Puts the questions that are open to somebody who just came.
    pub(super) fn ask_late_joiner(&mut self, id: PeerId) {
        let Some(peer) = self
            .attachments
            .iter()
            .map(|attachment| &attachment.connection.peer)
            .find(|peer| peer.id() == id)
            .cloned()
        else {
            return;
        };
        let open: Vec<UserInputRequested> = self
            .state
            .questions
            .values()
            .filter_map(|asked| match asked {
                Asked::UserInput(asked) => Some(asked.clone()),
                Asked::Elicitation(_) => None,
            })
            .collect();
        for asked in open {
            self.ask(peer.clone(), &asked);
        }
    }

    /// Shows the forms that wait to somebody who just came and can fill them in.
    pub(super) fn show_open_forms(&self, peer: &Peer) {
        for asked in self.state.questions.values() {
            let Asked::Elicitation(form) = asked else {
                continue;
            };
            let event = Ephemeral::ElicitationRequested(form.clone());
            match journal::pass(&self.state, &self.services.clock, &event) {
                Ok(outgoing) => {
                    // A peer that is gone already is detached by its connection's end.
                    peer.push(outgoing.class, frame(&self.state.id, &outgoing.line))
                        .ok();
                }
                Err(error) => {
                    tracing::error!(session = %self.state.id, %error, "a form could not be written as JSON");
                }
            }
        }
    }

    pub(super) async fn elicit(
        &mut self,
        message: String,
        schema: Value,
        reply: oneshot::Sender<ElicitationAnswer>,
    ) {
        let request: RequestId = self.services.clock.id().into();
        self.elicitations.insert(request.clone(), reply);
        let command = Command::Elicit {
            request: request.clone(),
            message,
            schema,
        };
        if let Err(error) = self.execute(command).await {
            tracing::error!(session = %self.state.id, %error, "a question could not be stored");
            self.elicitations.remove(&request);
        }
    }
}
