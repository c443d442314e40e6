//! Sub-agents without sessions: their child sessions do what a test tells them.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::task::{AgentWork, Execution, WorkUsage};
use loopd_proto::id::{SessionId, TaskId};
use loopd_proto::run_scope::ToolLimits;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::child::{Child, ChildResult, ChildStatus, CommandEnding, RunLink};
use super::definitions::{AgentSettings, AskedBy, RosterInput, load};
use super::parent::{ChildSpawner, ParentSession, ParentSnapshot, ReachableModels};
use super::{ChildError, ParentEnded, Slots, SpawnSpec, SubagentOrder, Subagents, SubagentsSetup};
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::process::Processes;
use loopd_exec::shells::{TaskLog, TaskLogError};
use loopd_exec::worktree::Worktrees;
use loopd_kernel::command::{Command, ModelFailure};
use loopd_kernel::model::ModelInfo;
use loopd_kernel::tasks::Task;

/// Records the commands to the log, and every child that was made, in order.
pub(crate) struct Home {
    pub(crate) told: watch::Sender<Vec<String>>,
    pub(crate) children: watch::Sender<Vec<Arc<FakeChild>>>,
    slots: Slots,
    loses: Mutex<bool>,
    looks: Mutex<usize>,
}

/// A child that becomes idle when the test says so.
pub(crate) struct FakeChild {
    delivered: Mutex<Vec<String>>,
    /// `None` when its session is gone.
    run_link: Mutex<Option<RunLink>>,
}

impl FakeChild {
    pub(crate) fn delivered(&self) -> Vec<String> {
        self.delivered.lock().clone()
    }

    /// Waits for the first message that the child received.
    pub(crate) async fn heard_first(&self) -> String {
        loop {
            if let Some(first) = self.delivered().into_iter().next() {
                return first;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn lease(&self) -> Arc<super::SlotLease> {
        let link = self.run_link.lock();
        link.as_ref().unwrap().lease().clone()
    }

    /// Answers and becomes idle.
    pub(crate) fn answer(&self, text: &str) {
        self.rest(LoopOutcome::Done, text);
    }

    fn rest(&self, outcome: LoopOutcome, text: &str) {
        self.report(ChildStatus::Rests(Arc::new(ChildResult {
            outcome: Some(outcome),
            cut_calls: None,
            response: Some(text.to_owned()),
            unfinished: None,
            error: None,
            limited: false,
            usage: WorkUsage::default(),
        })));
    }

    pub(crate) fn report(&self, status: ChildStatus) {
        if let Some(link) = self.run_link.lock().as_ref() {
            link.report(status);
        }
    }

    /// Ends the session without a last report.
    pub(crate) fn vanish(&self) {
        self.run_link.lock().take();
    }
}

/// A child as the runs hold it.
struct Held(Arc<FakeChild>);

impl Child for Held {
    fn is_new(&self) -> bool {
        false
    }

    fn say(&self, message: String) -> BoxFuture<'static, Result<(), ChildError>> {
        self.0.report(ChildStatus::AtWork);
        self.0.delivered.lock().push(message);
        std::future::ready(Ok(())).boxed()
    }

    fn abort(&self) -> BoxFuture<'static, ()> {
        self.0.rest(LoopOutcome::Aborted, "half");
        std::future::ready(()).boxed()
    }

    fn release(&self) -> BoxFuture<'static, Option<Vec<Task>>> {
        std::future::ready(Some(Vec::new())).boxed()
    }

    fn has_news(&self) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }

    fn wake(&self) -> BoxFuture<'static, Result<(), ChildError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn command_end(&self, _id: TaskId) -> BoxFuture<'static, Option<CommandEnding>> {
        std::future::ready(None).boxed()
    }

    fn command_output(&self, _: TaskId) -> BoxFuture<'static, String> {
        async { String::new() }.boxed()
    }

    fn stop_command(&self, _id: TaskId) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }

    fn stop(&self) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

impl Home {
    pub(crate) fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self {
            told: watch::Sender::default(),
            children: watch::Sender::default(),
            slots: Slots::new(slots),
            loses: Mutex::default(),
            looks: Mutex::default(),
        })
    }

    pub(crate) fn agents(self: &Arc<Self>) -> Subagents {
        let folder = std::env::temp_dir().join("loopd-no-such-folder");
        let processes = Processes::new(&folder, KeepAlive::default());
        let setup = SubagentsSetup {
            session: SessionId::from("session"),
            log: Arc::new(Log(self.clone())),
            parent: Arc::new(House(self.clone())),
            worktrees: Worktrees::new(&folder, processes),
            folder,
            keep_alive: KeepAlive::default(),
            multi_turn: true,
        };
        Subagents::new(setup, CancellationToken::new())
    }

    /// Makes the start of the next child fail.
    pub(crate) fn lose_the_next_child(&self) {
        *self.loses.lock() = true;
    }

    /// Returns how many snapshots of the session were taken.
    pub(crate) fn looks(&self) -> usize {
        *self.looks.lock()
    }

    /// Waits until this many children were made; returns the last of them.
    pub(crate) async fn child(&self, count: usize) -> Arc<FakeChild> {
        let mut children = self.children.subscribe();
        let made = children.wait_for(|made| made.len() >= count).await.unwrap();
        made.get(count - 1).unwrap().clone()
    }

    /// Waits until a command was recorded whose debug text begins with `what`.
    pub(crate) async fn told(&self, what: &str) -> String {
        let mut told = self.told.subscribe();
        let has = |all: &Vec<String>| all.iter().any(|line| line.starts_with(what));
        let all = told.wait_for(has).await.unwrap();
        all.iter()
            .find(|line| line.starts_with(what))
            .unwrap()
            .clone()
    }

    fn spawn(&self, run_link: RunLink) -> Arc<dyn Child> {
        let child = Arc::new(FakeChild {
            delivered: Mutex::default(),
            run_link: Mutex::new(Some(run_link)),
        });
        self.children.send_modify(|all| all.push(child.clone()));
        Arc::new(Held(child))
    }
}

struct Log(Arc<Home>);

impl TaskLog for Log {
    fn record(&self, command: Command) -> BoxFuture<'static, Result<(), TaskLogError>> {
        self.0
            .told
            .send_modify(|all| all.push(format!("{command:?}")));
        std::future::ready(Ok(())).boxed()
    }
}

struct House(Arc<Home>);

impl ParentSession for House {
    fn look(&self, _: AskedBy) -> BoxFuture<'_, Result<Arc<dyn ChildSpawner>, ParentEnded>> {
        *self.0.looks.lock() += 1;
        let spawner: Arc<dyn ChildSpawner> = Arc::new(FakeSpawner {
            home: self.0.clone(),
            parent: ParentSnapshot {
                identity: None,
                cwd: "/".to_owned(),
                model: Some("model".to_owned()),
                reasoning_effort: None,
                taken: BTreeSet::new(),
                planning: loopd_kernel::policy::planning::Planning::No,
                denied: Vec::new(),
                lasting_limits: ToolLimits::default(),
                limits_of_run: ToolLimits::default(),
                subagents: None,
                settings: AgentSettings::default(),
                roster: Arc::new(load(&RosterInput::default())),
                slots: self.0.slots.clone(),
                user_home: None,
                has_memory: true,
            },
        });
        std::future::ready(Ok(spawner)).boxed()
    }

    fn tasks(&self) -> BoxFuture<'_, Result<Vec<Task>, ParentEnded>> {
        std::future::ready(Ok(Vec::new())).boxed()
    }
}

struct FakeSpawner {
    home: Arc<Home>,
    parent: ParentSnapshot,
}

impl ReachableModels for FakeSpawner {
    fn default_model(&self) -> BoxFuture<'_, Result<String, ModelFailure>> {
        std::future::ready(Ok("model".to_owned())).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        std::future::ready(Vec::new()).boxed()
    }
}

impl ChildSpawner for FakeSpawner {
    fn parent(&self) -> &ParentSnapshot {
        &self.parent
    }

    fn models(&self) -> &dyn ReachableModels {
        self
    }

    fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn spawn(
        &self,
        _spec: SpawnSpec,
        run_link: RunLink,
    ) -> BoxFuture<'_, Result<Arc<dyn Child>, ChildError>> {
        if std::mem::take(&mut *self.home.loses.lock()) {
            return std::future::ready(Err(ChildError::Exists)).boxed();
        }
        std::future::ready(Ok(self.home.spawn(run_link))).boxed()
    }

    fn reopen(
        &self,
        _work: &AgentWork,
        run_link: RunLink,
    ) -> BoxFuture<'_, Result<Arc<dyn Child>, ChildError>> {
        std::future::ready(Ok(self.home.spawn(run_link))).boxed()
    }
}

/// Makes an order for a sub-agent of this name.
pub(crate) fn order(name: &str, execution: Execution) -> SubagentOrder {
    SubagentOrder {
        agent_type: None,
        name: Some(name.to_owned()),
        description: "a test".to_owned(),
        prompt: format!("work, {name}"),
        model: None,
        execution: Some(execution),
        isolation: None,
        cwd: None,
        call: None,
        todo: None,
        tools: None,
        answers_person: false,
        command: None,
        skill: None,
    }
}
