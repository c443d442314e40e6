//! The task that owns one session: takes messages one at a time, decides, stores, publishes.
//!
//! Nothing else touches the state. Slow work is started as an effect and comes back as a command.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use loopd_proto::event::Ephemeral;
use loopd_proto::id::{EventId, MessageId, RequestId, SessionId};
use loopd_proto::session::SessionOptions;
use loopd_proto::wire::Class;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::ask::ElicitationAnswer;
use super::attach::{Attachment, OpenQuestion, PendingWork};
use super::commands;
use super::journal::{self, Outgoing};
use super::registry::Sessions;
use super::{Done, Message, SessionError};
use crate::agent::route::TokenPeers;
use crate::jobs::Jobs;
use crate::kernel::command::{Answer, Command, Decision, Effect, Mint, Step};
use crate::kernel::decide::decide;
use crate::kernel::state::State;
use crate::launch::{Launch, Lifecycle, LifecycleMetadata};
use crate::provider::secret::Secret;
use crate::publish::recent::Recent;
use crate::publish::{Audience, frame};
use crate::services::Services;
use crate::store::{Batch, SessionRecord};

/// Whether there is a log to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    New,
    Load,
}

pub(super) struct Actor {
    pub(super) state: State,
    pub(super) services: Arc<Services>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) mailbox: mpsc::Sender<Message>,
    inbox: mpsc::Receiver<Message>,
    pub(super) record: SessionRecord,
    pub(super) audience: Audience,
    pub(super) attachments: Vec<Attachment>,
    /// The configuration with its secrets; never stored.
    pub(super) options: SessionOptions,
    pub(super) launch: Option<Arc<Launch>>,
    pub(super) api_token: Option<Secret>,
    pub(super) token_peers: TokenPeers,
    pub(super) recent: Recent,
    pub(super) ticks: watch::Sender<u64>,
    pub(super) open: BTreeMap<RequestId, OpenQuestion>,
    pub(super) turn: CancellationToken,
    pub(super) effects: JoinSet<()>,
    pub(super) asked: HashMap<RequestId, Vec<AbortHandle>>,
    pub(super) elicitations: HashMap<RequestId, oneshot::Sender<ElicitationAnswer>>,
    /// The client tools that the model was last told about.
    pub(super) told_tools: BTreeSet<String>,
    /// Extra request headers of messages that wait, and of the interaction that runs.
    waiting_headers: HashMap<MessageId, BTreeMap<String, String>>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) can_elicit: bool,
    /// The commands that run in shells.
    pub(super) jobs: Jobs,
}

/// Whether the actor goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Go,
    Stop,
}

impl Actor {
    pub(super) fn new(
        id: SessionId,
        services: Arc<Services>,
        sessions: Arc<Sessions>,
        mailbox: mpsc::Sender<Message>,
        inbox: mpsc::Receiver<Message>,
    ) -> Self {
        let now = services.ports.now().0;
        #[expect(clippy::cast_possible_truncation, reason = "the random half is enough")]
        let epoch = services.ports.id().0 as u64;
        Self {
            record: SessionRecord {
                id: id.clone(),
                created_ms: now,
                modified_ms: now,
                name: None,
                summary: None,
                cwd: None,
                parent: None,
                client_name: None,
                git_root: None,
                repository: None,
                branch: None,
                event_count: 0,
            },
            jobs: commands::jobs(&id, &services, &mailbox),
            state: State::new(id),
            services,
            sessions,
            mailbox,
            inbox,
            audience: Audience::default(),
            attachments: Vec::new(),
            options: SessionOptions::default(),
            launch: None,
            api_token: None,
            token_peers: TokenPeers::new(),
            recent: Recent::new(epoch),
            ticks: watch::Sender::new(0),
            open: BTreeMap::new(),
            turn: CancellationToken::new(),
            effects: JoinSet::new(),
            asked: HashMap::new(),
            elicitations: HashMap::new(),
            told_tools: BTreeSet::new(),
            waiting_headers: HashMap::new(),
            headers: BTreeMap::new(),
            can_elicit: false,
        }
    }

    /// Lives until the session is closed; then leaves the registry by itself.
    pub(super) async fn run(mut self, start: Start) {
        if start == Start::Load
            && let Err(error) = self.load().await
        {
            self.refuse_all(&error);
            return;
        }
        while let Some(message) = self.next_message().await {
            if self.take(message).await == Flow::Stop {
                break;
            }
            while self.effects.try_join_next().is_some() {}
        }
        self.end_processes().await;
        self.refuse_all(&SessionError::NotFound(self.state.id.clone()));
    }

    /// Ends what must not outlive the session, before anybody can open it anew.
    async fn end_processes(&self) {
        self.turn.cancel();
        self.jobs.close().await;
    }

    /// The next message; `None` when the session was idle for as long as its launch lets it.
    async fn next_message(&mut self) -> Option<Message> {
        let limit = self
            .launch
            .as_ref()
            .and_then(|launch| launch.session_idle_timeout)
            .filter(|_| !self.state.is_busy());
        let Some(limit) = limit else {
            return self.inbox.recv().await;
        };
        if let Ok(message) = tokio::time::timeout(limit, self.inbox.recv()).await {
            return message;
        }
        tracing::info!(session = %self.state.id, "the session was idle for too long and is ended");
        if let Err(error) = self.execute(Command::Shutdown).await {
            tracing::error!(session = %self.state.id, %error, "the session's end could not be stored");
        }
        None
    }

    /// Answers what still waits, so that nobody hangs.
    fn refuse_all(&mut self, error: &SessionError) {
        self.sessions.forget(&self.state.id, &self.mailbox);
        self.inbox.close();
        while let Ok(message) = self.inbox.try_recv() {
            if let Message::Command { reply, .. } = message {
                reply.send(Err(error.clone())).ok();
            }
        }
    }

    async fn take(&mut self, message: Message) -> Flow {
        match message {
            Message::Command { command, reply } => match self.execute(*command).await {
                Ok(done) => {
                    // The asker may have gone; what it asked for is done all the same.
                    reply.send(Ok(done)).ok();
                    Flow::Go
                }
                Err(error) => {
                    let fatal = matches!(error, SessionError::Store(_) | SessionError::Faulted(_));
                    reply.send(Err(error)).ok();
                    if fatal { Flow::Stop } else { Flow::Go }
                }
            },
            Message::Report(command) => self.report(*command).await,
            Message::View(look) => {
                self.show(look);
                Flow::Go
            }
            Message::Attach(attachment) => {
                let pending = attachment.pending;
                self.attach(*attachment);
                match pending {
                    PendingWork::Waits => Flow::Go,
                    // Only now: the work needs what the newcomer brought.
                    PendingWork::Continues => self.report(Command::TakeUp).await,
                }
            }
            Message::Detach {
                peer,
                goodbye,
                reply,
            } => {
                let flow = self.detach(peer, goodbye).await;
                if let Some(reply) = reply {
                    if flow == Flow::Stop {
                        self.end_processes().await;
                        self.sessions.forget(&self.state.id, &self.mailbox);
                    }
                    reply.send(()).ok();
                }
                flow
            }
            Message::Elicit {
                message,
                schema,
                reply,
            } => {
                self.elicit(message, schema, reply).await;
                Flow::Go
            }
            Message::RequirePermissions {
                peer,
                required,
                reply,
            } => {
                for attachment in &mut self.attachments {
                    if attachment.connection.peer.id() == peer {
                        attachment.offer.request_permission = required;
                    }
                }
                reply.send(()).ok();
                Flow::Go
            }
            Message::Provide { change, reply } => {
                reply.send(self.provide(*change)).ok();
                Flow::Go
            }
            Message::Stop { reply } => {
                self.end_processes().await;
                self.sessions.forget(&self.state.id, &self.mailbox);
                reply.send(()).ok();
                Flow::Stop
            }
        }
    }

    /// Carries out a command that nobody waits for.
    async fn report(&mut self, command: Command) -> Flow {
        match self.execute(command).await {
            Ok(_) => Flow::Go,
            Err(error) => {
                tracing::error!(session = %self.state.id, %error, "the session cannot go on");
                Flow::Stop
            }
        }
    }

    /// Decides a command and carries it out: store, apply, commit, publish, start.
    pub(super) async fn execute(&mut self, command: Command) -> Result<Done, SessionError> {
        let headers = match &command {
            Command::Send(send) => send.request_headers.clone(),
            _ => BTreeMap::new(),
        };
        let Decision { steps, answer } = {
            let ports = &self.services.ports;
            let mut ids = || ports.id();
            let mut mint = Mint {
                now: ports.now(),
                attended: self.is_attended(),
                ids: &mut ids,
            };
            decide(&self.state, command, &mut mint)?
        };
        if let (Answer::Message(id), false) = (&answer, headers.is_empty()) {
            self.waiting_headers.insert(id.clone(), headers);
        }
        self.carry_out(steps, answer).await
    }

    /// The messages' own headers become those of the interaction they start.
    pub(super) fn take_headers<'a>(&mut self, ids: impl Iterator<Item = &'a MessageId>) {
        self.headers.clear();
        for id in ids {
            self.headers
                .extend(self.waiting_headers.remove(id).unwrap_or_default());
        }
    }

    async fn carry_out(&mut self, steps: Vec<Step>, answer: Answer) -> Result<Done, SessionError> {
        let after = self.state.seq;
        let mut events = Vec::new();
        let mut outgoing = Vec::new();
        let mut early = Vec::new();
        let mut late = Vec::new();
        for step in steps {
            let written = match step {
                Step::Store(event) => {
                    journal::record(&mut self.state, &self.services.ports, &event).map(
                        |(stored, out)| {
                            self.remember_question(&event, &stored.json);
                            events.push(stored);
                            outgoing.push(out);
                        },
                    )
                }
                Step::Tell(event) => journal::pass(&self.state, &self.services.ports, &event)
                    .map(|out| outgoing.push(out)),
                Step::Do(effect) => {
                    if effect.may_precede_commit() {
                        early.push(effect);
                    } else {
                        late.push(effect);
                    }
                    Ok(())
                }
            };
            if let Err(error) = written {
                tracing::error!(session = %self.state.id, %error, "an event could not be written as JSON");
                return Err(SessionError::Faulted(self.state.id.clone()));
            }
        }
        let stored_any = !events.is_empty();
        let commit = stored_any.then(|| {
            self.refresh_record();
            self.services.store.append(Batch {
                record: self.record.clone(),
                after,
                events,
            })
        });
        if !early.is_empty() {
            self.audience.hold();
        }
        self.start_all(early);
        if let Some(commit) = commit {
            commit
                .await
                .map_err(|error| SessionError::Store(Arc::new(error)))?;
        }
        let event = self.publish(outgoing);
        self.audience.release();
        if stored_any {
            self.announce_update();
        }
        self.start_all(late);
        if !self.state.is_busy() {
            self.jobs.rest();
        }
        Ok(Done { answer, event })
    }

    fn start_all(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.start(effect);
        }
    }

    /// Sends what is committed, in order; says which event was the last.
    fn publish(&mut self, outgoing: Vec<Outgoing>) -> Option<EventId> {
        let mut last = None;
        for event in outgoing {
            if !event.visible {
                continue;
            }
            self.audience
                .send(event.class, &frame(&self.state.id, &event.line));
            if event.class != Class::Delta {
                self.recent
                    .push(event.seq, event.durable, event.kind, event.line);
            }
            last = Some(event.id);
        }
        if last.is_some() {
            self.ticks.send_replace(self.recent.tick());
        }
        last
    }

    pub(super) fn tell(&mut self, event: &Ephemeral) {
        match journal::pass(&self.state, &self.services.ports, event) {
            Ok(outgoing) => {
                self.publish(vec![outgoing]);
            }
            Err(error) => {
                tracing::error!(session = %self.state.id, %error, "an event could not be written as JSON");
            }
        }
    }

    fn refresh_record(&mut self) {
        let state = &self.state;
        let name = state.name.as_ref().map(|name| name.text.clone());
        self.record.created_ms = state.created.0;
        self.record.modified_ms = self.services.ports.now().0;
        self.record.summary.clone_from(&name);
        self.record.name = name;
        self.record.cwd = Some(state.cwd.clone());
        self.record
            .client_name
            .clone_from(&state.options.client_name);
    }

    fn announce_update(&self) {
        if let Some(launch) = &self.launch {
            launch.announce(&Lifecycle {
                kind: "session.updated",
                session_id: &self.state.id,
                metadata: Some(self.lifecycle_metadata()),
            });
        }
    }

    fn lifecycle_metadata(&self) -> LifecycleMetadata {
        LifecycleMetadata {
            start_time: self.state.created,
            modified_time: loopd_proto::time::Timestamp(self.record.modified_ms),
            summary: self.record.summary.clone(),
        }
    }
}
