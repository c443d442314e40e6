//! Slash commands wait in the queue. They run one at a time, in clients or in the daemon.

use crate::command::{Command, CommandOutcome, CommandRunner, QueuedLine};
use crate::decide::tests::prelude::*;

#[test]
fn a_slash_command_goes_to_the_clients_when_the_session_is_idle() {
    check(
        &idle(),
        || slash_command("/deploy"),
        "
        answer yes
        store loopd.queued #1 /deploy last
        tell pending_messages.modified
        store loopd.taken ids=[#1]
        tell pending_messages.modified
        tell command.queued requestId=#2 command=/deploy
        do run /deploy
        now running /deploy
        ",
    );
    check(
        &idle().and(queued("m1")),
        || slash_command("/deploy"),
        "
        answer yes
        store loopd.queued #1 /deploy last
        tell pending_messages.modified
        store loopd.taken ids=[m1]
        tell pending_messages.modified
        do prepare [m1]
        now preparing [m1] queue=[#1]
        ",
    );
    check(
        &model_called(),
        || slash_command("/deploy"),
        "
        answer yes
        store loopd.queued #1 /deploy last
        tell pending_messages.modified
        now turn i/0 model called queue=[#1]
        ",
    );
}

#[test]
fn after_a_slash_command_the_next_item_is_taken() {
    check(
        &commanding(),
        || command_handled("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
    check(
        &commanding().and(queued("m2")),
        || command_handled("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
    check(
        &commanding().and(queued_command("c2")),
        || command_handled("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[c2]
        tell pending_messages.modified
        tell command.queued requestId=r-c2 command=/deploy
        do run /deploy
        now running /deploy
        ",
    );
}

#[test]
fn a_slash_command_can_stop_the_queue() {
    check(
        &commanding().and(queued("m2")),
        || command_stopped("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle
        tell session.idle interactive
        now idle queue=[m2]
        ",
    );
}

#[test]
fn without_a_client_attached_the_queue_waits() {
    check(
        &commanding().and(queued("m2")).unattended(),
        || command_handled("r-c1"),
        "
        answer yes
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle queue=[m2]
        ",
    );
}

#[test]
fn a_report_of_another_slash_command_changes_nothing() {
    declines(&commanding(), || command_handled("r-c9"));
    declines(&idle(), || command_handled("r-c1"));
}

/// A client runs a slash command that it had said it runs.
fn client_runs_command() -> Given {
    idle().and(queued_for_client("c1")).and(taken(&["c1"]))
}

#[test]
fn a_slash_command_fails_by_name_when_nobody_runs_it_any_more() {
    check(
        &client_runs_command().and(queued("m2")),
        clients_left,
        "
        store session.warning warningType=command_failed message=\"The command /deploy now failed: the client that runs it left\"
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
    ignores(&client_runs_command().with_commands(), clients_left);
    check(
        &model_called().and(queued_for_client("c1")),
        clients_left,
        "
        store session.warning warningType=command_failed message=\"The command /deploy now failed: the client that runs it left\"
        store loopd.unqueued ids=[c1]
        tell pending_messages.modified
        now turn i/0 model called
        ",
    );
}

#[test]
fn a_slash_command_that_nobody_had_named_fails_with_the_last_client() {
    ignores(&commanding(), clients_left);
    check(
        &commanding().and(queued("m2")).unattended(),
        clients_left,
        "
        store session.warning warningType=command_failed message=\"The command /deploy failed: the client that runs it left\"
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle queue=[m2]
        ",
    );
    ignores(
        &idle().and(queued_for_client("c1")).unattended(),
        clients_left,
    );
}

#[test]
fn the_queue_goes_past_a_slash_command_that_nobody_runs_any_more() {
    check(
        &idle().and(queued_for_client("c1")),
        || send("m2"),
        "
        answer m2
        store loopd.queued m2 idle last
        tell pending_messages.modified
        store session.warning warningType=command_failed message=\"The command /deploy now failed: the client that runs it left\"
        store loopd.unqueued ids=[c1]
        tell pending_messages.modified
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
    check(
        &idle().and(queued_for_client("c1")).with_commands(),
        || send("m2"),
        "
        answer m2
        store loopd.queued m2 idle last
        tell pending_messages.modified
        store loopd.taken ids=[c1]
        tell pending_messages.modified
        tell command.queued requestId=r-c1 command=\"/deploy now\"
        do run /deploy now
        now running /deploy now queue=[m2]
        ",
    );
}

#[test]
fn a_failed_slash_command_is_told_and_the_queue_goes_on() {
    check(
        &commanding(),
        || command_failed("r-c1"),
        "
        answer yes
        store session.warning warningType=command_failed message=\"The command /deploy failed: no disk space\"
        tell command.completed requestId=r-c1
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
}

/// The daemon runs a slash command of its own.
fn daemon_runs_command() -> Given {
    let item = serde_json::json!({"kind": "command", "id": "c1", "command": "/plan it",
        "request": "r-c1", "byDaemon": true});
    let queued = serde_json::json!({ "item": item, "place": "last" });
    idle()
        .and(event("loopd.queued", queued))
        .and(taken(&["c1"]))
}

fn ran(outcome: Result<CommandOutcome, String>) -> Command {
    Command::CommandRan {
        request: "r-c1".into(),
        outcome,
    }
}

#[test]
fn a_command_of_the_daemon_is_not_offered_to_clients() {
    check(
        &idle(),
        || {
            Command::EnqueueCommand(QueuedLine {
                command: "/plan it".to_owned(),
                runner: CommandRunner::Daemon,
                sender: None,
                display_text: None,
            })
        },
        "
        answer yes
        store loopd.queued #1 \"/plan it\" last
        tell pending_messages.modified
        store loopd.taken ids=[#1]
        tell pending_messages.modified
        do run /plan it
        now running /plan it
        ",
    );
}

#[test]
fn what_a_command_of_the_daemon_brings_comes_next() {
    check(
        &daemon_runs_command().and(queued("m2")),
        || {
            ran(Ok(CommandOutcome {
                said: Some("note".to_owned()),
                message: Some(Box::new(send("m9"))),
            }))
        },
        "
        store session.info infoType=command message=\"/plan it\\nnote\"
        store loopd.queued m9 queued first
        tell pending_messages.modified
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[m9]
        tell pending_messages.modified
        do prepare [m9]
        now preparing [m9] queue=[m2]
        ",
    );
    check(
        &daemon_runs_command().and(queued("m2")),
        || ran(Err("no".to_owned())),
        "
        store session.warning warningType=command_failed message=\"The command /plan it failed: no\"
        store loopd.loop_ended outcome=done
        tell assistant.idle
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        do prepare [m2]
        now preparing [m2]
        ",
    );
}

#[test]
fn a_command_of_the_daemon_goes_on_when_clients_leave() {
    check(
        &daemon_runs_command().unattended(),
        || Command::ClientsLeft,
        "now running /plan it",
    );
    // Who has aborted it does not want what it brings.
    check(&idle(), || ran(Ok(CommandOutcome::default())), "now idle");
}
