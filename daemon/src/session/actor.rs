//! The task that owns one session: takes messages one at a time, decides, stores, publishes.
//!
//! Nothing else touches the state. Slow work is started as an effect and comes back as a command.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use loopd_proto::event::session::{CapabilitiesChanged, UiCapabilities};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{EventId, MessageId, RequestId, SessionId};
use loopd_proto::session::SessionOptions;
use loopd_proto::wire::{Class, PeerId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::attach::{Attachment, Goodbye};
use super::effects::ElicitationAnswer;
use super::journal::{self, Outgoing};
use super::registry::Sessions;
use super::toolset::Toolset;
use super::{Done, Message, SessionError};
use crate::app::Services;
use crate::kernel::apply::apply;
use crate::kernel::command::{Answer, Command, Decision, Effect, Mint, Step};
use crate::kernel::decide::decide;
use crate::kernel::state::State;
use crate::launch::{Launch, Lifecycle, LifecycleMetadata};
use crate::provider::secret::Secret;
use crate::publish::recent::Recent;
use crate::publish::{Audience, frame};
use crate::store::{Batch, SessionRecord};

/// What can be looked at from outside.
pub struct View<'a> {
    pub state: &'a State,
    pub recent: &'a Recent,
    /// Ticks with everything published.
    pub ticks: &'a watch::Sender<u64>,
    attachments: &'a [Attachment],
    pub launch: Option<&'a Arc<Launch>>,
    /// The configuration with its secrets.
    pub options: &'a SessionOptions,
    pub api_token: Option<&'a Secret>,
    pub tools: &'a dyn Fn() -> Vec<crate::kernel::model::ToolSpec>,
    pub commands: &'a dyn Fn() -> Vec<loopd_proto::session::ClientCommand>,
    pub elicitation: bool,
}

impl View<'_> {
    /// Whether somebody else is attached.
    pub fn attached_besides(&self, peer: PeerId) -> bool {
        self.attachments
            .iter()
            .any(|attachment| attachment.connection.peer.id() != peer)
    }
}

/// Whether there is a log to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    New,
    Load,
}

/// A question whose event a late joiner has to be shown.
pub(super) struct OpenQuestion {
    pub(super) frame: Bytes,
    pub(super) tool: Option<String>,
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
    recent: Recent,
    ticks: watch::Sender<u64>,
    open: BTreeMap<RequestId, OpenQuestion>,
    pub(super) turn: CancellationToken,
    pub(super) effects: JoinSet<()>,
    pub(super) asked: HashMap<RequestId, Vec<AbortHandle>>,
    pub(super) elicitations: HashMap<RequestId, oneshot::Sender<ElicitationAnswer>>,
    /// The client tools that the model was last told about.
    pub(super) told_tools: BTreeSet<String>,
    /// Extra request headers of messages that wait, and of the interaction that runs.
    waiting_headers: HashMap<MessageId, BTreeMap<String, String>>,
    pub(super) headers: BTreeMap<String, String>,
    can_elicit: bool,
}

/// Whether the actor goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
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
        while let Some(message) = self.inbox.recv().await {
            if self.take(message).await == Flow::Stop {
                break;
            }
            while self.effects.try_join_next().is_some() {}
        }
        self.turn.cancel();
        self.refuse_all(&SessionError::NotFound(self.state.id.clone()));
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
            Message::Report(command) => match self.execute(*command).await {
                Ok(_) => Flow::Go,
                Err(error) => {
                    tracing::error!(session = %self.state.id, %error, "the session cannot go on");
                    Flow::Stop
                }
            },
            Message::View(look) => {
                self.show(look);
                Flow::Go
            }
            Message::Attach(attachment) => {
                self.attach(*attachment);
                Flow::Go
            }
            Message::Detach {
                peer,
                goodbye,
                reply,
            } => {
                let flow = self.detach(peer, goodbye).await;
                if let Some(reply) = reply {
                    if flow == Flow::Stop {
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
            Message::Stop { reply } => {
                self.turn.cancel();
                self.sessions.forget(&self.state.id, &self.mailbox);
                reply.send(()).ok();
                Flow::Stop
            }
        }
    }

    fn show(&self, look: Box<dyn FnOnce(&View<'_>) + Send>) {
        let tools = || Toolset::of(&self.state, &self.services, &self.attachments).specs();
        let commands = || {
            self.attachments
                .iter()
                .filter_map(|attachment| attachment.offer.commands.clone())
                .flatten()
                .collect()
        };
        look(&View {
            state: &self.state,
            recent: &self.recent,
            ticks: &self.ticks,
            attachments: &self.attachments,
            launch: self.launch.as_ref(),
            options: &self.options,
            api_token: self.api_token.as_ref(),
            tools: &tools,
            commands: &commands,
            elicitation: self.can_elicit,
        });
    }

    /// Folds the log; what was in flight when it ended is closed.
    async fn load(&mut self) -> Result<(), SessionError> {
        let id = self.state.id.clone();
        let stored = self
            .services
            .store
            .load(&id)
            .await
            .map_err(|error| SessionError::Store(Arc::new(error)))?;
        let Some((record, events)) = stored else {
            return Err(SessionError::NotFound(id));
        };
        self.record = record;
        for stored in events {
            match loopd_proto::event::read_durable(&stored.json) {
                Ok((head, event)) => {
                    self.remember_question(&event, &stored.json);
                    apply(&mut self.state, &head, &event);
                }
                Err(error) => {
                    // Written by a later version, or damaged: skipped, so that the rest loads.
                    tracing::warn!(session = %id, kind = %stored.kind, %error, "an event could not be read");
                }
            }
            self.state.seq = stored.seq;
        }
        self.options = self.state.options.clone();
        self.execute(Command::Recover).await.map(|_| ())
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
                attended: !self.attachments.is_empty(),
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

    /// Keeps the event of an open question for those who join later.
    fn remember_question(&mut self, event: &Durable, line: &str) {
        let (request, tool) = match event {
            Durable::PermissionRequested(asked) => (asked.request_id.clone(), None),
            Durable::ExternalToolRequested(asked) => {
                (asked.request_id.clone(), Some(asked.tool_name.clone()))
            }
            Durable::PermissionCompleted(completed) => {
                self.open.remove(&completed.request_id);
                return;
            }
            Durable::ToolComplete(_) | Durable::LoopEnded(_) => {
                let still = |state: &State, request: &RequestId| {
                    state.calls().any(|call| call.waits_for(request))
                };
                self.open.retain(|request, _| still(&self.state, request));
                return;
            }
            _ => return,
        };
        let frame = frame(&self.state.id, line);
        self.open.insert(request, OpenQuestion { frame, tool });
    }

    fn attach(&mut self, attachment: Attachment) {
        let peer = attachment.connection.peer.clone();
        self.options = std::mem::take(&mut self.options).updated_by(attachment.options.clone());
        self.launch = Some(attachment.connection.launch().clone());
        if attachment.api_token.is_some() {
            self.api_token.clone_from(&attachment.api_token);
        }
        for event in self.recent.durable_after(attachment.from) {
            // A peer that is gone already is detached by its connection's end.
            peer.push(Class::Event, frame(&self.state.id, &event.line))
                .ok();
        }
        for question in self.open.values() {
            let answers = match &question.tool {
                None => attachment.offer.request_permission,
                Some(tool) => attachment
                    .offer
                    .tools
                    .iter()
                    .flatten()
                    .any(|offered| offered.name == *tool),
            };
            if answers {
                peer.push(Class::Event, question.frame.clone()).ok();
            }
        }
        self.attachments
            .retain(|known| known.connection.peer.id() != peer.id());
        let asks = attachment.offer.request_user_input;
        self.attachments.push(attachment);
        // The newcomer learns what the session can do from its reply; the others from an event.
        self.capabilities_may_have_changed();
        let id = peer.id();
        self.audience.join(peer);
        if asks {
            self.ask_late_joiner(id);
        }
    }

    async fn detach(&mut self, peer: PeerId, goodbye: Goodbye) -> Flow {
        let others = self
            .attachments
            .iter()
            .any(|attachment| attachment.connection.peer.id() != peer);
        let ends = !others && goodbye == Goodbye::Destroy;
        // The last one out still hears the end.
        if ends && let Err(error) = self.execute(Command::Shutdown).await {
            tracing::error!(session = %self.state.id, %error, "the session's end could not be stored");
        }
        self.audience.leave(peer);
        self.attachments
            .retain(|attachment| attachment.connection.peer.id() != peer);
        if ends {
            return Flow::Stop;
        }
        self.capabilities_may_have_changed();
        Flow::Go
    }

    fn capabilities_may_have_changed(&mut self) {
        let can = self
            .attachments
            .iter()
            .any(|attachment| attachment.offer.request_elicitation);
        if can != self.can_elicit {
            self.can_elicit = can;
            self.tell(&Ephemeral::CapabilitiesChanged(CapabilitiesChanged {
                ui: UiCapabilities { elicitation: can },
            }));
        }
    }
}
