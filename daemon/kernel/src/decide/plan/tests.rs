//! Plan mode: what is refused, who is asked, and how it ends.

use serde_json::json;

use loopd_proto::session::Mode;

use crate::command::Command;
use crate::decide::tests::prelude::*;
use crate::hook::HookVerdict;

#[test]
fn a_plan_is_a_question_to_people() {
    check(
        &planning(),
        || proposes_a_plan("a"),
        "
        store loopd.asked kind=exitplanmode requestId=#1 summary=Short planContent=Long actions=[interactive exit_only] recommendedAction=interactive model=gpt toolCallId=a isNew=true
        tell exit_plan_mode.requested requestId=#1 summary=Short planContent=Long actions=[interactive exit_only] recommendedAction=interactive model=gpt
        do ask clients #1
        now turn i/0 [a:asking the user]
        ",
    );
}

#[test]
fn outside_of_plan_mode_nobody_is_asked() {
    check(
        &calls_started(&["a"]),
        || proposes_a_plan("a"),
        r#"
        store tool.execution_complete a failure "The session is not in plan mode, so there is nothing to leave. Go on." turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn an_approved_plan_ends_plan_mode() {
    check(
        &plan_asked(),
        || answer_plan("r-a", json!({"approved": true})),
        r#"
        answer yes
        store loopd.answered requestId=r-a
        tell exit_plan_mode.completed requestId=r-a approved=true selectedAction=interactive
        do withdraw r-a
        store session.mode_changed previousMode=plan newMode=interactive
        store tool.execution_complete a "Plan approved! Exited plan mode.\n\nYou are now in interactive mode. Start…" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
    check(
        &plan_asked(),
        || {
            let answer =
                json!({"approved": true, "selectedAction": "autopilot", "autoApproveEdits": true});
            answer_plan("r-a", answer)
        },
        r#"
        answer yes
        store loopd.answered requestId=r-a
        tell exit_plan_mode.completed requestId=r-a approved=true selectedAction=autopilot autoApproveEdits=true
        do withdraw r-a
        store session.mode_changed previousMode=plan newMode=autopilot
        store loopd.rules_changed added=[{"kind":"write"}]
        store tool.execution_complete a "Plan approved! Exited plan mode.\n\nYou are now in autopilot mode. Carry t…" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn an_approved_plan_closes_the_question_about_another_plan_of_the_same_answer() {
    let other = event(
        "loopd.asked",
        json!({ "kind": "exitplanmode", "requestId": "r-b", "summary": "Other", "planContent": "Other",
            "actions": ["interactive"], "recommendedAction": "interactive", "toolCallId": "b" }),
    );
    let two = calls_started(&["a", "b"]).and(event(
        "session.mode_changed",
        json!({ "previousMode": "interactive", "newMode": "plan" }),
    ));
    let first = event(
        "loopd.asked",
        json!({ "kind": "exitplanmode", "requestId": "r-a", "summary": "Short", "planContent": "Long",
            "actions": ["autopilot", "interactive"], "recommendedAction": "interactive", "toolCallId": "a" }),
    );
    check(
        &two.and(first).and(other),
        || answer_plan("r-a", json!({"approved": true})),
        r#"
        answer yes
        store loopd.answered requestId=r-a
        tell exit_plan_mode.completed requestId=r-a approved=true selectedAction=interactive
        do withdraw r-a
        store session.mode_changed previousMode=plan newMode=interactive
        store loopd.answered requestId=r-b
        tell exit_plan_mode.completed requestId=r-b
        do withdraw r-b
        store tool.execution_complete b failure "The user has approved the plan of another call of exit_plan_mode, and pl…" turn=0
        store tool.execution_complete a "Plan approved! Exited plan mode.\n\nYou are now in interactive mode. Start…" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn a_plan_that_is_not_approved_leaves_the_session_in_plan_mode() {
    check(
        &plan_asked(),
        || answer_plan("r-a", json!({"approved": false, "feedback": "smaller"})),
        r#"
        answer yes
        store loopd.answered requestId=r-a
        tell exit_plan_mode.completed requestId=r-a approved=false feedback=smaller
        do withdraw r-a
        store tool.execution_complete a "The plan was not approved, and the session is still in plan mode. Change…" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn a_message_that_steers_begins_plan_mode_anew_after_an_approved_plan() {
    let steering = || {
        event(
            "loopd.queued",
            json!({ "item": { "kind": "message", "id": "m2", "prompt": "more", "agentMode": "plan",
                "switchesTo": "plan", "delivery": "steering" }, "place": "steering" }),
        )
    };
    check(
        &plan_asked().and(steering()),
        || answer_plan("r-a", json!({"approved": true})),
        r#"
        answer yes
        store loopd.answered requestId=r-a
        tell exit_plan_mode.completed requestId=r-a approved=true selectedAction=interactive
        do withdraw r-a
        store session.mode_changed previousMode=plan newMode=interactive
        store tool.execution_complete a "Plan approved! Exited plan mode.\n\nYou are now in interactive mode. Start…" turn=0
        store assistant.turn_end turnId=0
        store loopd.taken ids=[m2]
        tell pending_messages.modified
        store session.mode_changed previousMode=interactive newMode=plan
        do prepare [m2]
        now preparing [m2] into i/0
        "#,
    );
}

#[test]
fn hooks_are_asked_in_plan_mode_and_lift_nothing() {
    let looks = || json!({ "kind": "custom-tool", "toolName": "t", "toolDescription": "", "toolCallId": "a" });
    check(
        &planning().with_hooks(),
        || needs("a", looks()),
        "
        do ask hooks i/0 a
        now turn i/0 [a:started]
        ",
    );
    for verdict in [HookVerdict::Allow, HookVerdict::None] {
        check(
            &planning().with_hooks(),
            || hooks_answered(looks(), verdict.clone()),
            "
            store permission.requested #1 custom-tool a prompt=custom-tool
            now turn i/0 [a:asking]
            ",
        );
    }
}

#[test]
fn an_action_that_was_not_offered_is_refused() {
    for action in ["exit_only", "autopilot_fleet"] {
        let answer = json!({"approved": true, "selectedAction": action});
        check(
            &plan_asked(),
            || answer_plan("r-a", answer.clone()),
            &format!(
                "
                refused the action {action} was not offered with this plan; choose one of its `actions`
                now turn i/0 [a:asking the user]
                "
            ),
        );
    }
}

#[test]
fn a_fleet_that_cannot_begin_any_more_is_refused_and_the_question_stays() {
    let asked = json!({"kind": "exitplanmode", "requestId": "r-b", "summary": "Short",
        "planContent": "Long", "actions": ["autopilot_fleet"],
        "recommendedAction": "autopilot_fleet", "toolCallId": "a", "isNew": true});
    let answer = json!({"approved": true, "selectedAction": "autopilot_fleet"});
    check(
        &planning().and(event("loopd.asked", asked)),
        || answer_plan("r-b", answer.clone()),
        "
        refused there are no todos to carry out; give a prompt, or write todos first
        now turn i/0 [a:asking the user]
        ",
    );
}

#[test]
fn an_answer_that_cannot_be_used_leaves_the_session_in_plan_mode() {
    let fails = || Command::ExitPlanModeFailed {
        request: "r-a".into(),
        why: "nonsense".to_owned(),
    };
    check(
        &plan_asked(),
        fails,
        r#"
        answer yes
        store loopd.answered requestId=r-a
        tell exit_plan_mode.completed requestId=r-a approved=false
        do withdraw r-a
        store session.warning warningType=exit_plan_mode_answer message="An app's answer about the plan could not be used, so the session stays i…"
        store tool.execution_complete a failure "The user's answer about the plan could not be read: nonsense. The sessio…" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
    declines(&user_asked(), fails);
}

#[test]
fn a_plan_has_a_result_when_somebody_ends_plan_mode() {
    check(
        &plan_asked(),
        || set_mode(Mode::Interactive),
        r#"
        answer yes
        store session.mode_changed previousMode=plan newMode=interactive
        store loopd.answered requestId=r-a
        tell exit_plan_mode.completed requestId=r-a
        do withdraw r-a
        store tool.execution_complete a "The user ended plan mode without an answer to the plan. The session is i…" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn an_answer_of_another_kind_does_not_count() {
    declines(&plan_asked(), || choose("r-a", "left"));
    declines(&user_asked(), || {
        answer_plan("r-a", json!({"approved": true}))
    });
    declines(&plan_asked(), || {
        answer_plan("r-b", json!({"approved": true}))
    });
}

#[test]
fn what_a_person_says_with_the_approval_reaches_the_model() {
    let next = crate::texts::PlanNext::Begin(Mode::Autopilot);
    let said = crate::texts::plan_approved(next, Some(" only in src "), None);
    assert!(said.ends_with("The user says: only in src"), "{said}");
    let next = crate::texts::PlanNext::Wait;
    let unsaid = crate::texts::plan_approved(next, Some(" "), None);
    assert!(!unsaid.contains("The user says"), "{unsaid}");
}
