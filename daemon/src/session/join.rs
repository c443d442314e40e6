//! Joining a session: one message reads the log's end and carries out the resume.

use loopd_proto::id::Seq;
use tokio::sync::oneshot;

use super::actor::{Actor, Flow};
use super::{Message, SessionError, SessionHandle};
use crate::client::ClientId;
use loopd_kernel::command::{Command, Resume};

/// What a connection must know before it attaches.
pub struct Joined {
    /// The last position of the log before the resume.
    pub from: Seq,
    /// Whether a client can fill in forms.
    pub elicitation: bool,
}

/// The request of a connection to join.
pub(super) struct Join {
    client: ClientId,
    resume: Resume,
    reply: oneshot::Sender<Result<Joined, SessionError>>,
}

impl Join {
    /// Replies that the session cannot be joined.
    pub(super) fn refuse(self, error: &SessionError) {
        // The send fails if the caller has stopped waiting.
        self.reply.send(Err(error.clone())).ok();
    }
}

impl SessionHandle {
    /// Resumes the session for a connection, which attaches afterwards.
    pub fn join(
        &self,
        client: ClientId,
        resume: Resume,
    ) -> impl Future<Output = Result<Joined, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Join(Box::new(Join {
            client,
            resume,
            reply,
        })));
        let id = self.id.clone();
        async move {
            posted?;
            answer.await.unwrap_or(Err(SessionError::Faulted(id)))
        }
    }
}

impl Actor {
    pub(super) async fn join(&mut self, join: Join) -> Flow {
        let mut resume = join.resume;
        resume.was_active = self.clients.has_others_than(join.client);
        let joined = Joined {
            from: self.state.seq,
            elicitation: self.clients.can_elicit(),
        };
        let done = self.execute(Command::Resume(resume)).await;
        let flow = match &done {
            Ok(_) => Flow::Go,
            Err(error) => self.flow_after(error),
        };
        // The send fails if the caller has stopped waiting; the session is resumed all the same.
        join.reply.send(done.map(|_| joined)).ok();
        flow
    }
}
