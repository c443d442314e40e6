//! The agents of a session, seen from its side: makes child sessions and speaks to them.

mod beginning;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::Durable;
use loopd_proto::event::agent::{Profile, SubagentIdentity};
use loopd_proto::event::session::WorkContext;
use loopd_proto::event::task::{AgentWork, WorktreeWork};
use loopd_proto::id::{Seq, SessionId, TaskId, ToolCallId};
use loopd_proto::permission::Permissions;
use loopd_proto::session::SessionOptions;
use loopd_store::StoredEvent;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use beginning::{Beginning, NEVER_BEGAN};

use super::parent::{Adoption, Inheritance};
use super::roster_refresh::RosterRefresh;
use super::tree::Tree;
use crate::services::Services;
use crate::session::actor::Actor;
use crate::session::registry::Sessions;
use crate::session::{Message, SessionHandle};
use crate::subagent::definitions::Roster;
use crate::subagent::{
    Child, ChildResult, ChildSpawner, ChildStatus, RunLink, Slots, SpawnSpec, SubagentOrder,
    SubagentPlan, Subagents, SubagentsSetup, WorktreeEnd,
};
use loopd_kernel::command::{AdoptAsSubagent, Command, Create, Send};
use loopd_kernel::history::Entry;
use loopd_kernel::state::State;
use loopd_kernel::tasks::Task;

/// The child sessions that live now.
#[derive(Clone, Default)]
pub(in crate::session) struct Children(Arc<Mutex<BTreeMap<SessionId, SessionHandle>>>);

impl Children {
    fn table(&self) -> MutexGuard<'_, BTreeMap<SessionId, SessionHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::session) fn live(&self) -> Vec<SessionHandle> {
        self.table().values().cloned().collect()
    }
}

/// What has to be known of a session to make an agent of it.
pub(in crate::session) struct ParentSnapshot {
    inheritance: Inheritance,
    tree: Arc<Tree>,
    subagent: Option<SubagentIdentity>,
    state: Parent,
    route: crate::turn::route::Route,
    roster: Arc<Roster>,
    roster_refresh: Option<RosterRefresh>,
}

/// What of a parent's state matters to its agents.
struct Parent {
    options: SessionOptions,
    cwd: String,
    model: Option<String>,
    reasoning_effort: Option<String>,
    /// The ids that are or were in use.
    tasks: BTreeSet<TaskId>,
}

/// Makes the children of one session.
struct SessionSpawner {
    session: SessionId,
    mailbox: mpsc::Sender<Message>,
    sessions: Arc<Sessions>,
    services: Arc<Services>,
    children: Children,
    /// Cancelled when the session ends and answers nobody any more.
    ended: CancellationToken,
}

/// The agents of a new session.
pub(in crate::session) fn agents(
    id: &SessionId,
    services: &Arc<Services>,
    sessions: &Arc<Sessions>,
    mailbox: &mpsc::Sender<Message>,
    children: &Children,
) -> Subagents {
    let ended = CancellationToken::new();
    let spawner = SessionSpawner {
        session: id.clone(),
        mailbox: mailbox.clone(),
        sessions: sessions.clone(),
        services: services.clone(),
        children: children.clone(),
        ended: ended.clone(),
    };
    let setup = SubagentsSetup {
        session: id.clone(),
        folder: services.session_folder(id).join("agents"),
        log: crate::session::shells::log(mailbox),
        spawner: Arc::new(Shared(Arc::new(spawner))),
        keep_alive: services.keep_alive.clone(),
    };
    Subagents::new(setup, ended)
}

impl Actor {
    pub(in crate::session) fn parent_snapshot(&mut self) -> ParentSnapshot {
        let tree = self.tree();
        let state = &self.state;
        ParentSnapshot {
            inheritance: self.inheritance(),
            tree,
            subagent: state.subagent.as_deref().cloned(),
            state: Parent {
                options: state.options.clone(),
                cwd: state.cwd.clone(),
                model: state.model.clone(),
                reasoning_effort: state.reasoning_effort.clone(),
                tasks: state.tasks.ids().cloned().collect(),
            },
            route: self.route(),
            roster: self.roster.get(),
            roster_refresh: self.roster_refresh(),
        }
    }
}

impl SessionSpawner {
    async fn kin(&self) -> Result<ParentSnapshot, String> {
        let gone = || "the session has ended".to_owned();
        let (reply, kin) = oneshot::channel();
        let asked = async {
            let sent = self.mailbox.send(Message::ParentSnapshot { reply }).await;
            sent.map_err(|_| gone())?;
            kin.await.map_err(|_| gone())
        };
        tokio::select! {
            kin = asked => kin.map(|kin| *kin),
            () = self.ended.cancelled() => Err(gone()),
        }
    }

    fn know(&self, handle: &SessionHandle) {
        let mut table = self.children.table();
        table.insert(handle.id().clone(), handle.clone());
    }

    async fn spawn(&self, spec: SpawnSpec, run_link: RunLink) -> Result<Arc<dyn Child>, String> {
        let kin = self.kin().await?;
        let subagent = SubagentIdentity {
            parent: self.session.clone(),
            task: spec.task.clone(),
            depth: depth(&kin),
            profile: Profile {
                worktree: spec.worktree.as_ref().map(|worktree| worktree.path.clone()),
                ..spec.plan.profile.clone()
            },
        };
        let handle = if spec.plan.profile.fork {
            self.fork(&spec, subagent).await?
        } else {
            self.create(&spec, &kin, subagent).await?
        };
        self.take_in(handle, run_link).await
    }

    async fn create(
        &self,
        spec: &SpawnSpec,
        kin: &ParentSnapshot,
        subagent: SubagentIdentity,
    ) -> Result<SessionHandle, String> {
        let plan = &spec.plan;
        let parent = &kin.state.options;
        let options = SessionOptions {
            model: plan.model.clone(),
            reasoning_effort: plan.reasoning_effort.clone(),
            // It answers for itself; how its parent was told to speak is not for it.
            system_message: None,
            agent: None,
            default_agent: None,
            ..parent.clone()
        };
        let cwd = match &spec.worktree {
            Some(worktree) => worktree.cwd.clone(),
            None => plan.cwd.to_string_lossy().into_owned(),
        };
        let handle = self.sessions.start_new(spec.session.clone());
        let handle = handle.ok_or_else(|| "its session exists already".to_owned())?;
        let created = handle.command(Command::Create(Create {
            options,
            context: WorkContext {
                cwd,
                ..WorkContext::default()
            },
            permissions: Permissions::default(),
            agent: None,
            version: self.services.version.to_owned(),
            subagent: Some(Box::new(subagent)),
        }));
        match created.await {
            Ok(_) => Ok(handle),
            Err(error) => {
                handle.stop().await;
                Err(error.to_string())
            }
        }
    }

    /// Starts from the parent's log as it was when the model asked for the fork.
    async fn fork(
        &self,
        spec: &SpawnSpec,
        subagent: SubagentIdentity,
    ) -> Result<SessionHandle, String> {
        let store = &self.services.store;
        let loaded = store.load(&self.session).await;
        let loaded = loaded.map_err(|error| error.to_string())?;
        let (mut record, events) = loaded.ok_or_else(|| "its parent has no log".to_owned())?;
        let through = asked_at(&events, spec.call.as_ref());
        let through = through.ok_or_else(|| "its parent's log has no such call".to_owned())?;
        let now = self.services.clock.now().0;
        record.id = spec.session.clone();
        record.parent = Some(self.session.clone());
        record.agent = Some(spec.task.to_string());
        record.created_ms = now;
        record.modified_ms = now;
        let forked = store.fork(record, &self.session, through).await;
        forked.map_err(|error| error.to_string())?;
        let handle = self.sessions.open_copy(spec.session.clone());
        let enlist = handle.command(Command::AdoptAsSubagent(Box::new(AdoptAsSubagent {
            subagent,
            cwd: spec.worktree.as_ref().map(|worktree| worktree.cwd.clone()),
        })));
        match enlist.await {
            Ok(_) => Ok(handle),
            Err(error) => {
                handle.stop().await;
                Err(error.to_string())
            }
        }
    }

    async fn reopen(
        &self,
        session: SessionId,
        worktree: Option<WorktreeWork>,
        run_link: RunLink,
    ) -> Result<Arc<dyn Child>, String> {
        let known = self.services.store.record(&session).await;
        if known.map_err(|error| error.to_string())?.is_none() {
            return Err(NEVER_BEGAN.to_owned());
        }
        let kin = self.kin().await?;
        if let Some(worktree) = &worktree {
            plan::restore_worktree(&self.services, &kin, &session, worktree).await?;
        }
        let handle = self.sessions.open(session);
        self.take_in(handle, run_link).await
    }

    async fn take_in(
        &self,
        handle: SessionHandle,
        run_link: RunLink,
    ) -> Result<Arc<dyn Child>, String> {
        // Known before it is given anything, so that nothing that changes passes it by.
        self.know(&handle);
        let spoken = async {
            let kin = self.kin().await?;
            let adoption = Adoption {
                inheritance: kin.inheritance,
                tree: kin.tree,
                run_link,
            };
            handle
                .post(Message::Adopt(Box::new(adoption)))
                .map_err(|error| error.to_string())?;
            let seen = handle.state(Beginning::of).await;
            seen.map_err(|error| error.to_string())
        };
        match spoken.await {
            Ok(beginning) => Ok(Arc::new(ChildSession {
                handle,
                beginning,
                children: self.children.clone(),
            })),
            Err(error) => {
                self.children.table().remove(handle.id());
                handle.stop().await;
                Err(error)
            }
        }
    }
}

/// Where in a log the model made this call. The parent may have gone on since: the fork waited for a
/// slot.
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

/// What children may see of the launch's environment.
fn environment(kin: &ParentSnapshot) -> BTreeMap<String, String> {
    let launch = kin.inheritance.clients.launch.as_ref();
    launch
        .map(|launch| launch.child_environment())
        .unwrap_or_default()
}

fn depth(kin: &ParentSnapshot) -> u32 {
    kin.subagent.as_ref().map_or(0, |own| own.depth) + 1
}

/// A spawner that its own work may hold on to.
#[derive(Clone)]
struct Shared(Arc<SessionSpawner>);

impl ChildSpawner for Shared {
    fn plan(&self, order: SubagentOrder) -> BoxFuture<'static, Result<SubagentPlan, String>> {
        let spawner = self.0.clone();
        async move {
            let mut kin = spawner.kin().await?;
            // A model chooses among those it was told of; a client's order may be the first of all.
            let roster_refresh = kin.roster_refresh.take().filter(|_| order.call.is_none());
            if let Some(roster_refresh) = roster_refresh {
                roster_refresh.call().await;
                kin = spawner.kin().await?;
            }
            Box::pin(plan::plan(&spawner.services, kin, order)).await
        }
        .boxed()
    }

    fn tasks(&self) -> BoxFuture<'static, Result<Vec<Task>, String>> {
        let (mailbox, ended) = (self.0.mailbox.clone(), self.0.ended.clone());
        async move {
            let gone = || "the session has ended".to_owned();
            let (reply, tasks) = oneshot::channel();
            let look = Message::View(Box::new(move |view| {
                // Who wanted to know may have given up.
                reply.send(view.state.tasks.iter().cloned().collect()).ok();
            }));
            let asked = async {
                mailbox.send(look).await.map_err(|_| gone())?;
                tasks.await.map_err(|_| gone())
            };
            tokio::select! {
                tasks = asked => tasks,
                () = ended.cancelled() => Err(gone()),
            }
        }
        .boxed()
    }

    fn make_worktree(
        &self,
        session: &SessionId,
        plan: &SubagentPlan,
    ) -> BoxFuture<'static, Result<WorktreeWork, String>> {
        let (spawner, session, cwd) = (self.0.clone(), session.clone(), plan.cwd.clone());
        async move {
            let kin = spawner.kin().await?;
            plan::make_worktree(&spawner.services, &kin, &session, &cwd).await
        }
        .boxed()
    }

    fn spawn(
        &self,
        spec: SpawnSpec,
        run_link: RunLink,
    ) -> BoxFuture<'static, Result<Arc<dyn Child>, String>> {
        let spawner = self.0.clone();
        async move { spawner.spawn(spec, run_link).await }.boxed()
    }

    fn reopen(
        &self,
        work: &AgentWork,
        run_link: RunLink,
    ) -> BoxFuture<'static, Result<Arc<dyn Child>, String>> {
        let (spawner, session) = (self.0.clone(), work.session_id.clone());
        let worktree = work.worktree.clone();
        async move { spawner.reopen(session, worktree, run_link).await }.boxed()
    }

    fn terms(&self) -> BoxFuture<'static, Result<(Slots, bool), String>> {
        let spawner = self.0.clone();
        async move {
            let kin = spawner.kin().await?;
            let multi_turn = spawner.services.config.agents.multi_turn;
            Ok((kin.tree.slots.clone(), multi_turn))
        }
        .boxed()
    }

    fn settle_worktree(&self, worktree: &WorktreeWork) -> BoxFuture<'static, WorktreeEnd> {
        let (spawner, worktree) = (self.0.clone(), worktree.clone());
        async move {
            // Without its session there is no environment to look at it in; it is then listed.
            let env = match spawner.kin().await {
                Ok(kin) => environment(&kin),
                Err(_) => BTreeMap::new(),
            };
            plan::settle_worktree(&spawner.services, &worktree, &env).await
        }
        .boxed()
    }
}

/// A live child session.
struct ChildSession {
    handle: SessionHandle,
    beginning: Beginning,
    children: Children,
}

impl Child for ChildSession {
    fn is_new(&self) -> bool {
        self.beginning.is_new
    }

    fn say(&self, message: String) -> BoxFuture<'static, Result<(), String>> {
        let said = self.handle.command(Command::Send(Send {
            id: None,
            prompt: message,
            display_prompt: None,
            attachments: Vec::new(),
            agent_mode: None,
            request_headers: BTreeMap::new(),
            source: None,
            place: self.beginning.place,
        }));
        async move { said.await.map(|_| ()).map_err(|error| error.to_string()) }.boxed()
    }

    fn abort(&self) -> BoxFuture<'static, ()> {
        let aborted = self.handle.command(Command::Abort);
        async move {
            // A child that is gone needs no interruption.
            aborted.await.ok();
        }
        .boxed()
    }

    fn status(&self) -> BoxFuture<'static, Option<ChildStatus>> {
        let since = self.beginning.since;
        let seen = self.handle.state(move |state| status(state, since));
        async move { seen.await.ok() }.boxed()
    }

    fn stop(&self) -> BoxFuture<'static, ()> {
        let (handle, children) = (self.handle.clone(), self.children.clone());
        async move {
            handle.stop().await;
            children.table().remove(handle.id());
        }
        .boxed()
    }
}

/// How a session stands that was spoken to when its log ended there.
fn status(state: &State, since: Seq) -> ChildStatus {
    if is_at_work(state) {
        ChildStatus::AtWork
    } else {
        ChildStatus::Rests(Box::new(rested(state, since)))
    }
}

/// Whether a session works or has something to work on.
pub(in crate::session) fn is_at_work(state: &State) -> bool {
    let waits = !state.queue.is_empty() || !state.steering.is_empty();
    state.is_busy() || waits || state.tasks.has_agents_at_work()
}

/// What a session came to that was spoken to when its log ended there.
pub(in crate::session) fn rested(state: &State, since: Seq) -> ChildResult {
    let said = state.history.after(since).rev();
    let response = said.into_iter().find_map(|entry| match entry {
        Entry::Assistant(turn) if !turn.text.trim().is_empty() => Some(turn.text.clone()),
        _ => None,
    });
    ChildResult {
        outcome: state.last_outcome,
        response,
        error: state.last_error.clone(),
        usage: state.usage(),
    }
}
