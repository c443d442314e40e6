//! Beginning, resume, recovery after a crash, and end.

use serde_json::json;

use crate::kernel::decide::tests::prelude::*;

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
        store loopd.permissions permissions={"approveAll":true,"approveAllReads":false,"approved":[],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
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
        || create(json!({}), json!({})).as_subagent(),
        "
        store session.start s cwd=/work
        store loopd.configured options={} workingDirectory=/work
        store loopd.enlisted top me
        now idle
        ",
    );
}

#[test]
fn a_resume_says_who_came() {
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
fn a_resume_closes_what_was_open() {
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
fn work_goes_on_when_others_are_there_or_the_resume_says_so() {
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
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false,"managed":{"deny":[{"kind":"url","argument":null}],"ask":[],"allow":[],"noApproveAll":false}}
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
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false,"managed":{"deny":[{"kind":"write","argument":null},{"kind":"url","argument":null}],"ask":[],"allow":[],"noApproveAll":false}}
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
fn what_waits_is_taken_up() {
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
fn after_a_crash_a_resting_session_rests() {
    ignores(&idle().and(queued("m1")).and(elicitation("e")), recover);
}

#[test]
fn after_a_crash_a_message_that_no_model_got_waits_again() {
    check(
        &preparing().and(queued("m2")),
        recover,
        "
        store loopd.loop_ended outcome=interrupted
        now idle queue=[m1 m2]
        ",
    );
    check(
        &calls_started(&["a"])
            .and(completed("a"))
            .and(steering("m2"))
            .and(taken(&["m2"])),
        recover,
        "
        store loopd.loop_ended outcome=interrupted
        now idle queue=[m2]
        ",
    );
}

#[test]
fn after_a_crash_a_model_call_or_slash_command_is_interrupted() {
    check(
        &model_called().and(steering("m2")),
        recover,
        "
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        now idle queue=[m2]
        ",
    );
    check(
        &commanding(),
        recover,
        "
        store loopd.loop_ended outcome=interrupted
        now idle
        ",
    );
}

#[test]
fn after_a_crash_open_questions_stay_open() {
    ignores(&asking(), recover);
    ignores(&user_asked(), recover);
    ignores(
        &two_calls().and(client_asked("a")).and(completed("b")),
        recover,
    );
}

#[test]
fn after_a_crash_a_call_that_ran_has_an_unknown_outcome_and_ends_the_turn() {
    check(
        &two_calls(),
        recover,
        "
        store tool.execution_complete a interrupted OUTCOME_UNKNOWN turn=0
        store tool.execution_complete b interrupted OUTCOME_UNKNOWN turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        now idle
        ",
    );
    check(
        &two_calls().and(permission_asked("b", write("/work/file"))),
        recover,
        "
        store tool.execution_complete a interrupted OUTCOME_UNKNOWN turn=0
        store permission.completed r-b b cancelled
        store tool.execution_complete b interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        now idle
        ",
    );
    check(
        &two_calls().and(client_asked("b")),
        recover,
        "
        store tool.execution_complete a interrupted OUTCOME_UNKNOWN turn=0
        tell external_tool.completed requestId=r-b
        store tool.execution_complete b interrupted OUTCOME_UNKNOWN turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        now idle
        ",
    );
    check(
        &two_calls().and(question("b")),
        recover,
        "
        store tool.execution_complete a interrupted OUTCOME_UNKNOWN turn=0
        store loopd.answered requestId=r-b
        store tool.execution_complete b interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        now idle
        ",
    );
}

#[test]
fn a_crash_during_an_abort_ends_the_turn() {
    check(
        &aborting(),
        recover,
        "
        store tool.execution_complete a interrupted OUTCOME_UNKNOWN turn=0
        store tool.execution_complete b interrupted OUTCOME_UNKNOWN turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        now idle
        ",
    );
}

#[test]
fn after_a_crash_the_commands_of_people_have_an_unknown_outcome() {
    check(
        &idle().and(user_command("u")),
        recover,
        "
        store tool.execution_complete u interrupted OUTCOME_UNKNOWN by_user=true
        now idle
        ",
    );
}

#[test]
fn after_a_crash_tasks_are_closed_as_their_own_logs_say() {
    let tasks = || idle().and(task("x", agent("x")));
    check(
        &tasks(),
        recover,
        "
        store loopd.task_ended x failed AGENT_LOST
        tell session.background_tasks_changed
        store subagent.failed call-x explore ms=2000 AGENT_LOST
        now idle tasks=[x:ended!]
        ",
    );
    check(
        &tasks(),
        || recover_answered("x"),
        "
        store loopd.task_answered x done
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000
        now idle tasks=[x:idle!]
        ",
    );
    check(
        &tasks(),
        || recover_failed("x"),
        r#"
        store loopd.task_ended x failed "no model"
        tell session.background_tasks_changed
        store subagent.failed call-x explore ms=2000 "no model"
        now idle tasks=[x:ended!]
        "#,
    );
    check(
        &idle().and(task("sh", shell("sh"))),
        recover,
        "
        store loopd.task_ended sh failed SHELL_LOST
        tell session.background_tasks_changed
        now idle tasks=[sh:ended!]
        ",
    );
}

#[test]
fn what_outlives_the_daemon_goes_on_after_a_crash() {
    ignores(
        &idle()
            .and(task("d", detached("d")))
            .and(task("e", external())),
        recover,
    );
}

#[test]
fn a_suspended_session_stops_and_keeps_what_waits() {
    check(
        &idle(),
        suspend,
        "
        do cancel turn
        do cancel agents
        now idle
        ",
    );
    check(
        &preparing().and(queued("m2")),
        suspend,
        "
        do cancel turn
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        do cancel agents
        now idle queue=[m1 m2]
        ",
    );
    check(
        &two_calls().and(user_command("u")),
        suspend,
        "
        do cancel turn
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store tool.execution_complete b interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        store tool.execution_complete u interrupted INTERRUPTED by_user=true
        do cancel agents
        now idle
        ",
    );
}

#[test]
fn a_suspended_session_ends_what_lives_with_it() {
    let tasks = idle()
        .and(task("d", detached("d")))
        .and(task("sh", shell("sh")))
        .and(task("x", agent("x")));
    check(
        &tasks,
        suspend,
        "
        do cancel turn
        store loopd.task_ended sh cancelled CLOSED
        tell session.background_tasks_changed
        store loopd.task_ended x cancelled CLOSED
        tell session.background_tasks_changed
        store subagent.completed call-x explore ms=2000 cancelled=true
        do cancel agents
        now idle tasks=[d:running sh:ended! x:ended!]
        ",
    );
}

#[test]
fn a_shutdown_tells_what_the_session_took() {
    let past = model_called()
        .and(used(1))
        .and(event("assistant.turn_end", json!({ "turnId": "0" })));
    check(
        &past.and(loop_ended("done")),
        shutdown,
        "
        do cancel turn
        do cancel agents
        store session.shutdown routine requests=1 ms=10 calls=1
        now idle closed
        ",
    );
    check(
        &idle(),
        || shutdown_by("disk full"),
        r#"
        do cancel turn
        do cancel agents
        store session.shutdown error error="disk full" requests=0 ms=0
        now idle closed
        "#,
    );
}

#[test]
fn a_shutdown_stops_what_runs() {
    check(
        &client_runs().and(task("sh", shell("sh"))),
        shutdown,
        "
        do cancel turn
        tell external_tool.completed requestId=r-a
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted
        tell assistant.idle aborted=true
        tell session.idle aborted=true interactive
        store loopd.task_ended sh cancelled CLOSED
        tell session.background_tasks_changed
        do cancel agents
        store session.shutdown routine requests=1 ms=0
        now idle tasks=[sh:ended!] closed
        ",
    );
}

#[test]
fn a_closed_session_is_not_closed_again() {
    check(
        &closed(),
        shutdown,
        "
        do cancel turn
        do cancel agents
        now idle closed
        ",
    );
}
