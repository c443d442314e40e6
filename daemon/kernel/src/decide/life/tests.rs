//! How a session is created, and what a resume changes.

mod end;
mod recovery;

use serde_json::json;

use crate::decide::tests::prelude::*;

#[test]
fn a_new_session_stores_its_configuration() {
    check(
        &nothing(),
        || create(json!({ "model": "gpt" }), json!({})),
        r#"
        store session.start s model=gpt cwd=/work
        store loopd.configured options={"model":"gpt"} workingDirectory=/work
        now idle
        "#,
    );
    check(
        &nothing(),
        || {
            create(
                json!({ "reasoningEffort": "high" }),
                json!({ "approveAll": true }),
            )
        },
        r#"
        store session.start s effort=high cwd=/work
        store loopd.configured options={"reasoningEffort":"high"} workingDirectory=/work
        store loopd.permissions permissions={"approveAll":true}
        now idle
        "#,
    );
}

#[test]
fn secrets_are_not_stored() {
    let secret = || json!({ "provider": { "type": "openai", "baseUrl": "http://model", "apiKey": "secret" } });
    check(
        &nothing(),
        || create(secret(), json!({})),
        r#"
        store session.start s cwd=/work
        store loopd.configured options={"provider":{"type":"openai","baseUrl":"http://model","secretWithheld":true}} workingDirectory=/work
        now idle
        "#,
    );
}

#[test]
fn a_new_session_can_begin_with_an_agent_or_be_one() {
    check(
        &nothing(),
        || create(json!({}), json!({})).by_agent("review"),
        "
        store session.start s cwd=/work
        store loopd.configured options={} workingDirectory=/work
        store subagent.selected agentName=review agentDisplayName=review
        now idle
        ",
    );
    check(
        &nothing(),
        || create(json!({}), json!({})).of_a_subagent(),
        "
        store session.start s cwd=/work
        store loopd.configured options={} workingDirectory=/work
        store loopd.enlisted top me
        now idle
        ",
    );
}

#[test]
fn a_resume_is_announced_in_the_log() {
    check(
        &idle(),
        resume,
        "
        do cancel turn
        store session.resume events=1 model=gpt cwd=/work active=false continue=false
        now idle
        ",
    );
    check(
        &closed(),
        resume,
        "
        do cancel turn
        store session.resume events=2 model=gpt cwd=/work active=false continue=false
        now idle
        ",
    );
    check(
        &idle(),
        || resume().silently(),
        "
        do cancel turn
        now idle
        ",
    );
}

#[test]
fn a_resume_closes_open_work() {
    check(
        &two_calls().and(client_asked("b")).and(elicitation("e")),
        resume,
        "
        do cancel turn
        store loopd.answered requestId=e
        do withdraw e
        tell external_tool.completed requestId=r-b
        store tool.execution_complete b interrupted INTERRUPTED turn=0
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        store session.resume events=8 model=gpt cwd=/work active=false continue=false
        now idle
        ",
    );
    check(
        &preparing(),
        || resume().silently(),
        "
        do cancel turn
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle queue=[m1]
        ",
    );
    check(
        &asking(),
        || resume().silently(),
        "
        do cancel turn
        store loopd.permission_unanswered requestId=r-a
        store permission.completed r-a a cancelled
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
    check(
        &user_asked(),
        || resume().silently(),
        "
        do cancel turn
        store loopd.answered requestId=r-a
        do withdraw r-a
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        now idle
        ",
    );
}

#[test]
fn work_continues_if_other_clients_are_attached_or_the_resume_asks_for_it() {
    check(
        &two_calls(),
        || resume().of_an_active_session(),
        "
        store session.resume events=7 model=gpt cwd=/work active=true continue=false
        now turn i/0 [a:started b:started]
        ",
    );
    check(
        &asking(),
        || resume().continuing(),
        "
        store session.resume events=7 model=gpt cwd=/work active=false continue=true
        now turn i/0 [a:asking]
        ",
    );
}

#[test]
fn a_resume_changes_only_what_it_names() {
    check(
        &idle(),
        || resume().silently().with(json!({ "model": "gpt" })),
        "
        do cancel turn
        now idle
        ",
    );
    check(
        &idle(),
        || resume().with(json!({ "model": "claude", "streaming": true })),
        r#"
        do cancel turn
        store loopd.configured options={"model":"claude","streaming":true} workingDirectory=/work
        store session.model_change previousModel=gpt newModel=claude
        store session.resume events=1 model=claude cwd=/work active=false continue=false
        now idle
        "#,
    );
    check(
        &idle(),
        || resume().in_directory("/other"),
        r#"
        do cancel turn
        store loopd.configured options={"model":"gpt"} workingDirectory=/other
        store session.resume events=1 model=gpt cwd=/other active=false continue=false
        now idle
        "#,
    );
}

#[test]
fn a_resume_selects_an_agent_once() {
    check(
        &idle(),
        || resume().silently().by_agent("review"),
        "
        do cancel turn
        store subagent.selected agentName=review agentDisplayName=review
        now idle
        ",
    );
    let selected = event(
        "subagent.selected",
        json!({ "agentName": "review", "agentDisplayName": "review", "tools": null }),
    );
    check(
        &idle().and(selected),
        || resume().silently().by_agent("review"),
        "
        do cancel turn
        now idle
        ",
    );
}

#[test]
fn managed_rules_only_grow() {
    let rules = || json!({ "deny": [{ "kind": "url", "argument": null }] });
    check(
        &idle(),
        || resume().silently().managed(rules()),
        r#"
        do cancel turn
        store loopd.permissions permissions={"managed":{"deny":[{"kind":"url"}]}}
        now idle
        "#,
    );
    let known =
        permissions(json!({ "managed": { "deny": [{ "kind": "write", "argument": null }] } }));
    check(
        &idle().and(known),
        || resume().silently().managed(rules()),
        r#"
        do cancel turn
        store loopd.permissions permissions={"managed":{"deny":[{"kind":"write"},{"kind":"url"}]}}
        now idle
        "#,
    );
    let same = permissions(json!({ "managed": rules() }));
    check(
        &idle().and(same),
        || resume().silently().managed(rules()),
        "
        do cancel turn
        now idle
        ",
    );
}

#[test]
fn waiting_work_is_taken_up() {
    ignores(&idle(), take_up);
    check(
        &idle()
            .and(queued("m1"))
            .and(task("sh", shell("sh")))
            .and(task_ended("sh")),
        take_up,
        "
        store loopd.taken ids=[m1]
        tell pending_messages.modified
        do prepare [m1]
        now preparing [m1] tasks=[sh:ended!]
        ",
    );
    check(
        &idle().and(task("sh", shell("sh"))).and(task_ended("sh")),
        take_up,
        "
        store loopd.woken
        do prepare []
        now preparing [] tasks=[sh:ended!]
        ",
    );
    ignores(&model_called().and(queued("m2")), take_up);
}

#[test]
fn a_resume_announces_the_model_that_was_chosen_last() {
    let switched = || {
        idle().and(event(
            "session.model_change",
            json!({ "newModel": "claude" }),
        ))
    };
    check(
        &switched(),
        resume,
        "
        do cancel turn
        store session.resume events=2 model=claude cwd=/work active=false continue=false
        now idle
        ",
    );
    check(
        &switched(),
        || resume().with(json!({ "model": "gpt" })),
        "
        do cancel turn
        store session.model_change previousModel=claude newModel=gpt
        store session.resume events=2 model=gpt cwd=/work active=false continue=false
        now idle
        ",
    );
    check(
        &switched(),
        || resume().with(json!({ "reasoningEffort": "high" })),
        r#"
        do cancel turn
        store loopd.configured options={"model":"gpt","reasoningEffort":"high"} workingDirectory=/work
        store session.model_change previousModel=claude newModel=claude reasoningEffort=high
        store session.resume events=2 model=claude cwd=/work active=false continue=false
        now idle
        "#,
    );
}
