//! The task that owns one session: takes one message at a time, decides, stores, publishes.
//!
//! Nothing else changes the state. Slow work runs as an effect and reports its result as a command.

use loopd_proto::event::Ephemeral;
use loopd_proto::event::session::Failure;
use loopd_proto::id::SessionId;
use loopd_proto::session::SessionOptions;
use loopd_store::SessionRecord;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

use super::beside::BesideCalls;
use super::budget::{TreeBudget, UnsettledCall, UnsettledSideCall};
use super::clients::Clients;
use super::clients::attach::PendingWork;
use super::consolidation::Consolidation;
use super::files::FileWriter;
use super::hooks::SessionHooks;
use super::instructions::SessionInstructions;
use super::journal;
use super::mcp::SessionMcp;
use super::questions::QuestionWaiters;
use super::registry::Sessions;
use super::resume::Start;
use super::rewind::RewindWork;
use super::running::RunningEffects;
use super::shells;
use super::skills::SessionSkills;
use super::storage::{OnFailure, Storage, Substitute};
use super::subagents::SessionSubagents;
use super::todos::SqlCell;
use super::waits::{Waits, Whose};
use super::{Done, Message, SessionError};
use crate::hook::Transcript;
use crate::publish::recent::Recent;
use crate::redaction::file::FileMasks;
use crate::services::Services;
use crate::subagent::CancelledBy;
use loopd_exec::keep_alive::KeepAliveGuard;
use loopd_exec::shells::Shells;
use loopd_kernel::command::{Answer, Command, Decision};
use loopd_kernel::context_window::ContextWindow;
use loopd_kernel::state::State;

pub(super) struct Actor {
    pub(super) state: State,
    pub(super) services: Arc<Services>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) mailbox: mpsc::Sender<Message>,
    pub(super) inbox: mpsc::Receiver<Message>,
    pub(super) record: SessionRecord,
    pub(super) clients: Clients,
    /// The configuration with its secrets, which are never stored.
    pub(super) options: SessionOptions,
    pub(super) recent: Recent,
    pub(super) ticks: watch::Sender<u64>,
    pub(super) running: RunningEffects,
    /// The callers that wait for answers to questions. Which questions are open is in the state.
    pub(super) question_waiters: QuestionWaiters,
    /// The callers that wait until a message was dealt with.
    pub(super) waits: Waits,
    files: FileWriter,
    /// The shell commands of the session.
    pub(super) shells: Shells,
    /// The secrets that the files of large outputs must not hold.
    pub(super) file_masks: FileMasks,
    pub(super) subagents: SessionSubagents,
    pub(super) skills: SessionSkills,
    pub(super) instructions: SessionInstructions,
    /// The model calls of this session and the sub-agents below it, if it is at the top.
    pub(super) budget: Arc<TreeBudget>,
    /// The model call whose usage is about to be stored.
    pub(super) unsettled: UnsettledCall,
    /// The model call beside the conversation whose usage is about to be stored.
    pub(super) unsettled_side: UnsettledSideCall,
    /// The calls about the conversation that somebody waits for.
    pub(super) beside: BesideCalls,
    /// The notes for later sessions that are made when this one has ended.
    pub(super) notes: Option<Consolidation>,
    /// Whether a client has joined the session since it was opened.
    pub(super) was_joined: bool,
    /// The database for SQL of the model; no file is opened before it is needed.
    pub(super) sql: SqlCell,
    pub(super) storage: Storage,
    /// Earlier versions of the files that tools change, and who waits for a rewind.
    pub(super) rewinding: RewindWork,
    pub(super) hooks: SessionHooks,
    pub(super) mcp: SessionMcp,
    /// What the model of the last call takes.
    pub(super) window: Option<(String, ContextWindow)>,
    /// Since when nobody attends the session and nothing runs in it.
    pub(super) quiet_since: Option<tokio::time::Instant>,
    /// Held while a question is open, so that the daemon waits for a person.
    pub(super) asks: Option<KeepAliveGuard>,
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
        let file_masks = FileMasks::default();
        let transcript = Transcript::new(id.clone(), services.session_folder(&id));
        let mcp = SessionMcp::new(&id, &services, &mailbox, &file_masks);
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
            shells: shells::shells(&id, &services, &mailbox, &file_masks),
            file_masks,
            subagents: SessionSubagents::new(&id, &services, &sessions, &mailbox),
            skills: SessionSkills::default(),
            instructions: SessionInstructions::default(),
            sql: SqlCell::new(services.session_folder(&id)),
            clients: Clients::new(id.clone()),
            state: State::new(id),
            services,
            sessions,
            mailbox,
            inbox,
            options: SessionOptions::default(),
            recent: Recent::new(epoch),
            ticks: watch::Sender::new(0),
            running: RunningEffects::default(),
            question_waiters: QuestionWaiters::default(),
            waits: Waits::default(),
            files: FileWriter::default(),
            budget: Arc::default(),
            unsettled: UnsettledCall::default(),
            unsettled_side: UnsettledSideCall::default(),
            beside: BesideCalls::default(),
            notes: None,
            was_joined: false,
            storage: Storage::default(),
            rewinding: RewindWork::default(),
            hooks: SessionHooks::new(transcript),
            mcp,
            window: None,
            quiet_since: None,
            asks: None,
        }
    }

    /// Runs until the session is closed, then removes itself from the registry. An actor is large; behind a
    /// pointer the future that runs it does not hold it a second time.
    pub(super) async fn run(mut self: Box<Self>, start: Start) {
        if start != Start::New
            && let Err(error) = Box::pin(self.load(start)).await
        {
            self.refuse_all(&error);
            return;
        }
        while let Some(message) = Box::pin(self.next_message()).await {
            if Box::pin(self.take(message)).await == Flow::Stop
                || self.settle_rewind().await == Flow::Stop
                || self.advance_fleet().await == Flow::Stop
            {
                break;
            }
            self.running.forget_ended();
            self.tell_mcp_news();
        }
        self.end_processes().await;
        self.refuse_all(&SessionError::NotFound(self.state.id.clone()));
        if let Some(notes) = self.notes.take() {
            self.sessions.after_the_end(notes.run());
        }
    }

    /// Ends what must not outlive the session, before anybody can open the session again.
    async fn end_processes(&self) {
        self.running.end();
        // The log says it if the session has ended and its sub-agents with it.
        let mut agents = self.state.tasks.running();
        let by = if agents.any(|task| task.agent().is_some()) {
            CancelledBy::Closed
        } else {
            CancelledBy::SessionEnds
        };
        self.subagents.runs().close(by).await;
        self.leave_tree();
        self.end_mcp().await;
        self.shells.close().await;
        self.close_captures().await;
        self.report_gone(&SessionError::Ended(self.state.id.clone()));
    }

    /// Answers all pending requests with an error, so that no caller hangs.
    fn refuse_all(&mut self, error: &SessionError) {
        self.sessions.forget(&self.state.id, &self.mailbox);
        let ended = SessionError::Ended(self.state.id.clone());
        self.waits.refuse(Whose::All, &ended);
        self.inbox.close();
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Command { reply, .. } | Message::DeclinePermission { reply, .. } => {
                    reply.send(Err(error.clone())).ok();
                }
                Message::View(look) => look(Err(error.clone())),
                Message::Join(join) => join.refuse(error),
                Message::Rewind { reply, .. } => {
                    reply.send(Err(error.clone())).ok();
                }
                Message::Adopt(adoption) => adoption.refuse(error),
                // The others learn it from the end of their channel.
                _ => {}
            }
        }
    }

    async fn take(&mut self, message: Message) -> Flow {
        match message {
            Message::Command { command, reply } => {
                let answer = self.review_answer(command, reply);
                let answer = answer.and_then(|(it, reply)| self.ask_late_guards(it, reply));
                let Some((command, reply)) = answer else {
                    return Flow::Go;
                };
                self.take_command(*command, reply).await
            }
            Message::DeclinePermission {
                client,
                request,
                reply,
            } => self.decline_permission(client, request, reply).await,
            Message::Reviewed {
                command,
                context,
                ended,
                reply,
            } => {
                self.record_hooks(context, ended).await;
                self.take_command(*command, reply).await
            }
            Message::SendAndWait(wanted) => self.send_and_wait(*wanted).await,
            Message::AskBeside { question, reply } => {
                self.ask_beside(question, reply);
                Flow::Go
            }
            Message::Mcp(message) => {
                self.take_mcp(message).await;
                Flow::Go
            }
            Message::Report(command) => self.report(*command).await,
            Message::View(look) => {
                self.show(look);
                Flow::Go
            }
            Message::Join(join) => Box::pin(self.join(*join)).await,
            Message::Attach(attachment) => {
                let pending = attachment.pending;
                let guard =
                    (attachment.offer.hooks).then(|| (attachment.name.clone(), attachment.returns));
                self.attach(*attachment).await;
                // It is rare, and its state is large.
                Box::pin(self.look_for_hooks()).await;
                match guard {
                    Some((name, returns)) => self.guard_joined(name, returns).await,
                    None => self.guards_changed().await,
                }
                self.warn_of_broken_agents();
                self.look_for_skills();
                self.rejoin_mcp_tasks();
                match pending {
                    PendingWork::Waits => Flow::Go,
                    // A sub-agent works when its parent wants it to.
                    PendingWork::Continues if self.subagents.is_child() => Flow::Go,
                    // Only now, because the work needs the tools and settings of the client.
                    PendingWork::Continues => self.report(Command::TakeUp).await,
                }
            }
            Message::Detach {
                client,
                reason,
                reply,
            } => {
                let mut reply = reply;
                if self.end_hooks_first(client, reason, &mut reply) {
                    return Flow::Go;
                }
                let mut flow = Box::pin(self.detach(client, reason)).await;
                if flow == Flow::Go {
                    flow = self.deny_declined().await;
                }
                if let Some(reply) = reply {
                    if flow == Flow::Stop {
                        self.end_processes().await;
                        self.sessions.forget(&self.state.id, &self.mailbox);
                    }
                    reply.send(()).ok();
                }
                flow
            }
            Message::Elicit { asked, reply } => {
                self.elicit(asked, reply).await;
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
            Message::RunPart { order, reply } => {
                self.prepare_part(order, reply);
                Flow::Go
            }
            Message::AskForPart(asked, part) => {
                self.ask_for_part(*asked, part).await;
                Flow::Go
            }
            Message::RequirePermissions {
                client,
                required,
                reply,
            } => {
                let checked = self.check_own("handlers of permission requests");
                if checked.is_err() {
                    reply.send(checked).ok();
                    return Flow::Go;
                }
                self.clients.require_permissions(client, required);
                self.hand_down();
                reply.send(Ok(())).ok();
                self.deny_declined().await
            }
            Message::SetTools {
                client,
                tools,
                reply,
            } => {
                let checked = self.check_own("tools of clients");
                if checked.is_err() {
                    reply.send(checked).ok();
                    return Flow::Go;
                }
                let new_names = self.clients.new_tools(client, &tools);
                let known = self.clients.set_tools(client, tools);
                self.hand_down();
                self.show_open_calls(client, &new_names).await;
                let left = || SessionError::Left(self.state.id.clone());
                reply.send(if known { Ok(()) } else { Err(left()) }).ok();
                Flow::Go
            }
            Message::Provide { change, reply } => {
                reply.send(self.provide(*change)).ok();
                self.hand_down();
                Flow::Go
            }
            Message::ChangeFile(change) => {
                self.files.push(change, &mut self.running);
                Flow::Go
            }
            Message::ParentAtStart { reply } => {
                if let Err(error) = self.look_above().await {
                    // Without a reply the caller takes the session for ended.
                    tracing::warn!(session = %self.state.id, %error, "no sub-agent can be started");
                    return Flow::Go;
                }
                let parent = self.parent_at_start();
                // The send fails if the start of the sub-agent was cancelled.
                reply.send(Box::new(parent)).ok();
                Flow::Go
            }
            Message::Adopt(adoption) => {
                self.adopt(*adoption).await;
                Flow::Go
            }
            Message::Release { reply } => {
                // The send fails if the run has stopped waiting.
                reply.send(self.release()).ok();
                Flow::Go
            }
            Message::Inherit(inheritance) => {
                self.inherit(*inheritance);
                self.guards_changed().await;
                self.deny_declined().await
            }
            Message::Close { error, reply } => {
                let ended = self.shut_down(error).await;
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
                // The send fails if the caller has stopped waiting.
                reply.send(()).ok();
                Flow::Stop
            }
            Message::Rewind { order, reply } => self.rewind(*order, reply).await,
            Message::TellEnd { reply } => {
                self.end_hooks_of_stop(reply);
                Flow::Go
            }
            Message::StopUnlessUsed { reply } => {
                // Who has joined attaches later, or has left again.
                if !self.was_joined && !self.state.is_working() {
                    self.end_processes().await;
                    self.sessions.forget(&self.state.id, &self.mailbox);
                    reply.send(()).ok();
                    return Flow::Stop;
                }
                reply.send(()).ok();
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

    /// Carries out a command for a caller.
    pub(super) async fn take_command(
        &mut self,
        command: Command,
        reply: oneshot::Sender<Result<Done, SessionError>>,
    ) -> Flow {
        match self.execute(command).await {
            Ok(done) => {
                // The caller may have stopped waiting; the command is carried out all the same.
                reply.send(Ok(done)).ok();
                Flow::Go
            }
            Err(error) => {
                let flow = self.flow_after(&error);
                reply.send(Err(error)).ok();
                flow
            }
        }
    }

    /// Carries out a command that has no caller.
    pub(super) async fn report(&mut self, command: Command) -> Flow {
        let Err(error) = self.execute(command).await else {
            return Flow::Go;
        };
        let flow = self.flow_after(&error);
        match flow {
            Flow::Stop => {
                tracing::error!(session = %self.state.id, %error, "the session cannot go on");
                self.report_gone(&error);
            }
            Flow::Go => {
                tracing::warn!(session = %self.state.id, %error, "a report was not carried out");
            }
        }
        flow
    }

    /// Carries out a command, after all that still waits to be stored.
    pub(super) async fn execute(&mut self, command: Command) -> Result<Done, SessionError> {
        let command = self.make_way(command).await?;
        self.execute_now(command).await
    }

    /// Decides a command and carries it out: store, apply, commit, publish, start effects.
    pub(super) async fn execute_now(&mut self, command: Command) -> Result<Done, SessionError> {
        let substitute = Substitute::of(&command);
        let done = self.attempt(command).await;
        let refused = match &done {
            Err(SessionError::Store(error)) if !error.may_pass() => error.clone(),
            Err(error) if self.flow_after(error) == Flow::Stop => {
                self.report_gone(error);
                return done;
            }
            Ok(_) | Err(_) => return done,
        };
        // The store will never take this report. What can be stored is that it was lost.
        match substitute.command(&refused) {
            Some(command) => Box::pin(self.attempt(command)).await,
            None => done,
        }
    }

    async fn attempt(&mut self, command: Command) -> Result<Done, SessionError> {
        let command = self.without_secrets(self.with_agents(command).await);
        let headers = match &command {
            Command::Send(send) => send.request_headers.clone(),
            _ => BTreeMap::new(),
        };
        let on_failure = if command.is_report() {
            OnFailure::Keep
        } else {
            OnFailure::Undo
        };
        self.before_deciding(&command);
        let secret_options = self.options_after(&command);
        let Decision { steps, answer } = self.decide(command)?;
        let options_before =
            secret_options.map(|options| std::mem::replace(&mut self.options, options));
        let message = match &answer {
            Answer::Message(id) => Some(id.clone()),
            Answer::Done
            | Answer::Accepted(_)
            | Answer::Aborted(_)
            | Answer::Withdrawn { .. }
            | Answer::GuardsLifted(_)
            | Answer::Cleared(_)
            | Answer::Permissions { .. } => None,
        };
        if let Some(id) = &message {
            self.running.keep_headers(id.clone(), headers);
        }
        let done = self.carry_out(steps, answer, on_failure).await;
        if let Err(SessionError::Store(_)) = &done {
            if let Some(options) = options_before {
                self.options = options;
            }
            if let Some(id) = &message {
                self.running.drop_headers(id);
            }
        }
        done
    }

    pub(super) fn tell(&mut self, event: &Ephemeral) {
        let event = self.tellable(event);
        match journal::pass(&self.state, &self.services.clock, &event) {
            Ok(outgoing) => {
                self.publish(vec![outgoing]);
            }
            Err(error) => {
                tracing::error!(session = %self.state.id, %error, "an event could not be written as JSON");
            }
        }
    }
}
