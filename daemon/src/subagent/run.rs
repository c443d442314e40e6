//! One run: one prompt to one agent, from its slot to its rest.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::task::{AgentWork, Execution, TaskOutcome, WorkUsage};
use loopd_proto::id::TaskId;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::child::{Child, ChildResult, ChildStatus, RunLink, SpawnSpec, WorktreeEnd};
use super::slots::SlotLease;
use super::watcher::{RunProgress, Watcher};
use super::{CancelledBy, Subagents, output};
use loopd_kernel::command::{Command, TaskAnswer, TaskEnd};

/// How long a cancelled child may take to say how it ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How much of an answer the parent's log keeps; the whole is in the agent's own.
const LONGEST_ANSWER: usize = 64 * 1024;

/// How many messages may wait for an agent that is at work.
const MOST_MESSAGES: usize = 64;

/// Whether the agent's session is new.
pub(super) enum RunStart {
    New(Box<SpawnSpec>),
    Again,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnding {
    pub end: RunEnd,
    /// What the agent answered, or the last it said.
    pub response: Option<String>,
    pub usage: WorkUsage,
    /// What became of the copy it worked in.
    pub worktree: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    Answered,
    Failed(String),
    Cancelled,
}

/// One prompt to one agent.
pub struct SubagentRun {
    pub id: TaskId,
    inner: Mutex<SubagentsInner>,
    cancel: CancellationToken,
    ending: watch::Sender<Option<RunEnding>>,
    promoted: watch::Sender<bool>,
    posted: Notify,
    watcher: Mutex<Option<Arc<Watcher>>>,
}

struct SubagentsInner {
    execution: Execution,
    /// Messages for the agent; none once it takes no more.
    inbox: Option<Vec<String>>,
    cancelled: Option<CancelledBy>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Posted {
    Taken,
    Full {
        limit: usize,
    },
    /// The run takes no more.
    Closed,
}

impl SubagentRun {
    pub(super) fn new(id: TaskId, execution: Execution) -> Self {
        Self {
            id,
            inner: Mutex::new(SubagentsInner {
                execution,
                inbox: Some(Vec::new()),
                cancelled: None,
            }),
            cancel: CancellationToken::new(),
            ending: watch::Sender::new(None),
            promoted: watch::Sender::new(false),
            posted: Notify::new(),
            watcher: Mutex::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, SubagentsInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the waiting; false when nobody waits or the agent is done.
    pub(super) fn release(&self) -> bool {
        let mut inner = self.inner();
        if inner.execution == Execution::Background || inner.inbox.is_none() {
            return false;
        }
        inner.execution = Execution::Background;
        true
    }

    pub(super) fn say_promoted(&self) {
        self.promoted.send_replace(true);
    }

    /// Resolves when somebody moved the agent to the background.
    pub async fn promoted(&self) {
        let mut promoted = self.promoted.subscribe();
        // The sender lives as long as the run.
        promoted.wait_for(|promoted| *promoted).await.ok();
    }

    pub fn execution(&self) -> Execution {
        self.inner().execution
    }

    pub(super) fn cancel(&self, by: CancelledBy) {
        self.inner().cancelled.get_or_insert(by);
        self.cancel.cancel();
    }

    /// Resolves when the run is over and on record.
    pub async fn end(&self) -> RunEnding {
        let mut ending = self.ending.subscribe();
        let ended = ending.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|ending| ending.clone());
        ended.unwrap_or(RunEnding {
            end: RunEnd::Cancelled,
            response: None,
            usage: WorkUsage::default(),
            worktree: None,
        })
    }

    /// Leaves a message for the agent.
    pub(super) fn post(&self, message: String) -> Posted {
        let mut inner = self.inner();
        let Some(inbox) = inner.inbox.as_mut() else {
            return Posted::Closed;
        };
        if inbox.len() >= MOST_MESSAGES {
            return Posted::Full {
                limit: MOST_MESSAGES,
            };
        }
        inbox.push(message);
        drop(inner);
        self.posted.notify_one();
        Posted::Taken
    }

    /// The run will not take place.
    pub(super) fn give_up(&self) {
        self.inner().inbox = None;
        self.ending.send_replace(Some(cancelled()));
    }

    fn take_posted(&self) -> Vec<String> {
        let mut inner = self.inner();
        inner.inbox.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes no more messages, unless some wait.
    fn close_inbox(&self) -> Result<(), Vec<String>> {
        let mut inner = self.inner();
        match inner.inbox.take() {
            Some(waiting) if !waiting.is_empty() => {
                inner.inbox = Some(Vec::new());
                Err(waiting)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The run is over: takes no more messages, and gives back those that were never heard.
    fn finish(&self) -> (Execution, Vec<String>) {
        let mut inner = self.inner();
        (inner.execution, inner.inbox.take().unwrap_or_default())
    }

    /// How the agent gets on.
    pub fn progress(&self) -> RunProgress {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let watcher = watcher.clone();
        watcher
            .map(|watcher| watcher.progress())
            .unwrap_or_default()
    }
}

impl Subagents {
    /// Lets the agent work until it rests, and puts on record what came of it.
    pub(super) async fn drive(
        &self,
        run: Arc<SubagentRun>,
        work: AgentWork,
        begin: RunStart,
        prompt: String,
        file: PathBuf,
    ) {
        let (watcher, lines) = Watcher::new();
        let watcher = Arc::new(watcher);
        *run.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher.clone());
        let over = CancellationToken::new();
        let writing = self
            .0
            .tasks
            .spawn(output::write(file, watcher.clone(), lines, over.clone()));
        let (ending, multi_turn) = self.work(&run, &work, begin, prompt, &watcher).await;
        over.cancel();
        if writing.await.is_err() {
            tracing::error!(task = %run.id, "the output of an agent could not be written");
        }
        let (execution, unheard) = run.finish();
        self.put_on_record(&run, execution, &ending, multi_turn)
            .await;
        self.table().runs.remove(&run.id);
        let failed = matches!(ending.end, RunEnd::Failed(_));
        run.ending.send_replace(Some(ending));
        // What came too late for a run that failed is for the next one; who was stopped needs none.
        for message in unheard.into_iter().filter(|_| failed) {
            if let Err(error) = self.write(&run.id, &work, message).await {
                tracing::warn!(task = %run.id, %error, "a message to an agent was not delivered");
            }
        }
    }

    async fn work(
        &self,
        run: &SubagentRun,
        work: &AgentWork,
        begin: RunStart,
        prompt: String,
        watcher: &Arc<Watcher>,
    ) -> (RunEnding, bool) {
        let spawner = &self.0.setup.spawner;
        let (slots, multi_turn) = match spawner.terms().await {
            Ok(terms) => terms,
            Err(why) => return (failed(why), true),
        };
        watcher.queues(self.0.clock.now());
        let lease = tokio::select! {
            biased;
            () = run.cancel.cancelled() => return (cancelled(), multi_turn),
            lease = SlotLease::take(slots) => lease,
        };
        let run_link = RunLink {
            watcher: watcher.clone(),
            lease: lease.clone(),
        };
        let (born, first) = match begin {
            RunStart::New(spec) => {
                let preface = spec.plan.preface.clone();
                (spawner.spawn(*spec, run_link).await, preface)
            }
            // One that was interrupted before it was told anything is told everything now.
            RunStart::Again => {
                let child = spawner.reopen(work, run_link).await;
                let is_new = child.as_ref().is_ok_and(|child| child.is_new());
                (child, is_new.then(|| work.prompt.clone()))
            }
        };
        let child = match born {
            Ok(child) => child,
            Err(why) => {
                lease.leave();
                return (failed(why), multi_turn);
            }
        };
        let prompt = match first {
            Some(first) => format!("{first}\n\n{prompt}"),
            None => prompt,
        };
        let result = self.until_rest(run, child.as_ref(), prompt, watcher).await;
        child.stop().await;
        lease.leave();
        let mut ending = judged(result, run.cancel.is_cancelled());
        if let Some(worktree) = &work.worktree {
            ending.worktree = match spawner.settle_worktree(worktree).await {
                WorktreeEnd::Removed => None,
                WorktreeEnd::Kept(text) | WorktreeEnd::Failed(text) => Some(text),
            };
        }
        (ending, multi_turn)
    }

    /// Speaks to the child and waits until it rests and nobody has anything more to say to it.
    async fn until_rest(
        &self,
        run: &SubagentRun,
        child: &dyn Child,
        prompt: String,
        watcher: &Watcher,
    ) -> Result<Option<ChildResult>, String> {
        let mut rests = watcher.rests();
        child.say(prompt).await?;
        loop {
            let cancelled = tokio::select! {
                biased;
                () = run.cancel.cancelled() => true,
                result = rests.changed() => {
                    if result.is_err() {
                        return Ok(None);
                    }
                    false
                }
                () = run.posted.notified() => {
                    for message in run.take_posted() {
                        child.say(message).await?;
                    }
                    continue;
                }
            };
            if cancelled {
                child.abort().await;
                return Ok(self.last_words(child, rests).await);
            }
            match child.status().await {
                Some(ChildStatus::AtWork) => {}
                None => return Ok(None),
                Some(ChildStatus::Rests(result)) => match run.close_inbox() {
                    Ok(()) => return Ok(Some(*result)),
                    Err(waiting) => {
                        for message in waiting {
                            child.say(message).await?;
                        }
                    }
                },
            }
        }
    }

    async fn last_words(
        &self,
        child: &dyn Child,
        mut rests: watch::Receiver<u64>,
    ) -> Option<ChildResult> {
        let resting = async {
            loop {
                match child.status().await? {
                    ChildStatus::Rests(result) => return Some(*result),
                    ChildStatus::AtWork => rests.changed().await.ok()?,
                }
            }
        };
        tokio::time::timeout(LAST_WORDS, resting).await.ok()?
    }

    async fn put_on_record(
        &self,
        run: &SubagentRun,
        execution: Execution,
        ending: &RunEnding,
        multi_turn: bool,
    ) {
        let by = run.inner().cancelled;
        let waited_for = execution == Execution::Sync;
        // Whoever waits for it or stops it hears of it by the result of the call, if that gets so far.
        let delivered = by == Some(CancelledBy::Abort);
        let result = ending
            .response
            .as_deref()
            .map(|text| kept(text, ending.worktree.as_deref()));
        let id = run.id.clone();
        let usage = Some(ending.usage.clone());
        let end = |outcome, reason: Option<String>| TaskEnd {
            outcome,
            exit_code: None,
            reason,
            result: result.clone(),
            usage: usage.clone(),
            delivered,
        };
        let command = match &ending.end {
            RunEnd::Answered if multi_turn && !waited_for => Command::TaskAnswered {
                id,
                answer: TaskAnswer {
                    response: result.clone().unwrap_or_default(),
                    usage: ending.usage.clone(),
                    delivered,
                },
            },
            RunEnd::Answered => Command::TaskEnded {
                id,
                end: end(TaskOutcome::Completed, None),
            },
            RunEnd::Failed(why) => Command::TaskEnded {
                id,
                end: end(TaskOutcome::Failed, Some(why.clone())),
            },
            RunEnd::Cancelled => Command::TaskEnded {
                id,
                end: end(TaskOutcome::Cancelled, by.map(|by| by.reason().to_owned())),
            },
        };
        self.tell(command).await;
    }
}

/// An answer as the parent's log keeps it.
fn kept(text: &str, worktree: Option<&str>) -> String {
    let ends = (0..=LONGEST_ANSWER.min(text.len())).rev();
    let shown = ends.into_iter().find_map(|end| text.get(..end));
    let mut kept = shown.unwrap_or_default().to_owned();
    if kept.len() < text.len() {
        kept.push_str("\n[cut here; the output file has the rest]");
    }
    if let Some(worktree) = worktree {
        kept.push_str("\n\n");
        kept.push_str(worktree);
    }
    kept
}

fn failed(why: String) -> RunEnding {
    RunEnding {
        end: RunEnd::Failed(why),
        ..cancelled()
    }
}

fn cancelled() -> RunEnding {
    RunEnding {
        end: RunEnd::Cancelled,
        response: None,
        usage: WorkUsage::default(),
        worktree: None,
    }
}

fn judged(result: Result<Option<ChildResult>, String>, was_cancelled: bool) -> RunEnding {
    let result = match result {
        Ok(result) => result,
        Err(why) => return failed(why),
    };
    let Some(result) = result else {
        return if was_cancelled {
            cancelled()
        } else {
            failed("its session ended unexpectedly".to_owned())
        };
    };
    let end = match (result.outcome, result.error) {
        _ if was_cancelled => RunEnd::Cancelled,
        (Some(LoopOutcome::Done), _) => RunEnd::Answered,
        (_, Some(error)) => RunEnd::Failed(error),
        (Some(LoopOutcome::Aborted | LoopOutcome::Interrupted), None) => {
            RunEnd::Failed("it was interrupted".to_owned())
        }
        (Some(LoopOutcome::Failed) | None, None) => RunEnd::Failed("it failed".to_owned()),
    };
    RunEnding {
        end,
        response: result.response,
        usage: result.usage,
        worktree: None,
    }
}
