//! Agents without sessions: children that do what a test tells them.

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

use super::child::{Birth, Child, Nursery, Plan, Rested, Standing, Tie, WorktreeEnd};
use super::slots::Slots;
use super::{Agents, Order, Setup};
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
    heard: Mutex<Vec<String>>,
    rested: Mutex<Option<Rested>>,
    tie: Tie,
}

impl FakeChild {
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits until it was spoken to.
    pub(crate) async fn heard_first(&self) -> String {
        loop {
            if let Some(first) = self.heard().into_iter().next() {
                return first;
            }
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn seat(&self) -> Arc<super::Seat> {
        self.tie.seat.clone()
    }

    /// Answers and rests.
    pub(crate) fn answer(&self, text: &str) {
        self.rest(LoopOutcome::Done, Some(text));
    }

    fn rest(&self, outcome: LoopOutcome, text: Option<&str>) {
        *self.rested.lock().unwrap() = Some(Rested {
            outcome: Some(outcome),
            response: text.map(str::to_owned),
            error: None,
            usage: WorkUsage::default(),
        });
        self.tie.watcher.told(&Ephemeral::SessionIdle(Idle {
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
        *self.0.rested.lock().unwrap() = None;
        self.0.heard.lock().unwrap().push(message);
        std::future::ready(Ok(())).boxed()
    }

    fn abort(&self) -> BoxFuture<'static, ()> {
        self.0.rest(LoopOutcome::Aborted, Some("half"));
        std::future::ready(()).boxed()
    }

    fn standing(&self) -> BoxFuture<'static, Option<Standing>> {
        let rested = self.0.rested.lock().unwrap().clone();
        let standing = rested.map_or(Standing::AtWork, |rested| Standing::Rests(Box::new(rested)));
        std::future::ready(Some(standing)).boxed()
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

    pub(crate) fn agents(self: &Arc<Self>) -> Agents {
        let setup = Setup {
            session: SessionId::from("session"),
            folder: std::env::temp_dir().join("loopd-no-such-folder"),
            log: Arc::new(Log(self.clone())),
            nursery: Arc::new(House(self.clone())),
            keep_alive: KeepAlive::default(),
        };
        Agents::new(setup, CancellationToken::new())
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

    fn bear(&self, tie: Tie) -> Arc<dyn Child> {
        let child = Arc::new(FakeChild {
            heard: Mutex::default(),
            rested: Mutex::default(),
            tie,
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

impl Nursery for House {
    fn plan(&self, order: Order) -> BoxFuture<'static, Result<Plan, String>> {
        let plan = Plan {
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
        _plan: &Plan,
    ) -> BoxFuture<'static, Result<WorktreeWork, String>> {
        std::future::ready(Err("there are none here".to_owned())).boxed()
    }

    fn bear(&self, _birth: Birth, tie: Tie) -> BoxFuture<'static, Result<Arc<dyn Child>, String>> {
        if std::mem::take(&mut *self.0.loses.lock().unwrap()) {
            return std::future::ready(Err("it is lost".to_owned())).boxed();
        }
        std::future::ready(Ok(self.0.bear(tie))).boxed()
    }

    fn reopen(
        &self,
        _work: &AgentWork,
        tie: Tie,
    ) -> BoxFuture<'static, Result<Arc<dyn Child>, String>> {
        std::future::ready(Ok(self.0.bear(tie))).boxed()
    }

    fn terms(&self) -> BoxFuture<'static, Result<(Slots, bool), String>> {
        std::future::ready(Ok((self.0.slots.clone(), true))).boxed()
    }

    fn settle_worktree(&self, _worktree: &WorktreeWork) -> BoxFuture<'static, WorktreeEnd> {
        std::future::ready(WorktreeEnd::Removed).boxed()
    }
}

/// An order for an agent of this name.
pub(crate) fn order(name: &str, execution: Execution) -> Order {
    Order {
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
