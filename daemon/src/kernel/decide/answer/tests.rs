//! Answers of clients: the first valid one counts.

use serde_json::{Value, json};

use crate::kernel::decide::tests::given::Given;
use crate::kernel::decide::tests::prelude::*;

/// The call `a` asks for this.
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
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn approved_for_the_session_the_next_call_needs_no_question() {
    check(
        &asking(),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"write","argument":null}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
        store permission.completed r-a a approved-for-session approval={"kind":"write"}
        do run i/0 a granted write
        now turn i/0 [a:started]
        "#,
    );
    check(
        &asks(read("/elsewhere")),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"read","argument":null}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
        store permission.completed r-a a approved-for-session approval={"kind":"read"}
        do run i/0 a granted read
        now turn i/0 [a:started]
        "#,
    );
    check(
        &asks(command_line("git status")),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"shell","argument":"git status"}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
        store permission.completed r-a a approved-for-session approval={"kind":"commands","commandIdentifiers":["git status"]}
        do run i/0 a granted shell
        now turn i/0 [a:started]
        "#,
    );
    check(
        &asks(mcp_tool("db", "query")),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"mcp","argument":"db/query"}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
        store permission.completed r-a a approved-for-session approval={"kind":"mcp","serverName":"db","toolName":"query"}
        do run i/0 a granted mcp
        now turn i/0 [a:started]
        "#,
    );
    check(
        &asks(custom_tool("deploy")),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"custom-tool","argument":"deploy"}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
        store permission.completed r-a a approved-for-session approval={"kind":"custom-tool","toolName":"deploy"}
        do run i/0 a granted custom-tool
        now turn i/0 [a:started]
        "#,
    );
}

#[test]
fn what_cannot_be_approved_for_the_session_is_approved_once() {
    check(
        &asks(command_line_of_once("make")),
        || permit("r-a", for_session()),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted shell
        now turn i/0 [a:started]
        ",
    );
    check(
        &asks(fetch("https://example.com")),
        || permit("r-a", for_session()),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted url
        now turn i/0 [a:started]
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
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":["example.com"],"unrestrictedUrls":false}
        store permission.completed r-a a approved
        do run i/0 a granted url
        now turn i/0 [a:started]
        "#,
    );
}

#[test]
fn a_client_may_approve_something_else_than_was_asked() {
    let approval = || json!({ "kind": "approve-for-session", "approval": { "kind": "read" } });
    check(
        &asking(),
        || permit("r-a", approval()),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"read","argument":null}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
        store permission.completed r-a a approved-for-session approval={"kind":"read"}
        do run i/0 a granted write
        now turn i/0 [a:started]
        "#,
    );
}

#[test]
fn what_is_approved_already_is_not_stored_again() {
    let known = permissions(json!({ "approved": [{ "kind": "write", "argument": null }] }));
    check(
        &asking().and(known),
        || permit("r-a", for_session()),
        r#"
        answer yes
        store permission.completed r-a a approved-for-session approval={"kind":"write"}
        do run i/0 a granted write
        now turn i/0 [a:started]
        "#,
    );
}

#[test]
fn an_approval_for_a_place_or_for_good_is_remembered() {
    let here = || json!({ "kind": "approve-for-location", "approval": { "kind": "write" }, "locationKey": "/work" });
    check(
        &asking(),
        || permit("r-a", here()),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"write","argument":null}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
        do remember at /work {"kind":"write"}
        store permission.completed r-a a approved-for-location approval={"kind":"write"}
        do run i/0 a granted write
        now turn i/0 [a:started]
        "#,
    );
    check(
        &asking(),
        || permit("r-a", json!({ "kind": "approve-permanently" })),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"write","argument":null}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":[],"unrestrictedUrls":false}
        do remember always {"kind":"write"}
        store permission.completed r-a a approved
        do run i/0 a granted write
        now turn i/0 [a:started]
        "#,
    );
    check(
        &asks(fetch("https://example.com")),
        || permit("r-a", json!({ "kind": "approve-permanently" })),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted url
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn what_a_sub_agent_is_allowed_for_good_is_allowed_at_the_top() {
    check(
        &asking().and(is_subagent(None)),
        || permit("r-a", for_session()),
        r#"
        answer yes
        do grant above {"kind":"write"} -
        store permission.completed r-a a approved-for-session approval={"kind":"write"}
        do run i/0 a granted write
        now turn i/0 [a:started]
        "#,
    );
    check(
        &asking().and(is_subagent(None)),
        || permit("r-a", json!({ "kind": "approve-once" })),
        "
        answer yes
        store permission.completed r-a a approved
        do run i/0 a granted write
        now turn i/0 [a:started]
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
fn without_a_person_the_call_is_denied_and_the_loop_goes_on() {
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
fn a_tool_of_a_client_has_its_result() {
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
fn an_answer_to_what_is_not_asked_is_not_accepted() {
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
        now idle
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

#[test]
fn what_a_client_grants_at_the_top_is_stored_once() {
    check(
        &idle(),
        || grant(json!({ "kind": "write" }), Some("example.com")),
        r#"
        answer yes
        store loopd.permissions permissions={"approveAll":false,"approveAllReads":false,"approved":[{"kind":"write","argument":null}],"denied":[],"directories":[],"primaryDirectory":null,"unrestrictedPaths":false,"allowedUrls":["example.com"],"unrestrictedUrls":false}
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
