//! Drives a run: takes a slot, lets the child work until it is idle, records the result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use loopd_proto::event::fact::LoopOutcome;
use loopd_proto::event::task::{AgentWork, Execution, TaskOutcome};
use tokio_util::sync::CancellationToken;

use super::{CancelledBy, FirstStep, RunEnd, RunEnding, RunStart, SubagentRun};
use crate::subagent::child::{Child, ChildResult, ChildStatus, RunLink, StatusUpdates};
use crate::subagent::definitions::AskedBy;
use crate::subagent::error::{ChildError, RunFailure};
use crate::subagent::order::SpawnSpec;
use crate::subagent::parent::ChildSpawner;
use crate::subagent::slots::{SlotLease, Slots};
use crate::subagent::watcher::Watcher;
use crate::subagent::worktree::{self, WorktreeEnd};
use crate::subagent::{Subagents, output};
use loopd_kernel::command::{Command, TaskAnswer, TaskEnd};
use loopd_kernel::tasks::Task;

/// How long a cancelled child may take to report its result.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How many bytes of an answer the parent's log keeps; the sub-agent's own log has all of it.
const LONGEST_ANSWER: usize = 64 * 1024;

impl Subagents {
    /// Lets the sub-agent work until it is idle, and records the result.
    pub(in crate::subagent) async fn drive(
        &self,
        run: Arc<SubagentRun>,
        work: AgentWork,
        begin: RunStart,
        prompt: String,
        file: PathBuf,
    ) {
        let (watcher, lines) = Watcher::new();
        let watcher = Arc::new(watcher);
        *run.watcher.lock() = Some(watcher.clone());
        let over = CancellationToken::new();
        let writing = self
            .0
            .tasks
            .spawn(output::write(file, watcher.clone(), lines, over.clone()));
        let started_at = self.0.clock.now();
        let (mut ending, kept) = self.work(&run, &work, begin, prompt, &watcher).await;
        let took = self.0.clock.now().0.saturating_sub(started_at.0);
        ending.duration_ms = u64::try_from(took).unwrap_or(0);
        over.cancel();
        if writing.await.is_err() {
            tracing::error!(task = %run.id, "the output of an agent could not be written");
        }
        let (execution, unheard) = run.finish();
        self.put_on_record(&run, execution, &ending).await;
        if let Some((child, commands)) = kept {
            ending.left = self.keep(&run.id, &work, &child, commands).await;
        }
        self.table().runs.remove(&run.id);
        let failed = matches!(ending.end, RunEnd::Failed(_));
        run.ending.send_replace(Some(ending));
        // Undelivered messages of a failed run go to the next run. A cancelled one gets none.
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
    ) -> (RunEnding, Option<(Arc<dyn Child>, Vec<Task>)>) {
        let step = match &begin {
            RunStart::New(..) | RunStart::Again => None,
            RunStart::Woken => Some(FirstStep::Wake),
            RunStart::Rejoined => Some(FirstStep::Wait),
        };
        let (spec, spawner) = match begin {
            RunStart::New(spec, spawner) => (Some(spec), spawner),
            RunStart::Again | RunStart::Woken | RunStart::Rejoined => {
                match self.0.setup.parent.look(AskedBy::Model).await {
                    Ok(spawner) => (None, spawner),
                    Err(ended) => return (RunEnding::failed(ChildError::Parent(ended)), None),
                }
            }
        };
        let mut kept = None;
        if let (None, Some(copy)) = (&spec, &work.worktree) {
            let env = spawner.environment();
            let worktrees = &self.0.setup.worktrees;
            if let Err(error) = worktree::restore(worktrees, &work.session_id, copy, &env).await {
                return (RunEnding::failed(error), None);
            }
        }
        let slots = spawner.parent().slots.clone();
        let mut ending = tokio::select! {
            biased;
            () = run.cancel.cancelled() => RunEnding::cancelled(),
            lease = self.slot(slots, watcher) => {
                let (link, updates) = RunLink::new(watcher.clone(), lease.clone());
                let child = match spec {
                    Some(spec) => first_words(spawner.as_ref(), *spec, link, prompt).await,
                    None => more_words(spawner.as_ref(), work, link, prompt).await,
                };
                let result = match child {
                    Ok((child, prompt)) => {
                        let step = step.unwrap_or(FirstStep::Say(prompt));
                        let rested = until_rest(run, child.as_ref(), step, updates).await;
                        let (result, left) = match rested {
                            Ok((result, left)) => (Ok(result), left),
                            Err(error) => (Err(error), Vec::new()),
                        };
                        if run.is_closed() {
                            child.close().await;
                        } else if left.is_empty() && (run.cancel.is_cancelled() || !self.has_left(&run.id)) {
                            child.stop().await;
                        } else {
                            kept = Some((child, left));
                        }
                        result
                    }
                    Err(error) => Err(error),
                };
                lease.leave();
                let ending = judged(result, run.cancel.is_cancelled());
                match &work.todo {
                    Some(_) => judged_as_worker(ending, watcher),
                    None => ending,
                }
            }
        };
        if let Some(copy) = &work.worktree {
            let env = spawner.environment();
            ending.worktree = match worktree::settle(&self.0.setup.worktrees, copy, &env).await {
                WorktreeEnd::Removed => None,
                WorktreeEnd::Kept(text) | WorktreeEnd::Failed(text) => Some(text),
            };
        }
        (ending, kept)
    }

    /// Takes a slot, or waits in the queue for one.
    async fn slot(&self, slots: Slots, watcher: &Watcher) -> Arc<SlotLease> {
        if let Some(lease) = SlotLease::try_take(&slots) {
            return lease;
        }
        watcher.queues(self.0.clock.now());
        let lease = SlotLease::take(slots).await;
        watcher.begins(self.0.clock.now());
        lease
    }

    async fn put_on_record(&self, run: &SubagentRun, execution: Execution, ending: &RunEnding) {
        let multi_turn = self.0.setup.multi_turn;
        let by = run.inner.lock().cancelled;
        let waited_for = execution == Execution::Sync;
        // A caller that waits for the run or cancels it learns about its end from the result of its
        // tool call, which marks the end as delivered. After an abort it is marked here.
        let delivered = by == Some(CancelledBy::Abort);
        let result = ending
            .response
            .as_deref()
            .map(|text| kept(text, ending.worktree.as_deref()));
        let id = run.id.clone();
        let usage = Some(ending.usage.clone());
        let end = |outcome, reason: Option<String>| TaskEnd {
            reason,
            result: result.clone(),
            usage: usage.clone(),
            delivered,
            ..TaskEnd::new(outcome)
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
                end: end(TaskOutcome::Failed, Some(why.to_string())),
            },
            RunEnd::Cancelled => Command::TaskEnded {
                id,
                end: end(TaskOutcome::Cancelled, by.map(|by| by.reason().to_owned())),
            },
        };
        self.tell(command).await;
    }
}

/// Shortens an answer to the form that the parent's log keeps.
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

/// Makes the child's session; returns it with its first prompt.
async fn first_words(
    spawner: &dyn ChildSpawner,
    spec: SpawnSpec,
    link: RunLink,
    prompt: String,
) -> Result<(Arc<dyn Child>, String), ChildError> {
    let prompt = match &spec.plan.preface {
        Some(preface) => format!("{preface}\n\n{prompt}"),
        None => prompt,
    };
    Ok((spawner.spawn(spec, link).await?, prompt))
}

/// Reopens the child's session; returns it with its next prompt.
async fn more_words(
    spawner: &dyn ChildSpawner,
    work: &AgentWork,
    link: RunLink,
    prompt: String,
) -> Result<(Arc<dyn Child>, String), ChildError> {
    let child = spawner.reopen(work, link).await?;
    // A child that was interrupted before its first message gets the original prompt as well.
    let prompt = if child.is_new() {
        format!("{}\n\n{prompt}", work.prompt)
    } else {
        prompt
    };
    Ok((child, prompt))
}

/// Takes the first step with the child, and waits until it is idle and no message
/// waits for it. Returns its result and the commands that it leaves running. There is no result if
/// the run is cancelled and the child does not report one in time.
async fn until_rest(
    run: &SubagentRun,
    child: &dyn Child,
    step: FirstStep,
    mut updates: StatusUpdates,
) -> Result<(Option<Arc<ChildResult>>, Vec<Task>), ChildError> {
    match step {
        FirstStep::Say(prompt) => child.say(prompt).await?,
        FirstStep::Wake => child.wake().await?,
        FirstStep::Wait => {}
    }
    loop {
        match updates.now() {
            ChildStatus::AtWork => {}
            ChildStatus::Gone(error) => return Err(error),
            ChildStatus::Rests(result) => match run.close_inbox() {
                Ok(()) => {
                    if let Some(left) = child.release().await {
                        return Ok((Some(result), left));
                    }
                    run.reopen_inbox();
                    continue;
                }
                Err(waiting) => {
                    for message in waiting {
                        child.say(message).await?;
                    }
                    continue;
                }
            },
        }
        tokio::select! {
            biased;
            () = run.cancel.cancelled() => {
                if run.is_closed() {
                    return Ok((None, Vec::new()));
                }
                child.abort().await;
                let result = tokio::time::timeout(LAST_WORDS, last_words(updates)).await;
                return Ok((result.ok().flatten(), Vec::new()));
            }
            changed = updates.changed() => changed?,
            () = run.posted.notified() => {
                for message in run.take_posted() {
                    child.say(message).await?;
                }
            }
        }
    }
}

/// Waits for the result of an interrupted child; `None` if its session is gone.
async fn last_words(mut updates: StatusUpdates) -> Option<Arc<ChildResult>> {
    loop {
        match updates.now() {
            ChildStatus::Rests(result) => return Some(result),
            ChildStatus::Gone(_) => return None,
            ChildStatus::AtWork => updates.changed().await.ok()?,
        }
    }
}

/// Judges the answer of a worker of a fleet. Nobody reads it before what depends on its todo begins, so
/// that a todo counts as done only with a complete answer.
fn judged_as_worker(mut ending: RunEnding, watcher: &Watcher) -> RunEnding {
    if !matches!(ending.end, RunEnd::Answered) {
        return ending;
    }
    let unfinished = ending.unfinished.clone().or_else(|| {
        let was_denied = watcher.progress().was_denied_all();
        was_denied.then(|| "it was not allowed to do what it wanted to".to_owned())
    });
    if let Some(why) = unfinished {
        ending.end = RunEnd::Failed(RunFailure::Unfinished(why));
    }
    ending
}

fn judged(result: Result<Option<Arc<ChildResult>>, ChildError>, was_cancelled: bool) -> RunEnding {
    let result = match result {
        Ok(Some(result)) => result,
        Err(error) if !was_cancelled => return RunEnding::failed(error),
        Ok(None) | Err(_) => return RunEnding::cancelled(),
    };
    let end = match (result.outcome, result.error.clone()) {
        _ if was_cancelled => RunEnd::Cancelled,
        (Some(LoopOutcome::Done), _) => RunEnd::Answered,
        (_, Some(error)) if result.limited => RunEnd::Failed(RunFailure::Limit(error)),
        (_, Some(error)) => RunEnd::Failed(RunFailure::Loop(error)),
        (Some(LoopOutcome::Aborted | LoopOutcome::Interrupted), None) => {
            RunEnd::Failed(RunFailure::Interrupted)
        }
        (Some(LoopOutcome::Failed) | None, None) => RunEnd::Failed(RunFailure::Unexplained),
    };
    RunEnding {
        end,
        response: result.response.clone(),
        unfinished: result.unfinished.clone(),
        cut_calls: result.cut_calls.clone(),
        usage: result.usage.clone(),
        worktree: None,
        duration_ms: 0,
        left: Vec::new(),
    }
}
