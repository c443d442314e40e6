//! Requests for the model that an app makes for a server, by a method of its own. The app can cancel them.

use loopd_proto::id::RequestId;
use tokio::sync::{mpsc, oneshot};

use super::McpMessage;
use super::sampling::{SampleOrder, Sampled};
use crate::session::actor::Actor;
use crate::session::{Message, SessionError, SessionHandle};
use loopd_kernel::command::Command;

/// What an app gets for its request.
pub enum AppSampled {
    Answered(Sampled),
    Cancelled,
}

/// A request of an app that is under way.
pub(super) struct AppSample {
    /// Its name for the app.
    name: String,
    /// Ends it.
    cancel: oneshot::Sender<()>,
}

/// The request of an app, as long as somebody waits for it.
struct OpenRequest {
    mailbox: mpsc::Sender<Message>,
    /// Names the permission request; `None` once there is an answer.
    request: Option<RequestId>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            let command = Command::WithdrawPart(request);
            // A request that cannot be closed now is closed by whoever answers it.
            self.mailbox
                .try_send(Message::Report(Box::new(command)))
                .ok();
        }
    }
}

impl SessionHandle {
    /// Lets the model of the session answer for a server, after a person was asked where the rules want
    /// that. `name` is the name of the request for the app.
    pub fn sample(
        &self,
        name: String,
        order: SampleOrder,
    ) -> impl Future<Output = Result<AppSampled, SessionError>> + Send + use<> {
        let (reply, sampled) = oneshot::channel();
        let (cancel, cancelled) = oneshot::channel();
        let open = OpenRequest {
            mailbox: self.mailbox.clone(),
            request: Some(order.request.clone()),
        };
        let message = McpMessage::SampleForApp {
            name,
            cancel,
            order,
            reply,
        };
        let posted = self.post(Message::Mcp(message));
        let id = self.id.clone();
        async move {
            let mut open = open;
            posted?;
            tokio::select! {
                sampled = sampled => {
                    open.request = None;
                    let sampled = sampled.map_err(|_| SessionError::Ended(id))?;
                    Ok(AppSampled::Answered(sampled))
                }
                Ok(()) = cancelled => Ok(AppSampled::Cancelled),
            }
        }
    }

    /// Cancels a request of an app; returns whether there was one.
    pub fn cancel_sample(
        &self,
        name: String,
    ) -> impl Future<Output = Result<bool, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Mcp(McpMessage::CancelSample { name, reply }));
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.map_err(|_| SessionError::Ended(id))
        }
    }
}

impl Actor {
    pub(super) fn sample_for_app(
        &mut self,
        name: String,
        cancel: oneshot::Sender<()>,
        order: SampleOrder,
        reply: oneshot::Sender<Sampled>,
    ) {
        // Those that have ended are not waited for any more.
        self.mcp.app_samples.retain(|it| !it.cancel.is_closed());
        if self.mcp.app_samples.iter().any(|it| it.name == name) {
            let why = format!("the request {name} is under way already");
            // The send fails if the app has stopped waiting.
            reply.send(Err(why)).ok();
            return;
        }
        self.mcp.app_samples.push(AppSample { name, cancel });
        self.prepare_sample(order, reply);
    }

    pub(super) fn cancel_sample(&mut self, name: &str) -> bool {
        let mut samples = self.mcp.app_samples.iter();
        let Some(at) = samples.position(|it| it.name == name) else {
            return false;
        };
        self.mcp.app_samples.swap_remove(at).cancel.send(()).is_ok()
    }
}
