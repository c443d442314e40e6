//! Joining a session: what a resume finds is seen and decided in one message.

use loopd_proto::id::Seq;
use loopd_proto::wire::PeerId;
use tokio::sync::oneshot;

use super::actor::{Actor, Flow};
use super::{Message, SessionError, SessionHandle};
use loopd_kernel::command::{Command, Resume};

/// What a connection has to know before it attaches.
pub struct Joined {
    /// Where the log ended before the resume.
    pub from: Seq,
    /// Whether somebody fills in forms.
    pub elicitation: bool,
}

/// A connection that wants to join.
pub(super) struct Join {
    peer: PeerId,
    resume: Resume,
    reply: oneshot::Sender<Result<Joined, SessionError>>,
}

impl SessionHandle {
    /// Resumes the session for a connection, which attaches afterwards.
    pub fn join(
        &self,
        peer: PeerId,
        resume: Resume,
    ) -> impl Future<Output = Result<Joined, SessionError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let posted = self.post(Message::Join(Box::new(Join {
            peer,
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
        let mut attached = self.attachments.iter();
        resume.was_active = attached.any(|other| other.connection.peer.id() != join.peer);
        let joined = Joined {
            from: self.state.seq,
            elicitation: self.can_elicit,
        };
        let done = self.execute(Command::Resume(resume)).await;
        let flow = match &done {
            Ok(_) => Flow::Go,
            Err(error) => error.flow(),
        };
        // The asker may have gone; the session is resumed all the same.
        join.reply.send(done.map(|_| joined)).ok();
        flow
    }
}
