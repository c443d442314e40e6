//! Taking a session back to an earlier point of its log.
//!
//! A rewind of the conversation is one event. A rewind of files stores its intent first, then the
//! files are restored as an effect, then the event of the rewind ends it. Until then nothing else
//! begins. A daemon that finds only the intent in a log carries out the rest.

use std::fmt::Write as _;

use loopd_proto::event::rewind::{RewindFailed, RewindStarted, Rewound, SnapshotRewind};
use loopd_proto::event::session::{Info, Warning};
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::{RewindId, Seq};

use crate::command::{DecideEnv, Decision, Effect, Refusal, RestoreOutcome, RewindOrder};
use crate::state::{Phase, Rewinding, State};
use crate::tasks::Task;

/// The most running tasks that a refusal names.
const NAMED_TASKS: usize = 8;

pub(super) fn begin(
    state: &State,
    order: RewindOrder,
    env: &DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    if let Some(subagent) = &state.subagent {
        let top = env.top.unwrap_or(&subagent.parent);
        return Err(Refusal::SubagentHistory(top.clone()));
    }
    if let Some(work) = work_in_the_way(state) {
        return Err(Refusal::RewindBusy { work });
    }
    if state.rewinds.count() != order.seen.rewinds || order.target.position > state.seq {
        return Err(Refusal::HistoryChanged);
    }
    if let Some(undone) = &order.undoes
        && state.rewinds.undoable().map(|last| &last.id) != Some(undone)
    {
        return Err(Refusal::HistoryChanged);
    }
    if order.mode.has_files() {
        let mut decision = Decision::default();
        let started = RewindStarted {
            rewind: order.id,
            mode: order.mode,
            target: order.target,
            undoes: order.undoes,
            visible: order.seen.visible,
            removed: order.seen.removed,
        };
        let rewinding = Rewinding {
            began: state.seq.next(),
            started: started.clone(),
        };
        decision
            .store(Durable::RewindStarted(started))
            .run(Effect::RestoreFiles(Box::new(rewinding)));
        return Ok(decision);
    }
    let rewound = Rewound {
        events_removed: removed(state, order.seen.visible, order.seen.removed),
        took_work: took_work(state, order.undoes.as_ref(), order.target.position),
        rewind: order.id,
        mode: order.mode,
        target: order.target,
        undoes: order.undoes,
        restored: 0,
        skipped: 0,
        completed_later: None,
    };
    let mut decision = Decision::default();
    take_back(state, &mut decision, rewound);
    Ok(decision)
}

/// Returns what has to end before the session can go back.
pub fn work_in_the_way(state: &State) -> Option<String> {
    let mut work = Vec::new();
    match &state.phase {
        Phase::Idle => {}
        Phase::Preparing(_) | Phase::Turn(_) => work.push("a turn (session.abort)".to_owned()),
        Phase::Commanding(command) => work.push(format!("the slash command {}", command.command)),
        Phase::Rewinding(_) => work.push("another rewind".to_owned()),
    }
    if state.compaction.running.is_some() {
        work.push("a compaction (session.history.cancelBackgroundCompaction)".to_owned());
    }
    if state.has_fleet_at_work() {
        work.push("a fleet (loopd.fleetStop)".to_owned());
    }
    let running: Vec<&Task> = state.tasks.running().collect();
    for task in running.iter().take(NAMED_TASKS) {
        let kind = if task.agent().is_some() {
            "agent"
        } else if task.shell().is_some() {
            "command"
        } else {
            "task"
        };
        work.push(format!("the {kind} {} (session.tasks.cancel)", task.id));
    }
    let more = running.len().saturating_sub(NAMED_TASKS);
    if more > 0 {
        work.push(format!("{more} more tasks"));
    }
    if !state.user_calls.is_empty() {
        work.push("a command of a person (session.shell.cancelUserRequested)".to_owned());
    }
    (!work.is_empty()).then(|| work.join(", "))
}

/// Returns how many visible events a rewind takes back: those that were seen, and those that came
/// since.
fn removed(state: &State, visible: u64, removed: u64) -> u64 {
    removed + state.visible.saturating_sub(visible)
}

/// Says whether an undo takes back messages that people sent after the rewind that it undoes.
fn took_work(state: &State, undoes: Option<&RewindId>, target: Seq) -> Option<bool> {
    let later = state.history.last_user().is_some_and(|at| at > target);
    (undoes.is_some() && later).then_some(true)
}

fn take_back(state: &State, decision: &mut Decision, rewound: Rewound) {
    let told = rewound.mode.has_conversation().then(|| {
        let left = state.visible.saturating_sub(rewound.events_removed);
        SnapshotRewind {
            up_to_event_id: rewound.target.event_id.clone(),
            events_removed: rewound.events_removed,
            events_restored: rewound.target.kept.saturating_sub(left),
        }
    });
    decision.store(Durable::Rewound(rewound));
    if let Some(told) = told {
        decision.tell(Ephemeral::SnapshotRewind(told));
    }
}

/// Ends a rewind whose files were restored, or could not be. Messages that came meanwhile are taken
/// up after the log is folded again.
pub(super) fn restored(
    state: &State,
    rewind: &RewindId,
    outcome: RestoreOutcome,
    later: bool,
) -> Decision {
    let Phase::Rewinding(rewinding) = &state.phase else {
        return Decision::default();
    };
    let started = &rewinding.started;
    if started.rewind != *rewind {
        return Decision::default();
    }
    let mut decision = Decision::default();
    match outcome {
        RestoreOutcome::Restored {
            restored,
            skipped,
            left,
        } => {
            let has_conversation = started.mode.has_conversation();
            let rewound = Rewound {
                rewind: rewind.clone(),
                took_work: took_work(state, started.undoes.as_ref(), started.target.position),
                mode: started.mode,
                target: started.target.clone(),
                undoes: started.undoes.clone(),
                events_removed: if has_conversation {
                    removed(state, started.visible, started.removed)
                } else {
                    0
                },
                restored,
                skipped,
                completed_later: later.then_some(true),
            };
            take_back(state, &mut decision, rewound);
            if later {
                decision.store(Durable::SessionInfo(Info {
                    info_type: "rewind".to_owned(),
                    message: completed(restored, skipped, &left),
                    url: None,
                    tip: None,
                }));
            }
        }
        RestoreOutcome::Failed { error, rolled_back } => {
            if later || !rolled_back {
                decision.store(Durable::SessionWarning(Warning {
                    warning_type: "rewind_failed".to_owned(),
                    message: error.clone(),
                    url: None,
                }));
            }
            decision.store(Durable::RewindFailed(RewindFailed {
                rewind: rewind.clone(),
                error,
                rolled_back,
            }));
        }
    }
    decision
}

/// Says what became of a rewind that an earlier daemon began.
fn completed(restored: u64, skipped: u64, left: &[String]) -> String {
    let mut text = format!(
        "The daemon ended during a rewind, which is complete now: {restored} files were restored, {skipped} were left as they are"
    );
    if !left.is_empty() {
        text.push_str(": ");
        text.push_str(&left.join(", "));
        let more = skipped.saturating_sub(left.len() as u64);
        if more > 0 {
            // Writing to a string cannot fail.
            write!(text, " and {more} more").ok();
        }
    }
    text.push('.');
    text
}

/// Goes on with a rewind that a log was found with.
pub(super) fn found(rewinding: &Rewinding, decision: &mut Decision) {
    decision.run(Effect::RestoreFiles(Box::new(rewinding.clone())));
}

/// Ends a rewind in a copy of a log. It goes on in its source.
pub(super) fn copied(rewinding: &Rewinding, decision: &mut Decision) {
    decision.store(Durable::RewindFailed(RewindFailed {
        rewind: rewinding.started.rewind.clone(),
        error: "The rewind goes on in the session that this one is a copy of.".to_owned(),
        rolled_back: true,
    }));
}

#[cfg(test)]
mod tests;
