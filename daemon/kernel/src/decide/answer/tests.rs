//! Answers of clients to tools, questions and forms: the first valid one counts.

mod permission;

use serde_json::json;

use crate::decide::tests::prelude::*;

#[test]
fn the_result_of_a_clients_tool_is_recorded() {
    check(
        &client_runs(),
        || answer_tool("r-a", ok()),
        "
        answer yes
        tell external_tool.completed requestId=r-a
        store tool.execution_complete a ok turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
    check(
        &two_calls().and(client_asked("a")),
        || answer_tool("r-a", failed("broken")),
        r#"
        answer yes
        tell external_tool.completed requestId=r-a
        store tool.execution_complete a broken "it failed" turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
}

#[test]
fn a_person_answers_the_model() {
    check(
        &user_asked(),
        || choose("r-a", "left"),
        r#"
        answer yes
        store loopd.answered requestId=r-a
        tell user_input.completed requestId=r-a answer=left wasFreeform=false
        do withdraw r-a
        store tool.execution_complete a "User selected: left" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
    check(
        &user_asked(),
        || reply_freely("r-a", "neither"),
        r#"
        answer yes
        store loopd.answered requestId=r-a
        tell user_input.completed requestId=r-a answer=neither wasFreeform=true
        do withdraw r-a
        store tool.execution_complete a "User responded: neither" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn an_answer_without_an_open_question_is_not_accepted() {
    let once = || json!({ "kind": "approve-once" });
    declines(&asking(), || permit("r-z", once()));
    declines(&idle(), || permit("r-a", once()));
    declines(&asking(), || answer_tool("r-a", ok()));
    declines(&client_runs(), || choose("r-a", "left"));
    declines(&user_asked(), || permit("r-a", once()));
    declines(&user_asked().and(elicitation("e")), || {
        answer_tool("e", ok())
    });
}

#[test]
fn a_second_answer_is_not_accepted() {
    declines(&client_runs().and(completed("a")), || {
        answer_tool("r-a", ok())
    });
}

#[test]
fn a_form_is_asked_and_filled_in_in_any_phase() {
    check(
        &idle(),
        || elicit("e"),
        r#"
        store loopd.asked kind=elicitation requestId=e message="Fill in" requestedSchema={"type":"object"}
        tell elicitation.requested requestId=e message="Fill in" requestedSchema={"type":"object"}
        now idle forms=[e]
        "#,
    );
    check(
        &model_called().and(elicitation("e")),
        || fill_in("e", json!({ "name": "x" })),
        r#"
        answer yes
        store loopd.answered requestId=e
        tell elicitation.completed requestId=e action=accept content={"name":"x"}
        do resolve e accept {"name":"x"}
        now turn i/0 model called
        "#,
    );
    check(
        &idle().and(elicitation("e")),
        || decline("e"),
        "
        answer yes
        store loopd.answered requestId=e
        tell elicitation.completed requestId=e action=decline
        do resolve e decline
        now idle
        ",
    );
}

#[test]
fn a_form_that_is_not_open_is_not_filled_in() {
    declines(&idle(), || decline("e"));
    declines(&user_asked(), || decline("r-a"));
}
