//! Slash commands in the queue. They run one at a time, in a client or in the daemon.

use loopd_proto::event::ask::Completed;
use loopd_proto::event::fact::{
    LoopOutcome, PendingCommand, QueueItem, QueuePlace, Queued, Unqueued, slash_name,
};
use loopd_proto::event::session::{Info, Warning};
use loopd_proto::event::turn::Delivered;
use loopd_proto::event::{Durable, Ephemeral};
use loopd_proto::id::RequestId;

use super::{check_room, enter, modified};
use crate::command::{
    Answer, CommandOutcome, CommandRunner, DecideEnv, Decision, QueuedLine, Refusal,
};
use crate::decide::rest;
use crate::state::{Phase, State};
use crate::texts;

/// Queues a slash command.
pub(in crate::decide) fn enqueue(
    state: &State,
    line: QueuedLine,
    env: &mut DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    check_room(state, line.command.len())?;
    let item = QueueItem::Command(PendingCommand {
        id: env.message(),
        request: env.request(),
        registered: (env.runs_command)(slash_name(&line.command)),
        by_daemon: line.runner == CommandRunner::Daemon,
        command: line.command,
        sender: line.sender,
        display_text: line.display_text,
    });
    let mut decision = Decision::answering(Answer::Accepted(true));
    enter(state, item, QueuePlace::Last, &mut decision, env);
    Ok(decision)
}

/// Takes the report that a client handled its slash command, or failed to.
pub(in crate::decide) fn handled(
    state: &State,
    request: &RequestId,
    stop: bool,
    error: Option<&str>,
    env: &DecideEnv<'_>,
) -> Decision {
    let Phase::Commanding(pending) = &state.phase else {
        return Decision::answering(Answer::Accepted(false));
    };
    if pending.request != *request {
        return Decision::answering(Answer::Accepted(false));
    }
    let mut decision = Decision::answering(Answer::Accepted(true));
    if let Some(error) = error {
        warn(&mut decision, pending, error);
    }
    completed(&mut decision, pending);
    let outcome = if stop {
        LoopOutcome::Interrupted
    } else {
        LoopOutcome::Done
    };
    rest(state, &mut decision, outcome, env);
    decision
}

/// Takes the report about a slash command that the daemon ran. The message that it wants sent comes
/// before everything else that waits.
pub(in crate::decide) fn ran(
    state: &State,
    request: &RequestId,
    outcome: Result<CommandOutcome, String>,
    env: &mut DecideEnv<'_>,
) -> Decision {
    let mut decision = Decision::default();
    let Phase::Commanding(pending) = &state.phase else {
        return decision;
    };
    if pending.request != *request {
        // An abort has ended it.
        return decision;
    }
    match outcome {
        Err(why) => warn(&mut decision, pending, &why),
        Ok(CommandOutcome { said, message }) => {
            if let Some(said) = said.filter(|said| !said.trim().is_empty()) {
                decision.store(Durable::SessionInfo(Info {
                    info_type: "command".to_owned(),
                    message: texts::command_said(&pending.command, &said),
                    ..Info::default()
                }));
            }
            if let Some(message) = message {
                let mut message = super::pending(*message, Delivered::Queued, env);
                message.sender.clone_from(&pending.sender);
                if let Some(shown) = &pending.display_text {
                    message.display_prompt = Some(shown.clone());
                }
                decision
                    .store(Durable::Queued(Queued {
                        item: QueueItem::Message(message),
                        place: QueuePlace::First,
                    }))
                    .tell(modified());
            }
        }
    }
    rest(state, &mut decision, LoopOutcome::Done, env);
    decision
}

/// Ends the slash commands that nobody runs any more, because clients have left.
pub(in crate::decide) fn clients_left(state: &State, env: &DecideEnv<'_>) -> Decision {
    let mut decision = Decision::default();
    for item in &state.queue {
        match item {
            QueueItem::Command(command) if is_lost(command, env) => {
                fail_waiting(&mut decision, command);
            }
            QueueItem::Command(_) | QueueItem::Message(_) => {}
        }
    }
    if let Phase::Commanding(pending) = &state.phase
        && !pending.by_daemon
        && (is_lost(pending, env) || !env.attended)
    {
        warn(&mut decision, pending, texts::COMMAND_CLIENT_LEFT);
        completed(&mut decision, pending);
        rest(state, &mut decision, LoopOutcome::Done, env);
    }
    decision
}

/// Whether clients ran this command when it was queued, and none does now. Without any client, a
/// waiting command waits as messages do.
pub(super) fn is_lost(command: &PendingCommand, env: &DecideEnv<'_>) -> bool {
    env.attended && command.registered && !(env.runs_command)(command.name())
}

/// Removes a waiting command that no client runs any more.
pub(super) fn fail_waiting(decision: &mut Decision, command: &PendingCommand) {
    warn(decision, command, texts::COMMAND_CLIENT_LEFT);
    decision
        .store(Durable::Unqueued(Unqueued {
            ids: vec![command.id.clone()],
        }))
        .tell(modified());
}

/// Tells clients that the command which they were offered is over.
pub(in crate::decide) fn completed(decision: &mut Decision, command: &PendingCommand) {
    if command.by_daemon {
        return;
    }
    decision.tell(Ephemeral::CommandCompleted(Completed {
        request_id: command.request.clone(),
    }));
}

/// Tells people that a command failed, and why.
pub(in crate::decide) fn warn(decision: &mut Decision, command: &PendingCommand, why: &str) {
    decision.store(Durable::SessionWarning(Warning {
        warning_type: "command_failed".to_owned(),
        message: texts::command_failed(&command.command, why),
        url: None,
    }));
}
