//! Messages and notifications that were prepared for the model, or could not be prepared.

use serde_json::json;

use crate::decide::tests::prelude::*;

#[test]
fn prepared_messages_begin_a_turn() {
    check(
        &preparing(),
        || prepared(&["m1"]),
        "
        store user.message m1 text=hello! turn=0 queued
        tell session.tools_updated model=gpt
        store system.message system
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        ",
    );
}

#[test]
fn the_first_message_names_a_session_without_a_name() {
    check(
        &nothing().and(queued("m1")).and(taken(&["m1"])),
        || prepared(&["m1"]),
        "
        store session.model_change newModel=gpt
        store loopd.named name=hello by=auto
        tell session.title_changed title=hello
        store user.message m1 text=hello! turn=0 queued
        tell session.tools_updated model=gpt
        store system.message system
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        ",
    );
}

#[test]
fn a_changed_model_is_stored_and_an_unchanged_system_message_is_not() {
    let again = model_called()
        .and(loop_ended("done"))
        .and(queued("m2"))
        .and(taken(&["m2"]));
    check(
        &again,
        || prepared_for("claude", "system", &["m2"]),
        "
        store session.model_change previousModel=gpt newModel=claude
        store user.message m2 text=hello! turn=0 queued
        tell session.tools_updated model=claude
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called
        ",
    );
}

#[test]
fn steering_joins_the_running_interaction() {
    let joined = calls_started(&["a"])
        .and(completed("a"))
        .and(steering("m2"))
        .and(taken(&["m2"]));
    check(
        &joined,
        || prepared(&["m2"]),
        "
        store user.message m2 text=hello! turn=1 queued
        tell session.tools_updated model=gpt
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_woken_session_tells_the_model_which_tasks_ended() {
    let rested = idle()
        .and(task("sh", shell("sh")))
        .and(task_ended("sh"))
        .and(event("loopd.woken", json!({})));
    check(
        &rested,
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
        store system.notification shell_completed sh
        store assistant.turn_start #1 0
        do call model #1/0
        now turn #1/0 model called tasks=[sh:ended]
        ",
    );
}

#[test]
fn a_woken_session_with_nothing_to_deliver_becomes_idle_again() {
    check(
        &woken(),
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
    check(
        &woken().and(queued("m2")),
        || prepared(&[]),
        "
        tell session.tools_updated model=gpt
        store system.message system
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
fn a_report_about_other_messages_changes_nothing() {
    ignores(&preparing(), || prepared(&["m9"]));
    ignores(&model_called(), || prepared(&["m1"]));
    ignores(&preparing(), || prepare_failed(&["m9"]));
    ignores(&idle(), || prepare_failed(&["m1"]));
}

#[test]
fn messages_that_could_not_be_prepared_stay_in_the_history() {
    check(
        &preparing(),
        || prepare_failed(&["m1"]),
        r#"
        store user.message m1 queued
        store loopd.unqueued ids=[m1]
        store session.error query code=down of=m1 "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
    check(
        &woken(),
        || prepare_failed(&[]),
        r#"
        store session.error query code=down "no answer"
        store loopd.loop_ended outcome=failed
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}
