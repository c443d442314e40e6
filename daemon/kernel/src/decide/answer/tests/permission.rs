//! Decisions of clients about permissions, and which of them last.

use serde_json::{Value, json};

use crate::decide::tests::prelude::*;

/// A session whose call `a` asks for this permission.
fn asks(request: Value) -> Given {
    calls_started(&["a"]).and(permission_asked("a", request))
}

fn for_session() -> Value {
    json!({ "kind": "approve-for-session" })
}

#[test]
fn approved_once_the_call_runs() {
    check(
        &asking(),
        || permit("r-a", json!({ "kind": "approve-once" })),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted write
        now turn i/0 [a:decided]
        ",
    );
}

#[test]
fn a_rule_that_denies_meanwhile_wins_over_a_yes() {
    for yes in ["approve-once", "approve-for-session"] {
        check(
            &asks(command_line("rm x")).and(permissions(json!({
                "denied": [{"kind": "shell", "argument": "rm"}],
            }))),
            || permit("r-a", json!({ "kind": yes })),
            r#"
            answer yes
            store permission.completed r-a a denied-by-rules
            store tool.execution_complete a denied "Permission denied by the rule shell(rm)." turn=0
            store assistant.turn_end turnId=0
            store assistant.turn_start i 1
            do call model i/1
            now turn i/1 model called
            "#,
        );
    }
}

#[test]
fn approved_for_the_session_the_next_call_needs_no_question() {
    check(
        &asking(),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"write"}]
        store permission.completed r-a a approved-for-session approval={"kind":"write"}
        do run i/0 a granted write
        now turn i/0 [a:decided]
        "#,
    );
    check(
        &asks(read("/elsewhere")),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"read"}]
        store permission.completed r-a a approved-for-session approval={"kind":"read"}
        do run i/0 a granted read
        now turn i/0 [a:decided]
        "#,
    );
    check(
        &asks(command_line("git status")),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"shell","argument":"git status"}]
        store permission.completed r-a a approved-for-session approval={"kind":"commands","commandIdentifiers":["git status"]}
        do run i/0 a granted shell
        now turn i/0 [a:decided]
        "#,
    );
    check(
        &asks(mcp_tool("db", "query")),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"mcp","argument":"db/query"}]
        store permission.completed r-a a approved-for-session approval={"kind":"mcp","serverName":"db","toolName":"query"}
        do run i/0 a granted mcp
        now turn i/0 [a:decided]
        "#,
    );
    check(
        &asks(custom_tool("deploy")),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"custom-tool","argument":"deploy"}]
        store permission.completed r-a a approved-for-session approval={"kind":"custom-tool","toolName":"deploy"}
        store external_tool.requested #1 a edit
        now turn i/0 [a:at a client]
        "#,
    );
}

#[test]
fn a_request_that_cannot_be_approved_for_the_session_is_approved_once() {
    check(
        &asks(command_line_of_once("make")),
        || permit("r-a", for_session()),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted shell
        now turn i/0 [a:decided]
        ",
    );
    check(
        &asks(fetch("https://example.com")),
        || permit("r-a", for_session()),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted url
        now turn i/0 [a:decided]
        ",
    );
}

#[test]
fn a_domain_is_approved_for_the_session() {
    let domain = || json!({ "kind": "approve-for-session", "domain": "example.com" });
    check(
        &asks(fetch("https://example.com")),
        || permit("r-a", domain()),
        r#"
        answer yes
        store loopd.permissions permissions={"allowedUrls":["example.com"]}
        store permission.completed r-a a approved
        do run i/0 a granted url
        now turn i/0 [a:decided]
        "#,
    );
}

#[test]
fn a_domain_that_is_approved_again_is_listed_once() {
    let domain = || json!({ "kind": "approve-for-session", "domain": "example.com" });
    let known = permissions(json!({ "allowedUrls": ["example.com"] }));
    check(
        &asks(fetch("https://example.com")).and(known),
        || permit("r-a", domain()),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted url
        now turn i/0 [a:decided]
        ",
    );
}

#[test]
fn a_domain_that_is_approved_for_good_is_approved_for_the_session() {
    let domain = || json!({ "kind": "approve-permanently", "domain": "example.com" });
    check(
        &asks(fetch("https://example.com")),
        || permit("r-a", domain()),
        r#"
        answer yes
        store loopd.permissions permissions={"allowedUrls":["example.com"]}
        store permission.completed r-a a approved
        do run i/0 a granted url
        now turn i/0 [a:decided]
        "#,
    );
}

#[test]
fn a_client_may_approve_something_other_than_the_request() {
    let approval = || json!({ "kind": "approve-for-session", "approval": { "kind": "read" } });
    check(
        &asking(),
        || permit("r-a", approval()),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"read"}]
        store permission.completed r-a a approved-for-session approval={"kind":"read"}
        do run i/0 a granted write
        now turn i/0 [a:decided]
        "#,
    );
}

#[test]
fn an_approval_that_exists_is_not_stored_again() {
    let known = permissions(json!({ "approved": [{ "kind": "write", "argument": null }] }));
    check(
        &asking().and(known),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store permission.completed r-a a approved-for-session approval={"kind":"write"}
        do run i/0 a granted write
        now turn i/0 [a:decided]
        "#,
    );
}

#[test]
fn an_approval_for_a_location_or_for_good_is_remembered() {
    let here = || json!({ "kind": "approve-for-location", "approval": { "kind": "write" }, "locationKey": "/work" });
    check(
        &asking(),
        || permit("r-a", here()),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"write"}]
        do remember at /work {"kind":"write"}
        store permission.completed r-a a approved-for-location approval={"kind":"write"}
        do run i/0 a granted write
        now turn i/0 [a:decided]
        "#,
    );
    check(
        &asking(),
        || permit("r-a", json!({ "kind": "approve-permanently" })),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"write"}]
        do remember always {"kind":"write"}
        store permission.completed r-a a approved
        do run i/0 a granted write
        now turn i/0 [a:decided]
        "#,
    );
    check(
        &asks(fetch("https://example.com")),
        || permit("r-a", json!({ "kind": "approve-permanently" })),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted url
        now turn i/0 [a:decided]
        ",
    );
}

#[test]
fn a_lasting_approval_for_a_sub_agent_is_stored_in_the_top_level_session() {
    check(
        &asking().and(is_subagent(None)),
        || permit("r-a", for_session()),
        r#"
        answer yes
        do grant above {"kind":"write"} -
        store permission.completed r-a a approved-for-session approval={"kind":"write"}
        do run i/0 a granted write
        now turn i/0 [a:decided]
        "#,
    );
    check(
        &asking().and(is_subagent(None)),
        || permit("r-a", json!({ "kind": "approve-once" })),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted write
        now turn i/0 [a:decided]
        ",
    );
}

#[test]
fn a_rejection_ends_the_loop() {
    check(
        &asking(),
        || permit("r-a", json!({ "kind": "reject" })),
        "
        answer yes
        store permission.completed r-a a denied-interactively-by-user
        store tool.execution_complete a rejected REJECTED_BY_USER turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
    let feedback = || json!({ "kind": "reject", "feedback": "not there" });
    check(
        &asking(),
        || permit("r-a", feedback()),
        r#"
        answer yes
        store permission.completed r-a a denied-interactively-by-user feedback="not there"
        store tool.execution_complete a rejected "The user rejected this tool call. User feedback: not there" turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn a_sub_agent_reads_a_rejection_and_goes_on() {
    check(
        &asking().and(is_subagent(None)),
        || permit("r-a", json!({ "kind": "reject", "feedback": "not there" })),
        "
        answer yes
        store permission.completed r-a a denied-interactively-by-user feedback=\"not there\"
        store tool.execution_complete a rejected \"The user rejected this tool call. User feedback: not there\" turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_rejection_waits_for_the_other_calls() {
    let two = two_calls().and(permission_asked("a", write("/work/file")));
    check(
        &two,
        || permit("r-a", json!({ "kind": "reject" })),
        "
        answer yes
        store permission.completed r-a a denied-interactively-by-user
        store tool.execution_complete a rejected REJECTED_BY_USER turn=0
        now turn i/0 [a:done b:started]
        ",
    );
}

#[test]
fn without_a_person_the_call_is_denied_and_the_loop_continues() {
    check(
        &asking(),
        || permit("r-a", json!({ "kind": "user-not-available" })),
        "
        answer yes
        store permission.completed r-a a denied-no-approval-rule-and-could-not-request-from-user
        store tool.execution_complete a denied COULD_NOT_ASK turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
    check(
        &asking(),
        || permit("r-a", json!({ "kind": "cancelled", "reason": "closed" })),
        "
        answer yes
        store permission.completed r-a a cancelled reason=closed
        store tool.execution_complete a denied COULD_NOT_ASK turn=0
        store assistant.turn_end turnId=0
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        ",
    );
}

#[test]
fn a_lasting_approval_in_the_top_level_session_is_stored_once() {
    check(
        &idle(),
        || grant(json!({ "kind": "write" }), Some("example.com")),
        r#"
        answer yes
        store loopd.permissions permissions={"allowedUrls":["example.com"]}
        store loopd.rules_changed added=[{"kind":"write"}]
        now idle
        "#,
    );
    let known = permissions(json!({ "approved": [{ "kind": "write", "argument": null }] }));
    check(
        &idle().and(known),
        || grant(json!({ "kind": "write" }), None),
        "
        answer yes
        now idle
        ",
    );
    check(
        &idle().and(is_subagent(None)),
        || grant(json!({ "kind": "write" }), None),
        r#"
        answer yes
        do grant above {"kind":"write"} -
        now idle
        "#,
    );
}

/// The call `a` asked for permission, and its turn was over before anybody answered.
fn unanswered() -> Given {
    asking()
        .and(event(
            "loopd.permission_unanswered",
            json!({ "requestId": "r-a" }),
        ))
        .and(event(
            "permission.completed",
            json!({ "requestId": "r-a", "toolCallId": "a", "result": { "kind": "cancelled" } }),
        ))
        .and(completed("a"))
        .and(event(
            "loopd.loop_ended",
            json!({ "outcome": "interrupted" }),
        ))
}

#[test]
fn an_answer_after_the_turn_takes_the_queue() {
    check(
        &unanswered(),
        || permit("r-a", json!({ "kind": "approve-once" })),
        "
        answer yes
        store loopd.queued #1 idle last
        tell pending_messages.modified
        store loopd.taken ids=[#1]
        tell pending_messages.modified
        do prepare [#1]
        now preparing [#1]
        ",
    );
    check(
        &unanswered().and(queued("m2")).and(taken(&["m2"])),
        || permit("r-a", json!({ "kind": "reject", "feedback": "rather not" })),
        "
        answer yes
        store loopd.queued #1 queued last
        tell pending_messages.modified
        now preparing [m2] queue=[#1]
        ",
    );
}

#[test]
fn a_lasting_approval_that_comes_late_counts_from_now_on() {
    check(
        &unanswered(),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.rules_changed added=[{"kind":"write"}]
        store loopd.queued #1 idle last
        tell pending_messages.modified
        store loopd.taken ids=[#1]
        tell pending_messages.modified
        do prepare [#1]
        now preparing [#1]
        "#,
    );
}

#[test]
fn a_late_answer_counts_once_and_only_if_a_person_decided() {
    let answered = event(
        "loopd.queued",
        json!({ "place": "last", "item": { "kind": "message", "id": "m2", "prompt": "allowed",
            "delivery": "queued", "answers": "r-a" } }),
    );
    declines(&unanswered().and(answered), || {
        permit("r-a", json!({ "kind": "approve-once" }))
    });
    declines(&unanswered(), || {
        permit("r-a", json!({ "kind": "user-not-available" }))
    });
}
