//! Messages in the loop: a run takes them, they end with the run, or they are removed before.

use loopd_proto::event::fact::{LoopEnded, LoopOutcome, QueueItem};
use loopd_proto::event::task::{Execution, TaskStarted, TaskWork};
use loopd_proto::id::{EventId, MessageId, TaskId};
use loopd_proto::time::Timestamp;

use crate::run_limits;
use crate::state::{EndedMessage, MessageEnd, Phase, Preparing, Run, State};

/// How many ends of messages are kept. There are more than a queue can hold, so that a client that
/// waits for messages learns the end of each, even if the whole queue is cleared at once.
const ENDED_KEPT: usize = 1_024;

/// Moves items from the queue into the phase that works on them.
pub(super) fn take(state: &mut State, ids: &[MessageId]) {
    let mut messages = Vec::new();
    let mut command = None;
    let mut waiting = Vec::with_capacity(state.queue.len());
    let steering: Vec<_> = state.steering.drain(..).collect();
    for message in steering {
        if ids.contains(&message.id) {
            messages.push(message);
        } else {
            state.steering.push(message);
        }
    }
    for item in state.queue.drain(..) {
        match item {
            QueueItem::Message(message) if ids.contains(&message.id) => messages.push(message),
            QueueItem::Command(pending) if ids.contains(&pending.id) => command = Some(pending),
            item @ (QueueItem::Message(_) | QueueItem::Command(_)) => waiting.push(item),
        }
    }
    state.queue = waiting;
    let joins = state.turn().map(|turn| turn.key.clone());
    abandon_unfinished(state);
    state.stop_blocks = 0;
    if let Some(command) = command {
        state.phase = Phase::Commanding(command);
    } else if let Some(first) = messages.first() {
        let started = || Run {
            origin: Some(first.origin.clone().unwrap_or_else(|| first.id.clone())),
            // Its answer is the answer to the message whose work it goes on with, too.
            messages: first.origin.iter().cloned().collect(),
            ..Run::default()
        };
        let mut run = current(state).map_or_else(started, std::mem::take);
        // What hooks have kept the run from before somebody sent more does not count.
        (run.stop_blocks, run.ends_at_stop_limit) = (0, false);
        state.autopilot.begin(&first.id, run.origin.as_ref());
        run.messages
            .extend(messages.iter().map(|message| message.id.clone()));
        let scopes = messages
            .iter()
            .filter_map(|message| message.scope.as_deref());
        run.scopes.extend(scopes.cloned());
        let mut news = messages.iter().filter_map(|message| message.scope.as_ref());
        if news.any(|scope| scope.research_report.is_some()) {
            state.written_report = None;
        }
        state.phase = Phase::Preparing(Preparing {
            messages,
            joins,
            run,
        });
    }
}

/// Takes the run that was not finished, or a new one that no message starts. A new one goes on with
/// the count of how often hooks have kept the run before from ending.
pub(super) fn unfinished(state: &mut State) -> Run {
    let stop_blocks = std::mem::take(&mut state.stop_blocks);
    state.unfinished.take().unwrap_or_else(|| Run {
        stop_blocks,
        ..Run::default()
    })
}

/// Starts a run that goes on with the work on a message, with what that work is restricted to.
pub(super) fn go_on(state: &mut State, request: &MessageId) {
    let stop_blocks = std::mem::take(&mut state.stop_blocks);
    let mut run = Run {
        continues: true,
        origin: Some(request.clone()),
        messages: vec![request.clone()],
        stop_blocks,
        ..Run::default()
    };
    state.kept_scopes.restore(request, &mut run);
    state.phase = Phase::Preparing(Preparing {
        messages: Vec::new(),
        joins: None,
        run,
    });
}

/// Notes a task. One that carries out a slash command begins a run of its own, which the autopilot goes
/// on with if nothing else is under way.
pub(super) fn started(state: &mut State, started: &TaskStarted, now: Timestamp) {
    let work = match &started.work {
        TaskWork::Agent(work) => Some(work),
        TaskWork::Shell(_) | TaskWork::External(_) => None,
    };
    let Some((work, command)) = work.and_then(|work| Some((work, work.command.as_ref()?))) else {
        let origin = origin_of(state, work.and_then(|work| work.todo.as_deref()));
        state.tasks.started(started, origin, state.seq);
        return;
    };
    let origin = Some(command.id.clone());
    state.tasks.started(started, origin, state.seq);
    run_limits::begin_command(state, command, now);
    if work.execution == Execution::Background && state.run().is_none() {
        state.autopilot.begin(&command.id, None);
    }
}

/// Returns the message that a task works for: that of the run under way, or that of the fleet whose todo it
/// carries out, if the fleet has limits.
pub(super) fn origin_of(state: &State, todo: Option<&str>) -> Option<MessageId> {
    let fleet = state.fleet.as_ref().filter(|_| todo.is_some());
    fleet
        .and_then(|fleet| fleet.run.clone())
        .or_else(|| state.origin())
}

/// Returns the current run.
pub(super) fn current(state: &mut State) -> Option<&mut Run> {
    match &mut state.phase {
        Phase::Preparing(preparing) => Some(&mut preparing.run),
        Phase::Turn(turn) => Some(&mut turn.run),
        Phase::Idle | Phase::Commanding(_) | Phase::Rewinding(_) => None,
    }
}

/// Links a run that a notification started to the message whose work it continues. With several
/// such messages the run has no origin.
pub(super) fn told(state: &mut State, task: &TaskId) {
    let origin = state.tasks.get(task.as_str());
    let Some(origin) = origin.and_then(|task| task.origin.clone()) else {
        return;
    };
    // This happens only before the first turn. The origin of a run does not change later.
    let Phase::Preparing(Preparing { run, .. }) = &mut state.phase else {
        return;
    };
    if run.woken && !run.messages.contains(&origin) {
        state.kept_scopes.restore(&origin, run);
        run.messages.push(origin);
        run.origin = origin_among(&run.messages);
    }
}

/// Returns the message that a woken run goes on with, if it is one.
pub(crate) fn origin_among(messages: &[MessageId]) -> Option<MessageId> {
    match messages {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// Removes messages from the queue, or from the run that was about to work on them.
pub(super) fn remove(state: &mut State, ids: &[MessageId]) {
    let of_run = |id: &MessageId| state.run().is_some_and(|run| run.messages.contains(id));
    let removed = ids.iter().filter(|id| !of_run(id)).map(|id| EndedMessage {
        id: id.clone(),
        end: MessageEnd::Removed,
    });
    let removed = removed.collect();
    remember(state, removed);
    state.queue.retain(|item| !ids.contains(item.id()));
    state.steering.retain(|message| !ids.contains(&message.id));
    if let Phase::Preparing(preparing) = &mut state.phase {
        let waiting = &mut preparing.messages;
        waiting.retain(|message| !ids.contains(&message.id));
    }
}

/// Ends a message that hooks kept from joining a run. The run and its other messages go on.
pub(super) fn blocked(state: &mut State, id: &MessageId, error: &EventId) {
    let Some(run) = current(state) else {
        return;
    };
    let messages = run.messages.len();
    run.messages.retain(|other| other != id);
    if run.messages.len() < messages {
        let end = MessageEnd::Ran {
            outcome: LoopOutcome::Failed,
            answer: None,
            error: Some(error.clone()),
        };
        remember(
            state,
            vec![EndedMessage {
                id: id.clone(),
                end,
            }],
        );
    }
}

/// Ends the messages of a run that was interrupted and does not go on.
pub(super) fn abandon_unfinished(state: &mut State) {
    if let Some(run) = state.unfinished.take() {
        finish(state, run, LoopOutcome::Interrupted);
    }
}

/// Records how the messages of a run ended.
fn finish(state: &mut State, run: Run, outcome: LoopOutcome) {
    let ended = run.messages.into_iter().map(|id| EndedMessage {
        id,
        end: MessageEnd::Ran {
            outcome,
            answer: run.answer,
            error: run.error.clone(),
        },
    });
    let ended = ended.collect();
    remember(state, ended);
}

/// Ends the current run of the loop. Messages that did not reach the model return to the queue in
/// their old order; the others have ended.
///
/// If the run may go on later, its messages have not ended.
pub(super) fn end(state: &mut State, ended: &LoopEnded) {
    let mut run = current(state).map(std::mem::take).unwrap_or_default();
    let unread = match std::mem::replace(&mut state.phase, Phase::Idle) {
        Phase::Preparing(preparing) => preparing.messages,
        Phase::Turn(_) | Phase::Idle | Phase::Commanding(_) | Phase::Rewinding(_) => Vec::new(),
    };
    let is_unread = |id: &MessageId| unread.iter().any(|message| message.id == *id);
    run.messages.retain(|id| !is_unread(id));
    state.stop_blocks = if run.ends_at_stop_limit {
        run.stop_blocks
    } else {
        0
    };
    if ended.resumable {
        state.unfinished = Some(run);
    } else {
        // The messages have ended. What goes on when a client grants more is the work of their run.
        let goes_on = ended.limited.then(|| Run {
            origin: run.origin.clone(),
            limited: true,
            limit_request: ended.limit_request.clone(),
            scopes: run.scopes.clone(),
            skills: run.skills.clone(),
            ..Run::default()
        });
        state.kept_scopes.keep(&run, &state.tasks);
        finish(state, run, ended.outcome);
        state.unfinished = goes_on;
    }
    let late = std::mem::take(&mut state.steering).into_iter();
    let back = late.chain(unread).map(QueueItem::Message);
    state.queue.splice(0..0, back);
}

fn remember(state: &mut State, ended: Vec<EndedMessage>) {
    state.ended.extend(ended);
    let surplus = state.ended.len().saturating_sub(ENDED_KEPT);
    state.ended.drain(..surplus);
}
