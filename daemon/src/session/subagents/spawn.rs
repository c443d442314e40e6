//! Starts and reopens the child sessions of a session.
//!
//! Each start takes one snapshot of the parent. The child starts from that snapshot, updated by
//! what the parent has handed down since.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::Durable;
use loopd_proto::event::agent::{Profile, SubagentIdentity};
use loopd_proto::event::session::WorkContext;
use loopd_proto::event::task::AgentWork;
use loopd_proto::id::{Seq, SessionId, ToolCallId};
use loopd_proto::permission::Permissions;
use loopd_proto::session::SessionOptions;
use loopd_store::StoredEvent;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::as_child::{Adoption, Inheritance};
use super::child::ChildSession;
use super::children::{Children, Starting};
use super::roster::RosterLookup;
use super::tree::Tree;
use crate::mcp::McpLookup;
use crate::services::Services;
use crate::session::actor::Actor;
use crate::session::effects::Reporter;
use crate::session::mcp::lookup::look;
use crate::session::registry::Sessions;
use crate::session::{Message, SessionHandle};
use crate::subagent::child::{Child, RunLink};
use crate::subagent::definitions::AskedBy;
use crate::subagent::definitions::refresh::RosterCell;
use crate::subagent::memory;
use crate::subagent::parent::{ChildSpawner, ParentSession, ParentSnapshot, ReachableModels};
use crate::subagent::{ChildError, ParentEnded, SpawnSpec, Subagents, SubagentsSetup};
use crate::turn::route::Route;
use loopd_kernel::command::{AdoptAsSubagent, Command, Create, ModelFailure};
use loopd_kernel::model::ModelInfo;
use loopd_kernel::tasks::Task;

/// A snapshot of a session, taken when one of its sub-agents starts.
pub(in crate::session) struct ParentAtStart {
    snapshot: ParentSnapshot,
    inheritance: Inheritance,
    tree: Arc<Tree>,
    /// The options as they are in the log.
    options: SessionOptions,
    route: Route,
    roster_lookup: Option<RosterLookup>,
    /// Looks for the servers of the session, if nobody has done so yet.
    server_lookup: Option<(McpLookup, Reporter)>,
    _starting: Starting,
}

impl ParentAtStart {
    /// Returns what a sub-agent inherits.
    pub(super) fn into_inheritance(self) -> Inheritance {
        self.inheritance
    }
}

/// The parent session of the sub-agents.
struct Parent(Arc<ParentParts>);

struct ParentParts {
    session: SessionId,
    mailbox: mpsc::Sender<Message>,
    sessions: Arc<Sessions>,
    services: Arc<Services>,
    children: Children,
    roster: RosterCell,
    /// Cancelled when the session ends and no longer replies.
    ended: CancellationToken,
}

/// Starts children of one session from one snapshot of it.
struct SessionSpawner {
    parts: Arc<ParentParts>,
    at: ParentAtStart,
}

/// Makes the sub-agents of a new session.
pub(super) fn subagents(
    id: &SessionId,
    services: &Arc<Services>,
    sessions: &Arc<Sessions>,
    mailbox: &mpsc::Sender<Message>,
    children: &Children,
    roster: &RosterCell,
) -> Subagents {
    let ended = CancellationToken::new();
    let parts = ParentParts {
        session: id.clone(),
        mailbox: mailbox.clone(),
        sessions: sessions.clone(),
        services: services.clone(),
        children: children.clone(),
        roster: roster.clone(),
        ended: ended.clone(),
    };
    let setup = SubagentsSetup {
        session: id.clone(),
        folder: services.session_folder(id).join("agents"),
        log: crate::session::shells::log(mailbox),
        parent: Arc::new(Parent(Arc::new(parts))),
        worktrees: services.worktrees.clone(),
        keep_alive: services.keep_alive.clone(),
        multi_turn: services.config.agents.multi_turn,
    };
    Subagents::new(setup, ended)
}

impl Actor {
    pub(in crate::session) fn parent_at_start(&mut self) -> ParentAtStart {
        // This comes first, so that no later change is missed.
        let starting = self.subagents.children.starting();
        let tree = self.tree();
        let inheritance = self.inheritance();
        let state = &self.state;
        let variable = |name: &str| self.clients.launch()?.variable(name);
        let settings = self.services.config.agents.with(variable);
        let subagents = inheritance.options.subagents.clone();
        ParentAtStart {
            snapshot: ParentSnapshot {
                identity: state.subagent.as_deref().cloned(),
                cwd: state.cwd.clone(),
                model: state
                    .model_in_force()
                    .map(str::to_owned)
                    .or_else(|| state.options.model.clone()),
                reasoning_effort: state.reasoning_effort.clone(),
                taken: state.tasks.ids().cloned().collect(),
                planning: inheritance.permissions.effective.planning,
                denied: inheritance.permissions.effective.permissions.denied.clone(),
                lasting_limits: state.lasting_limits(),
                limits_of_run: state.limits_of_run(),
                settings: settings.of_session(subagents.as_ref()),
                subagents,
                roster: self.subagents.roster(),
                slots: tree.slots.clone(),
                user_home: variable("HOME").map(PathBuf::from),
                has_memory: state.options.has_memory(),
            },
            inheritance,
            tree,
            options: state.options.clone(),
            route: self.route(),
            roster_lookup: self.roster_lookup(),
            server_lookup: self.first_server_lookup(),
            _starting: starting,
        }
    }
}

impl Actor {
    /// Returns a lookup of the servers of the session, unless a message has looked for them already.
    fn first_server_lookup(&self) -> Option<(McpLookup, Reporter)> {
        if self.mcp.cell.was_looked_up() {
            return None;
        }
        Some((self.mcp_lookup()?, self.reporter()))
    }
}

impl ParentParts {
    /// Sends a request to the session; fails if the session has ended.
    async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, ParentEnded> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            let sent = self.mailbox.send(message(reply)).await;
            sent.map_err(|_| ParentEnded)?;
            answer.await.map_err(|_| ParentEnded)
        };
        tokio::select! {
            answer = asked => answer,
            () = self.ended.cancelled() => Err(ParentEnded),
        }
    }
}

impl ParentSession for Parent {
    fn look(&self, asked_by: AskedBy) -> BoxFuture<'_, Result<Arc<dyn ChildSpawner>, ParentEnded>> {
        async move {
            let parts = self.0.clone();
            let seen = parts.ask(|reply| Message::ParentAtStart { reply }).await;
            let mut at = *seen?;
            if let (AskedBy::Person, Some(lookup)) = (asked_by, at.roster_lookup.take()) {
                lookup.run().await;
                at.snapshot.roster = parts.roster.get();
            }
            if let Some((lookup, reporter)) = at.server_lookup.take() {
                look(lookup, &reporter).await;
            }
            let spawner: Arc<dyn ChildSpawner> = Arc::new(SessionSpawner { parts, at });
            Ok(spawner)
        }
        .boxed()
    }

    fn tasks(&self) -> BoxFuture<'_, Result<Vec<Task>, ParentEnded>> {
        let look = |reply: oneshot::Sender<Vec<Task>>| {
            Message::View(Box::new(move |view| {
                // Without a reply the caller takes the parent for ended.
                if let Ok(view) = view {
                    // The send fails if the caller has stopped waiting.
                    reply.send(view.state.tasks.iter().cloned().collect()).ok();
                }
            }))
        };
        self.0.ask(look).boxed()
    }
}

impl ReachableModels for Route {
    fn default_model(&self) -> BoxFuture<'_, Result<String, ModelFailure>> {
        Route::default_model(self).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        async { self.models().await.unwrap_or_default() }.boxed()
    }
}

impl ChildSpawner for SessionSpawner {
    fn parent(&self) -> &ParentSnapshot {
        &self.at.snapshot
    }

    fn models(&self) -> &dyn ReachableModels {
        &self.at.route
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let launch = self.at.inheritance.clients.launch.as_ref();
        let environment =
            launch.map(|launch| launch.child_environment(&self.parts.services.config));
        environment.unwrap_or_default()
    }

    fn spawn(
        &self,
        spec: SpawnSpec,
        run_link: RunLink,
    ) -> BoxFuture<'_, Result<Arc<dyn Child>, ChildError>> {
        async move {
            let subagent = SubagentIdentity {
                parent: self.parts.session.clone(),
                task: spec.task.clone(),
                depth: self.at.snapshot.child_depth(),
                profile: Profile {
                    worktree: spec.worktree.as_ref().map(|worktree| worktree.path.clone()),
                    copied: spec
                        .worktree
                        .as_ref()
                        .map(|worktree| worktree.copied.clone())
                        .unwrap_or_default(),
                    ..spec.plan.profile.clone()
                },
            };
            if let Some(folder) = spec.plan.profile.memory.clone() {
                let made = tokio::task::spawn_blocking(move || memory::make(folder.as_ref()));
                // The agent works without it, and its prompt says that there is nothing in it.
                if let Ok(Err(error)) = made.await {
                    tracing::warn!(%error, "the folder for the memory of an agent cannot be made");
                }
            }
            let handle = if spec.plan.profile.fork {
                self.fork(&spec, subagent).await?
            } else {
                self.create(&spec, subagent).await?
            };
            self.take_in(handle, run_link).await
        }
        .boxed()
    }

    fn reopen(
        &self,
        work: &AgentWork,
        run_link: RunLink,
    ) -> BoxFuture<'_, Result<Arc<dyn Child>, ChildError>> {
        let session = work.session_id.clone();
        async move {
            let known = self.parts.services.store.record(&session).await;
            let known = known.map_err(|error| ChildError::Log(Arc::new(error)))?;
            if known.is_none() {
                return Err(ChildError::NoLog);
            }
            let handle = self.parts.sessions.open_subagent(session);
            self.take_in(handle, run_link).await
        }
        .boxed()
    }
}

impl SessionSpawner {
    async fn create(
        &self,
        spec: &SpawnSpec,
        subagent: SubagentIdentity,
    ) -> Result<SessionHandle, ChildError> {
        let plan = &spec.plan;
        let options = SessionOptions {
            model: plan.model.clone(),
            reasoning_effort: plan.reasoning_effort.clone(),
            // The sub-agent has its own system message; that of its parent does not apply to it.
            system_message: None,
            agent: None,
            default_agent: None,
            ..self.at.options.clone()
        };
        let cwd = match &spec.worktree {
            Some(worktree) => worktree.cwd.clone(),
            None => plan.cwd.to_string_lossy().into_owned(),
        };
        let handle = self.parts.sessions.start_subagent(spec.session.clone());
        let handle = handle.ok_or(ChildError::Exists)?;
        let created = handle.command(Command::Create(Box::new(Create {
            options,
            context: WorkContext {
                cwd,
                ..WorkContext::default()
            },
            permissions: Permissions::default(),
            agent: None,
            version: self.parts.services.version.to_owned(),
            subagent: Some(Box::new(subagent)),
            name: None,
            // Those of its parent hold for it, too.
            vouched_hooks: Vec::new(),
        })));
        match created.await {
            Ok(_) => Ok(handle),
            Err(error) => {
                handle.stop().await;
                Err(error.into())
            }
        }
    }

    /// Starts from the parent's log up to the message in which the model asked for the fork.
    async fn fork(
        &self,
        spec: &SpawnSpec,
        subagent: SubagentIdentity,
    ) -> Result<SessionHandle, ChildError> {
        let failed = |error| ChildError::Log(Arc::new(error));
        let store = &self.parts.services.store;
        let loaded = store.load(&self.parts.session).await;
        let (mut record, events) = loaded.map_err(failed)?.ok_or(ChildError::NoParentLog)?;
        let through = asked_at(&events, spec.call.as_ref());
        let through = through.ok_or(ChildError::NoSuchCall)?;
        let now = self.parts.services.clock.now().0;
        record.id = spec.session.clone();
        record.parent = Some(self.parts.session.clone());
        record.agent = Some(spec.task.to_string());
        record.created_ms = now;
        record.modified_ms = now;
        let forked = store.fork(record, &self.parts.session, through).await;
        forked.map_err(failed)?;
        let handle = self.parts.sessions.open_copy(spec.session.clone());
        let adopted = handle.command(Command::AdoptAsSubagent(Box::new(AdoptAsSubagent {
            subagent,
            cwd: spec.worktree.as_ref().map(|worktree| worktree.cwd.clone()),
        })));
        match adopted.await {
            Ok(_) => Ok(handle),
            Err(error) => {
                handle.stop().await;
                Err(error.into())
            }
        }
    }

    async fn take_in(
        &self,
        handle: SessionHandle,
        run_link: RunLink,
    ) -> Result<Arc<dyn Child>, ChildError> {
        let children = &self.parts.children;
        let mut inheritance = children.take_in(&handle, &self.at.inheritance);
        inheritance.roster = self.parts.roster.get();
        let (reply, adopted) = oneshot::channel();
        let adoption = Message::Adopt(Box::new(Adoption {
            inheritance,
            tree: self.at.tree.clone(),
            run_link,
            reply,
        }));
        let adopted = async {
            handle.post(adoption)?;
            adopted.await.unwrap_or(Err(ChildError::Crashed))
        };
        match adopted.await {
            Ok(beginning) => Ok(Arc::new(ChildSession {
                handle,
                beginning,
                children: children.clone(),
            })),
            Err(error) => {
                children.remove(handle.id());
                handle.stop().await;
                Err(error)
            }
        }
    }
}

/// Returns the position in a log of the message with this tool call. The parent may have gone on
/// since, while the fork waited for a slot.
fn asked_at(events: &[StoredEvent], call: Option<&ToolCallId>) -> Option<Seq> {
    let said = events.iter().rev();
    let mut said = said.filter(|event| &*event.kind == "assistant.message");
    let asked = said.find(|event| {
        let read = loopd_proto::event::read_durable(&event.json);
        matches!(read, Ok((_, Durable::AssistantMessage(message)))
            if message.tool_requests.iter().any(|request| Some(&request.tool_call_id) == call))
    });
    asked.map(|event| event.seq)
}
