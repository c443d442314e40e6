//! Joining a session: one message reads the log's end and carries out the resume.

use std::sync::Arc;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::session::Info;
use loopd_proto::id::Seq;
use loopd_proto::session::{JoinerOptions, SessionOptions};
use tokio::sync::oneshot;

use super::actor::{Actor, Flow};
use super::clients::attach::Attachment;
use super::{Message, SessionError, SessionHandle, journal};
use crate::client::{Client, ClientId, Notice};
use loopd_kernel::command::{Command, Resume};

/// What a connection must know before it attaches.
pub struct Joined {
    /// The last position of the log before the resume.
    pub from: Seq,
    /// Whether a client can fill in forms.
    pub elicitation: bool,
    /// The options that are taken: all of them, or only missing secrets if others are attached.
    pub options: SessionOptions,
    /// The names of the options that stay as they are for the others.
    pub kept: Vec<&'static str>,
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
        self.was_joined = true;
        if let Err(error) = self.look_above().await {
            join.refuse(&error);
            return Flow::Go;
        }
        let mut resume = join.resume;
        resume.was_active = self.clients.has_others_than(join.client);
        let mut kept = Vec::new();
        if resume.was_active {
            kept = self.keep_settings(&mut resume);
        }
        let joined = Joined {
            from: self.state.seq,
            elicitation: self.clients.can_elicit(),
            options: resume.options.clone(),
            kept,
        };
        let done = self.execute(Command::Resume(Box::new(resume))).await;
        let flow = match &done {
            Ok(_) => Flow::Go,
            Err(error) => self.flow_after(error),
        };
        // The send fails if the caller has stopped waiting; the session is resumed all the same.
        join.reply.send(done.map(|_| joined)).ok();
        flow
    }

    /// Leaves the settings of the session as they are for the clients that use it; returns the names
    /// of those that the joining client wanted otherwise.
    fn keep_settings(&self, resume: &mut Resume) -> Vec<&'static str> {
        let wanted = std::mem::take(&mut resume.options);
        let mut known = self.options.clone();
        known.model = known.model.or_else(|| self.state.model.clone());
        let JoinerOptions { taken, mut kept } = wanted.for_joiner(&known);
        resume.options = taken;
        // `hookDirectories` is among what is not taken.
        resume.vouched_hooks = None;
        let folder = resume.working_directory.take();
        if folder.is_some_and(|folder| folder != self.state.cwd) {
            kept.push("workingDirectory");
        }
        if resume.agent.take().is_some() {
            kept.push("agent");
        }
        kept
    }

    /// Returns the names of the settings that a client wanted otherwise and that are not taken. Whether
    /// everything is allowed without asking is a matter of the client whose launch the session uses.
    pub(super) fn not_taken(&self, attachment: &Attachment) -> Vec<&'static str> {
        let mut kept = attachment.kept.clone();
        let allows_all = self.clients.launch().is_some_and(|launch| launch.yolo)
            || self.state.permissions.approve_all;
        if attachment.launch.yolo && !allows_all {
            kept.push("allow everything (--yolo)");
        }
        kept
    }

    /// Tells a client that joined others which of its settings were not taken.
    pub(super) fn tell_kept(&self, client: &Arc<dyn Client>, kept: &[&str]) {
        if kept.is_empty() {
            return;
        }
        let event = Ephemeral::SessionInfo(Info {
            info_type: "settings_kept".to_owned(),
            message: format!(
                "Other clients use this session, so these settings stay as they are for all of them. Not taken: {}.",
                kept.join(", ")
            ),
            ..Info::default()
        });
        match journal::pass(&self.state, &self.services.clock, &event) {
            Ok(told) => client.tell(told.class, &Notice::event(&self.state.id, &told.line)),
            Err(error) => {
                tracing::error!(session = %self.state.id, %error, "an event could not be written as JSON");
            }
        }
    }
}
