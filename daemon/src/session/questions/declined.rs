//! Permission requests of which a client says that it has nobody to ask.
//!
//! Such a request stays open for the other clients that answer permission requests. It is denied when
//! each of those that are left has said so.

use std::collections::HashMap;

use loopd_proto::id::RequestId;
use loopd_proto::permission::PermissionDecision;
use tokio::sync::oneshot;

use crate::client::ClientId;
use crate::session::actor::{Actor, Flow};
use crate::session::{Done, SessionError};
use loopd_kernel::command::{Answer, Command};

/// The clients that have nobody to ask, by question.
#[derive(Default)]
pub(in crate::session) struct Declined(HashMap<RequestId, Vec<ClientId>>);

impl Declined {
    pub(super) fn forget(&mut self, request: &RequestId) {
        self.0.remove(request);
    }

    fn has(&self, request: &RequestId, client: ClientId) -> bool {
        let clients = self.0.get(request);
        clients.is_some_and(|clients| clients.contains(&client))
    }
}

impl Actor {
    /// Notes that a client has nobody to ask; denies the request if no other client can answer it.
    pub(in crate::session) async fn decline_permission(
        &mut self,
        client: ClientId,
        request: RequestId,
        reply: oneshot::Sender<Result<Done, SessionError>>,
    ) -> Flow {
        if self.is_open_permission(&request) {
            let declined = self.question_waiters.declined.0.entry(request.clone());
            declined.or_default().push(client);
            if self.others_may_answer(&request) {
                let noted = Done {
                    answer: Answer::Accepted(true),
                    event: None,
                };
                // The send fails if the caller has stopped waiting.
                reply.send(Ok(noted)).ok();
                return Flow::Go;
            }
        }
        self.take_command(nobody_to_ask(request), reply).await
    }

    /// Denies what the clients that are left have declined. To be called when clients have changed.
    pub(in crate::session) async fn deny_declined(&mut self) -> Flow {
        if self.question_waiters.declined.0.is_empty() || !self.clients.answer_permissions() {
            return Flow::Go;
        }
        let requests = self.question_waiters.declined.0.keys();
        let denied = requests.filter(|request| !self.others_may_answer(request));
        for request in denied.cloned().collect::<Vec<_>>() {
            self.question_waiters.declined.forget(&request);
            if self.report(nobody_to_ask(request)).await == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::Go
    }

    fn is_open_permission(&self, request: &RequestId) -> bool {
        let mut open = self.state.open_permissions();
        open.any(|(id, _)| id == request)
    }

    /// Returns whether a client is attached that answers permission requests and has not declined
    /// this one.
    fn others_may_answer(&self, request: &RequestId) -> bool {
        let mut attachments = self.clients.attachments().iter();
        attachments.any(|it| {
            let declined = &self.question_waiters.declined;
            it.offer.request_permission && !declined.has(request, it.client.id())
        })
    }
}

fn nobody_to_ask(request: RequestId) -> Command {
    Command::AnswerPermission {
        request,
        decision: PermissionDecision::UserNotAvailable {},
    }
}
