//! Subagents without sessions: children that do what a test tells them.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_proto::event::Ephemeral;
use loopd_proto::event::agent::Profile;
use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::session::Idle;
use loopd_proto::event::task::{AgentWork, Execution, WorkUsage, WorktreeWork};
use loopd_proto::id::SessionId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::child::{
    Child, ChildResult, ChildSpawner, ChildStatus, RunLink, SpawnSpec, SubagentPlan, WorktreeEnd,
};
use super::slots::Slots;
use super::{SubagentOrder, Subagents, SubagentsSetup};
use loopd_exec::keep_alive::KeepAlive;
use loopd_exec::shells::TaskLog;
use loopd_kernel::command::Command;
use loopd_kernel::tasks::Task;

/// What the log was told, and every child that was made, in order.
pub(crate) struct Home {
    pub(crate) told: watch::Sender<Vec<String>>,
    pub(crate) children: watch::Sender<Vec<Arc<FakeChild>>>,
    slots: Slots,
    loses: Mutex<bool>,
}

/// A child that rests when the test says so.
pub(crate) struct FakeChild {
    delivered: Mutex<Vec<String>>,
    result: Mutex<Option<ChildResult>>,
    run_link: RunLink,
}

impl FakeChild {
    pub(crate) fn delivered(&self) -> Vec<String> {
        self.delivered.lock().unwrap().clone()
    }

    /// Waits until it was spoken to.
    pub(crate) async fn heard_first(&self) -> String {
        loop {
            if let Some(first) = self.delivered().into_iter().next() {
                return first;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn lease(&self) -> Arc<super::SlotLease> {
        self.run_link.lease.clone()
    }

    /// Answers and rests.
    pub(crate) fn answer(&self, text: &str) {
        self.rest(LoopOutcome::Done, Some(text));
    }

    fn rest(&self, outcome: LoopOutcome, text: Option<&str>) {
        *self.result.lock().unwrap() = Some(ChildResult {
            outcome: Some(outcome),
            response: text.map(str::to_owned),
            error: None,
            usage: WorkUsage::default(),
        });
        self.run_link.watcher.told(&Ephemeral::SessionIdle(Idle {
            aborted: None,
            mode: None,
        }));
    }
}

/// A child as the runs hold it.
struct Held(Arc<FakeChild>);

impl Child for Held {
    fn is_new(&self) -> bool {
        false
    }

    fn say(&self, message: String) -> BoxFuture<'static, Result<(), String>> {
        *self.0.result.lock().unwrap() = None;
        self.0.delivered.lock().unwrap().push(message);
        std::future::ready(Ok(())).boxed()
    }

    fn abort(&self) -> BoxFuture<'static, ()> {
        self.0.rest(LoopOutcome::Aborted, Some("half"));
        std::future::ready(()).boxed()
    }

    fn status(&self) -> BoxFuture<'static, Option<ChildStatus>> {
        let result = self.0.result.lock().unwrap().clone();
        let status = result.map_or(ChildStatus::AtWork, |result| {
            ChildStatus::Rests(Box::new(result))
        });
        std::future::ready(Some(status)).boxed()
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
        })
    }

    pub(crate) fn agents(self: &Arc<Self>) -> Subagents {
        let setup = SubagentsSetup {
            session: SessionId::from("session"),
            folder: std::env::temp_dir().join("loopd-no-such-folder"),
            log: Arc::new(Log(self.clone())),
            spawner: Arc::new(House(self.clone())),
            keep_alive: KeepAlive::default(),
        };
        Subagents::new(setup, CancellationToken::new())
    }

    /// The next child that is to be made cannot be.
    pub(crate) fn lose_the_next_child(&self) {
        *self.loses.lock().unwrap() = true;
    }

    /// Waits until so many children were made; the last of them.
    pub(crate) async fn child(&self, count: usize) -> Arc<FakeChild> {
        let mut children = self.children.subscribe();
        let made = children.wait_for(|made| made.len() >= count).await.unwrap();
        made.get(count - 1).unwrap().clone()
    }

    /// Waits until the log was told something that begins like this.
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
            result: Mutex::default(),
            run_link,
        });
        self.children.send_modify(|all| all.push(child.clone()));
        Arc::new(Held(child))
    }
}

struct Log(Arc<Home>);

impl TaskLog for Log {
    fn record(&self, command: Command) -> BoxFuture<'static, Result<(), String>> {
        self.0
            .told
            .send_modify(|all| all.push(format!("{command:?}")));
        std::future::ready(Ok(())).boxed()
    }
}

struct House(Arc<Home>);

impl ChildSpawner for House {
    fn plan(&self, order: SubagentOrder) -> BoxFuture<'static, Result<SubagentPlan, String>> {
        let plan = SubagentPlan {
            profile: Profile {
                agent_type: order.agent_type.unwrap_or_else(|| "general".to_owned()),
                display_name: order.name.unwrap_or_else(|| "agent".to_owned()),
                ..Profile::default()
            },
            execution: order.execution.unwrap_or(Execution::Sync),
            model: None,
            reasoning_effort: None,
            isolation: None,
            cwd: PathBuf::from("/"),
            preface: None,
            prefix: None,
            taken: BTreeSet::new(),
            note: None,
        };
        std::future::ready(Ok(plan)).boxed()
    }

    fn tasks(&self) -> BoxFuture<'static, Result<Vec<Task>, String>> {
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn make_worktree(
        &self,
        _session: &SessionId,
        _plan: &SubagentPlan,
    ) -> BoxFuture<'static, Result<WorktreeWork, String>> {
        std::future::ready(Err("there are none here".to_owned())).boxed()
    }

    fn spawn(
        &self,
        _birth: SpawnSpec,
        run_link: RunLink,
    ) -> BoxFuture<'static, Result<Arc<dyn Child>, String>> {
        if std::mem::take(&mut *self.0.loses.lock().unwrap()) {
            return std::future::ready(Err("it is lost".to_owned())).boxed();
        }
        std::future::ready(Ok(self.0.spawn(run_link))).boxed()
    }

    fn reopen(
        &self,
        _work: &AgentWork,
        run_link: RunLink,
    ) -> BoxFuture<'static, Result<Arc<dyn Child>, String>> {
        std::future::ready(Ok(self.0.spawn(run_link))).boxed()
    }

    fn terms(&self) -> BoxFuture<'static, Result<(Slots, bool), String>> {
        std::future::ready(Ok((self.0.slots.clone(), true))).boxed()
    }

    fn settle_worktree(&self, _worktree: &WorktreeWork) -> BoxFuture<'static, WorktreeEnd> {
        std::future::ready(WorktreeEnd::Removed).boxed()
    }
}

/// An order for an agent of this name.
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
    }
}
