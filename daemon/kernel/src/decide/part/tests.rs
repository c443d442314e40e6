use serde_json::json;

use crate::decide::tests::prelude::*;
use crate::hook::{HookDenial, HookVerdict};

fn asked_about_a_part() -> Given {
    idle().and(part_asked("p", &command_line("make")))
}

#[test]
fn a_part_is_asked_about_granted_or_refused_by_the_rules_of_calls() {
    check(
        &idle(),
        || wants_part("p", command_line("make")),
        "
        store permission.requested p shell prompt=commands
        now idle parts=[p]
        ",
    );
    check(
        &idle().and(permissions(json!({ "approveAll": true }))),
        || wants_part("p", command_line("make")),
        "
        do part p granted
        now idle
        ",
    );
    check(
        &idle().and(permissions(
            json!({ "denied": [{ "kind": "shell", "argument": "make" }] }),
        )),
        || wants_part("p", command_line("make")),
        r#"
        do part p "Permission denied by the rule shell(make)."
        now idle
        "#,
    );
    check(
        &idle(),
        || wants_part("p", command_line("make")).of_nobody(),
        "
        do part p COULD_NOT_ASK
        now idle
        ",
    );
}

#[test]
fn hooks_decide_about_a_part_as_about_a_call() {
    let all = idle().and(permissions(json!({ "approveAll": true })));
    let denies = || {
        HookVerdict::Deny(HookDenial {
            reason: "no".to_owned(),
            told: "the hook says no".to_owned(),
            stops: false,
        })
    };
    check(
        &all,
        || wants_part("p", command_line("make")).judged(denies()),
        r#"
        do part p "the hook says no"
        now idle
        "#,
    );
    check(
        &all,
        || wants_part("p", command_line("make")).judged(HookVerdict::Ask(None)),
        "
        store permission.requested p shell prompt=commands
        now idle parts=[p]
        ",
    );
}

#[test]
fn the_answer_of_a_person_decides_and_closes_the_question() {
    check(
        &asked_about_a_part(),
        || permit("p", json!({ "kind": "approve-once" })),
        "
        answer yes
        store permission.completed p approved
        do part p granted
        now idle
        ",
    );
    check(
        &asked_about_a_part(),
        || permit("p", json!({ "kind": "reject" })),
        "
        answer yes
        store permission.completed p denied-interactively-by-user
        do part p REJECTED_BY_USER
        now idle
        ",
    );
    declines(&idle(), || permit("p", json!({ "kind": "approve-once" })));
}

#[test]
fn a_question_about_a_part_outlives_turns_but_not_the_daemon() {
    let beside_a_turn = model_called().and(part_asked("p", &command_line("make")));
    let after = beside_a_turn.and(turn_started(1)).and(loop_ended("done"));
    assert_eq!(after.state().questions.parts().count(), 1);
    check(
        &asked_about_a_part(),
        recover,
        "
        store permission.completed p cancelled
        do part p INTERRUPTED
        now idle
        ",
    );
}

#[test]
fn what_a_message_sets_holds_for_its_run_only() {
    let scope = json!({ "command": "verse", "model": "other", "tools": ["Read"],
        "agent": { "name": "poet", "stance": "plan" } });
    let waiting = idle().and(scoped("m", &scope));
    assert_eq!(waiting.state().scoped_model(), None);
    let running = waiting.and(taken(&["m"])).and(turn_started(0));
    let state = running.state();
    assert_eq!(state.model_in_force(), Some("other"));
    assert_eq!(state.agent_in_force(), Some("poet"));
    assert_ne!(state.stance_in_force(), state.agent_stance);
    let over = running.and(loop_ended("done")).state();
    assert_eq!(
        (over.model_in_force(), over.agent_in_force()),
        (over.model.as_deref(), None)
    );
    assert!(over.scopes().is_empty());
}
