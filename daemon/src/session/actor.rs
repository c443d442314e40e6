//! The task that owns one session: takes messages one at a time, decides, stores, publishes.
//!
//! Nothing else touches the state. Slow work is started as an effect and comes back as a command.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use loopd_proto::event::Ephemeral;
use loopd_proto::event::session::Failure;
use loopd_proto::id::{RequestId, SessionId};
use loopd_proto::session::SessionOptions;
use loopd_store::SessionRecord;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::ask::ElicitationAnswer;
use super::attach::{Attachment, OpenQuestion, PendingWork};
use super::journal;
use super::registry::Sessions;
use super::running::RunningEffects;
use super::shells;
use super::slash::Running;
use super::subagents::parent::{Inheritance, Lineage};
use super::subagents::roster_refresh::RosterCell;
use super::subagents::spawn::{self, Children};
use super::subagents::tree::Tree;
use super::waits::{Waits, Whose};
use super::{Done, Message, SessionError};
use crate::launch::{Launch, Lifecycle, LifecycleMetadata};
use crate::publish::Audience;
use crate::publish::recent::Recent;
use crate::services::Services;
use crate::subagent::Subagents;
use crate::turn::route::TokenPeers;
use loopd_exec::shells::Shells;
use loopd_kernel::command::{Answer, Command, DecideEnv, Decision};
use loopd_kernel::decide::decide;
use loopd_kernel::state::State;
use loopd_kernel::tool_call::ToolOrigin;
use loopd_model::secret::Secret;

/// Whether there is a log to begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    New,
    Load,
    /// The log is a copy of another session's and is about to become an agent of that one.
    Copy,
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
    /// Whether it is that of somebody who only looks on.
    pub(super) borrowed_launch: bool,
    pub(super) api_token: Option<Secret>,
    pub(super) token_peers: TokenPeers,
    pub(super) recent: Recent,
    pub(super) ticks: watch::Sender<u64>,
    pub(super) open: BTreeMap<RequestId, OpenQuestion>,
    pub(super) running: RunningEffects,
    pub(super) asked: HashMap<RequestId, Vec<AbortHandle>>,
    pub(super) elicitations: HashMap<RequestId, oneshot::Sender<ElicitationAnswer>>,
    /// Those who wait for what becomes of a message.
    pub(super) waits: Waits,
    /// The slash commands that clients run now.
    pub(super) client_commands: HashMap<RequestId, Running>,
    pub(super) can_elicit: bool,
    /// The commands that run in shells.
    pub(super) shells: Shells,
    /// The agents of the session, and the sessions of those that live now.
    pub(super) agents: Subagents,
    pub(super) children: Children,
    /// Set in the session of an agent.
    pub(super) lineage: Option<Lineage>,
    /// What a parent handed down before the session knew whose agent it is.
    pub(super) early: Option<Inheritance>,
    /// How often something was handed down to the agents.
    pub(super) handed_down: u64,
    /// What the agents below share; made with the first of them, at the top only.
    pub(super) tree: Option<Arc<Tree>>,
    /// The agents that may be started, as of the last message.
    pub(super) roster: RosterCell,
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
        let now = services.clock.now().0;
        let children = Children::default();
        #[expect(clippy::cast_possible_truncation, reason = "the random half is enough")]
        let epoch = services.clock.id().0 as u64;
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
                agent: None,
                event_count: 0,
            },
            shells: shells::shells(&id, &services, &mailbox),
            agents: spawn::agents(&id, &services, &sessions, &mailbox, &children),
            children,
            lineage: None,
            early: None,
            handed_down: 0,
            tree: None,
            roster: RosterCell::default(),
            state: State::new(id),
            services,
            sessions,
            mailbox,
            inbox,
            audience: Audience::default(),
            attachments: Vec::new(),
            options: SessionOptions::default(),
            launch: None,
            borrowed_launch: false,
            api_token: None,
            token_peers: TokenPeers::new(),
            recent: Recent::new(epoch),
            ticks: watch::Sender::new(0),
            open: BTreeMap::new(),
            running: RunningEffects::default(),
            asked: HashMap::new(),
            elicitations: HashMap::new(),
            waits: Waits::default(),
            client_commands: HashMap::new(),
            can_elicit: false,
        }
    }

    /// Lives until the session is closed; then leaves the registry by itself.
    pub(super) async fn run(mut self, start: Start) {
        if start != Start::New
            && let Err(error) = self.load(start).await
        {
            self.refuse_all(&error);
            return;
        }
        while let Some(message) = self.next_message().await {
            if self.take(message).await == Flow::Stop {
                break;
            }
            self.running.forget_ended();
        }
        self.end_processes().await;
        self.refuse_all(&SessionError::NotFound(self.state.id.clone()));
    }

    /// Ends what must not outlive the session, before anybody can open it anew.
    async fn end_processes(&self) {
        self.running.end();
        self.agents.close().await;
        self.leave_tree();
        self.shells.close().await;
    }

    /// The next message; `None` when the session was idle for as long as its launch lets it.
    async fn next_message(&mut self) -> Option<Message> {
        let limit = self
            .launch
            .as_ref()
            .and_then(|launch| launch.session_idle_timeout)
            .filter(|_| !self.state.is_busy() && !self.state.tasks.has_agents_at_work())
            .filter(|_| self.lineage.is_none());
        let Some(limit) = limit else {
            return self.inbox.recv().await;
        };
        if let Ok(message) = tokio::time::timeout(limit, self.inbox.recv()).await {
            return message;
        }
        tracing::info!(session = %self.state.id, "the session was idle for too long and is ended");
        if let Err(error) = self.execute(Command::Shutdown { error: None }).await {
            tracing::error!(session = %self.state.id, %error, "the session's end could not be stored");
        }
        None
    }

    /// Answers what still waits, so that nobody hangs.
    fn refuse_all(&mut self, error: &SessionError) {
        self.sessions.forget(&self.state.id, &self.mailbox);
        let ended = SessionError::Ended(self.state.id.clone());
        self.waits.refuse(Whose::All, &ended);
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
                    let flow = error.flow();
                    reply.send(Err(error)).ok();
                    flow
                }
            },
            Message::SendAndWait(wanted) => self.send_and_wait(*wanted).await,
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
                reason,
                reply,
            } => {
                let flow = self.detach(peer, reason).await;
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
            Message::RunClientCommand { name, args, reply } => {
                self.run_client_command(&name, args, reply);
                Flow::Go
            }
            Message::ClientCommandRan {
                request,
                ran,
                reply,
            } => {
                reply.send(self.client_command_ran(request, ran)).ok();
                Flow::Go
            }
            Message::RequirePermissions {
                peer,
                required,
                reply,
            } => {
                if let Some(attachment) = self.attachment_of(peer) {
                    attachment.offer.request_permission = required;
                }
                self.hand_down();
                reply.send(()).ok();
                Flow::Go
            }
            Message::SetTools { peer, tools, reply } => {
                let attachment = self.attachment_of(peer);
                let known = attachment.map(|attachment| attachment.offer.tools = Some(tools));
                self.hand_down();
                reply.send(known.is_some()).ok();
                Flow::Go
            }
            Message::Provide { change, reply } => {
                reply.send(self.provide(*change)).ok();
                self.hand_down();
                Flow::Go
            }
            Message::ParentSnapshot { reply } => {
                let kin = self.parent_snapshot();
                // The order that wanted it may have been given up.
                reply.send(Box::new(kin)).ok();
                Flow::Go
            }
            Message::Adopt(adoption) => {
                self.adopt(*adoption);
                Flow::Go
            }
            Message::Inherit(inheritance) => {
                self.inherit(*inheritance);
                Flow::Go
            }
            Message::Close { error, reply } => {
                let ended = self.execute(Command::Shutdown { error }).await.map(|_| ());
                self.sessions.forget(&self.state.id, &self.mailbox);
                reply.send(ended).ok();
                Flow::Stop
            }
            Message::Abandon { why, reply } => {
                if self.state.is_busy() {
                    self.tell(&Ephemeral::SessionError(Failure {
                        error_type: "home_emptied".to_owned(),
                        message: why,
                        ..Failure::default()
                    }));
                }
                self.sessions.forget(&self.state.id, &self.mailbox);
                // Who asked may have stopped waiting.
                reply.send(()).ok();
                Flow::Stop
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
        let command = self.without_secrets(command);
        let headers = match &command {
            Command::Send(send) => send.request_headers.clone(),
            _ => BTreeMap::new(),
        };
        let patch = match &command {
            Command::UpdateOptions(patch) => Some(patch.clone()),
            _ => None,
        };
        let Decision { steps, answer } = self.decide(command)?;
        if let Some(patch) = patch {
            self.options = patch.applied_to(std::mem::take(&mut self.options));
        }
        if let Answer::Message(id) = &answer {
            self.running.keep_headers(id.clone(), headers);
        }
        self.carry_out(steps, answer).await
    }

    pub(super) fn decide(&self, command: Command) -> Result<Decision, SessionError> {
        let clock = &self.services.clock;
        let mut ids = || clock.id();
        let mut env = DecideEnv {
            now: clock.now(),
            attended: self.is_attended(),
            has_client_tool: &|name| {
                let tool = self.toolset().resolve(name);
                tool.is_some_and(|tool| tool.origin() == ToolOrigin::Client)
            },
            ids: &mut ids,
        };
        Ok(decide(&self.state, command, &mut env)?)
    }

    pub(super) fn tell(&mut self, event: &Ephemeral) {
        match journal::pass(&self.state, &self.services.clock, event) {
            Ok(outgoing) => {
                self.publish(vec![outgoing]);
            }
            Err(error) => {
                tracing::error!(session = %self.state.id, %error, "an event could not be written as JSON");
            }
        }
    }

    pub(super) fn refresh_record(&mut self) {
        let state = &self.state;
        let name = state.name.as_ref();
        self.record.created_ms = state.created.0;
        self.record.modified_ms = self.services.clock.now().0;
        self.record.summary = name.map(|name| name.text.clone());
        // Only a name that a person gave is one; the other is the first message's beginning.
        self.record.name = name
            .filter(|name| name.by_user)
            .map(|name| name.text.clone());
        self.record.cwd = Some(state.cwd.clone());
        self.record.git_root.clone_from(&state.context.git_root);
        self.record.repository.clone_from(&state.context.repository);
        self.record.branch.clone_from(&state.context.branch);
        self.record
            .client_name
            .clone_from(&state.options.client_name);
        if let Some(subagent) = &state.subagent {
            self.record.parent = Some(subagent.parent.clone());
            self.record.agent = Some(subagent.task.to_string());
        }
    }

    pub(super) fn announce_update(&self) {
        // Clients know the sessions they opened; agents they know by their events.
        if let Some(launch) = &self.launch
            && self.state.subagent.is_none()
        {
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
