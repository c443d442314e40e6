//! Hooks in the loop.

mod plan_mode;

use loopd_proto::event::Durable;
use serde_json::json;

use crate::command::Command;
use crate::decide::tests::prelude::*;
use crate::guards::{ClientGuards, GuardJoined, GuardLeft, LiftScope};
use crate::hook::HookVerdict;

/// The model asked for these calls, and the hooks are asked about them.
fn requested(calls: &[&str]) -> Given {
    let requests: Vec<_> = calls
        .iter()
        .map(|id| json!({ "toolCallId": id, "name": "edit", "arguments": {}, "type": "function" }))
        .collect();
    model_called().with_hooks().and(event(
        "assistant.message",
        json!({ "messageId": "reply", "content": "", "toolRequests": requests }),
    ))
}

/// The call waits for the client whose hooks guard the session.
fn waits_for_guard(call: &str) -> Durable {
    event(
        "loopd.asked",
        json!({ "kind": "guard", "requestId": format!("r-{call}"), "toolCallId": call }),
    )
}

/// The model has answered, and the hooks are asked whether the loop may end.
fn answered() -> Given {
    requested(&[])
}

#[test]
fn hooks_are_asked_before_a_call_starts() {
    check(
        &model_called().with_hooks(),
        || replied_with_calls(0, &["a"]),
        r#"
        tell assistant.usage calls=1 tool_calls conversation-agent
        store loopd.usage credits=0
        store assistant.message "" [a] of=m1 turn=0
        do guard i/0 a
        now turn i/0 [a:requested]
        "#,
    );
}

#[test]
fn a_call_that_hooks_let_pass_starts() {
    check(
        &requested(&["a"]),
        || guarded("a", HookVerdict::None),
        "
        store tool.execution_start a edit turn=0
        do assess i/0 a edit
        now turn i/0 [a:started]
        ",
    );
    check(
        &requested(&["a"]),
        || guarded("a", HookVerdict::Allow),
        "
        store tool.execution_start a edit turn=0
        do assess i/0 a edit hooks allow
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn a_call_that_hooks_deny_does_not_start() {
    check(
        &requested(&["a", "b"]),
        || guarded("a", denies()),
        r#"
        store tool.execution_start a edit turn=0
        store tool.execution_complete a no denied "for people" turn=0
        now turn i/0 [a:done b:requested]
        "#,
    );
}

#[test]
fn changed_arguments_run_and_are_in_the_conversation() {
    let changed = || {
        let mut guarded = guarded("a", HookVerdict::Allow);
        guarded.arguments = Some(json!({ "path": "other" }));
        guarded.context = vec!["mind the path".to_owned()];
        guarded
    };
    check(
        &requested(&["a"]),
        changed,
        r#"
        store tool.execution_start a edit turn=0
        store loopd.context_added text="mind the path" toolCallId=a
        do assess i/0 a edit hooks allow
        now turn i/0 [a:started]
        "#,
    );
    let after = requested(&["a"])
        .and(event(
            "tool.execution_start",
            json!({ "toolCallId": "a", "toolName": "edit", "arguments": { "path": "other" } }),
        ))
        .and(event(
            "loopd.context_added",
            json!({ "text": "mind the path", "toolCallId": "a" }),
        ))
        .and(completed("a"))
        .and(turn_started(1))
        .state();
    let messages = crate::context::messages(&after);
    let shown = format!("{messages:?}");
    assert!(shown.contains("other"), "{shown}");
    assert!(
        shown.rfind("mind the path") > shown.rfind("ToolResult"),
        "the text of a hook comes after the results: {shown}"
    );
}

#[test]
fn a_call_waits_while_the_client_that_guards_it_is_not_there() {
    let absent = || Command::GuardAbsent {
        turn: turn(0),
        call: "a".into(),
        missing: ClientGuards::of(["x"]),
    };
    check(
        &requested(&["a"]),
        absent,
        r#"
        store loopd.asked kind=guard requestId=#1 toolCallId=a
        store session.warning warningType=guard_absent message="A tool call waits: the hooks of the app `x` guard this session, and no c…"
        now turn i/0 [a:guarding]
        "#,
    );
    let waiting = || requested(&["a"]).and(waits_for_guard("a"));
    ignores(&waiting(), absent);
    check(
        &waiting(),
        || Command::GuardsChanged,
        "
        do guard i/0 a
        now turn i/0 [a:guarding]
        ",
    );
    check(
        &waiting(),
        || guarded("a", HookVerdict::None),
        "
        store loopd.answered requestId=r-a
        store tool.execution_start a edit turn=0
        do assess i/0 a edit
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn nothing_but_a_guard_moves_a_call_that_waits_for_one() {
    let waiting = || requested(&["a"]).and(waits_for_guard("a"));
    ignores(&waiting(), || needs_nothing("a"));
    ignores(&waiting(), || finished(0, "a", ok()));
}

#[test]
fn a_call_that_waits_for_its_guard_survives_the_daemon() {
    check(
        &requested(&["a"]).and(waits_for_guard("a")),
        || Command::Recover(Vec::new()),
        "
        now turn i/0 [a:guarding]
        ",
    );
    check(
        &requested(&["a"]),
        || Command::Recover(Vec::new()),
        "
        store tool.execution_start a edit turn=0
        store tool.execution_complete a interrupted INTERRUPTED turn=0
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=interrupted resumable=true
        now idle
        ",
    );
}

#[test]
fn a_hook_answers_what_a_person_would_be_asked() {
    check(
        &calls_started(&["a"]).with_hooks(),
        || needs("a", write("/work/file")).after_hooks(HookVerdict::Allow),
        "
        do run i/0 a granted write
        now turn i/0 [a:started]
        ",
    );
    check(
        &calls_started(&["a"]).with_hooks(),
        || needs("a", write("/work/file")),
        "
        do ask hooks i/0 a
        now turn i/0 [a:started]
        ",
    );
    let request = || {
        let mut request = write("/work/file");
        if let Some(members) = request.as_object_mut() {
            members.insert("toolCallId".to_owned(), json!("a"));
        }
        request
    };
    check(
        &calls_started(&["a"]).with_hooks(),
        || hooks_answered(request(), HookVerdict::Allow),
        "
        store permission.requested #1 write a prompt=write
        store permission.completed #1 a approved
        do run i/0 a granted write
        now turn i/0 [a:decided]
        ",
    );
    check(
        &calls_started(&["a", "b"]).with_hooks(),
        || hooks_answered(request(), denies()),
        r#"
        store permission.requested #1 write a prompt=write
        store permission.completed #1 a denied-by-permission-request-hook
        store tool.execution_complete a no denied "for people" turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
    check(
        &calls_started(&["a"]).with_hooks(),
        || hooks_answered(request(), HookVerdict::None),
        "
        store permission.requested #1 write a prompt=write
        now turn i/0 [a:asking]
        ",
    );
}

#[test]
fn a_hook_never_lifts_a_deny_rule() {
    let denying = || {
        calls_started(&["a", "b"]).with_hooks().and(event(
            "loopd.permissions",
            json!({ "permissions": { "approved": [], "denied": [{ "kind": "write", "argument": null }] } }),
        ))
    };
    check(
        &denying(),
        || needs("a", write("/work/file")).after_hooks(HookVerdict::Allow),
        r#"
        store tool.execution_complete a denied "Permission denied by the rule write." turn=0
        now turn i/0 [a:done b:started]
        "#,
    );
}

#[test]
fn a_hook_that_asks_wants_a_person_whatever_the_rules_allow() {
    let ask = || HookVerdict::Ask(Some("sure?".to_owned()));
    check(
        &calls_started(&["a"]).with_hooks().allowing_all(),
        || needs("a", write("/work/file")).after_hooks(ask()),
        "
        do ask hooks i/0 a
        now turn i/0 [a:started]
        ",
    );
    check(
        &calls_started(&["a"]).with_hooks().allowing_all(),
        || needs_nothing("a").after_hooks(ask()),
        "
        do ask hooks i/0 a
        now turn i/0 [a:started]
        ",
    );
}

#[test]
fn hooks_may_deny_what_a_person_has_to_decide_and_not_allow_it() {
    let answered = |verdict: HookVerdict| {
        let mut request = write("/work/file");
        if let Some(members) = request.as_object_mut() {
            members.insert("toolCallId".to_owned(), json!("a"));
        }
        let mut answered = hooks_answered(request, verdict);
        if let Command::HooksAnswered { asked, .. } = &mut answered {
            asked.for_a_person = true;
        }
        answered
    };
    check(
        &calls_started(&["a"]).with_hooks(),
        || answered(HookVerdict::Allow),
        "
        store permission.requested #1 write a prompt=write
        now turn i/0 [a:asking]
        ",
    );
}

#[test]
fn hooks_are_asked_whether_the_loop_may_end() {
    check(
        &model_called().with_hooks(),
        || replied(0),
        "
        tell assistant.usage calls=0 stop conversation-agent
        store loopd.usage credits=0
        store assistant.message hi [] of=m1 turn=0
        do ask stop i/0
        now turn i/0 []
        ",
    );
    check(
        &answered(),
        || stop_answered(None),
        "
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        ",
    );
    check(
        &answered(),
        || stop_answered(Some("test it")),
        r#"
        store assistant.turn_end turnId=0
        store loopd.stop_blocked reason="test it" count=1
        store loopd.reminded text="test it"
        store assistant.turn_start i 1
        do call model i/1
        now turn i/1 model called
        "#,
    );
}

#[test]
fn after_too_many_blocks_the_loop_ends() {
    let blocked = event(
        "loopd.stop_blocked",
        json!({ "reason": "again", "count": 2 }),
    );
    check(
        &answered().and(blocked),
        || stop_answered(Some("again")),
        r#"
        store session.warning warningType=stop_hook_limit message="Hooks kept the agent from stopping 2 times in a row; now it stops. `stop…"
        store assistant.turn_end turnId=0
        store loopd.loop_ended outcome=done
        tell assistant.idle
        tell session.idle interactive
        now idle
        "#,
    );
}

#[test]
fn a_late_answer_to_a_stop_changes_nothing() {
    ignores(&idle().with_hooks(), || stop_answered(Some("again")));
    ignores(&calls_started(&["a"]).with_hooks(), || {
        stop_answered(Some("again"))
    });
}

fn joined(present: &[&'static str]) -> Command {
    Command::GuardJoined(GuardJoined {
        present: ClientGuards::of(present.iter().copied()),
        returns: None,
    })
}

#[test]
fn the_log_remembers_which_apps_guard_the_session() {
    check(
        &idle(),
        || joined(&[""]),
        "
        answer yes
        store loopd.client_guard byClient=true
        now idle
        ",
    );
    let guarded = || idle().and(event("loopd.client_guard", json!({ "byClient": true })));
    declines(&guarded(), || joined(&[""]));
    assert_eq!(guarded().state().guards, ClientGuards::of([""]));
    let apps = json!([{"name": "a", "count": 2}]);
    let event = event(
        "loopd.client_guard",
        json!({"byClient": true, "apps": apps}),
    );
    let two = idle().and(event);
    assert_eq!(two.state().guards, ClientGuards::of(["a", "a"]));
    declines(&two, || joined(&["a"]));
}

#[test]
fn a_client_that_leaves_by_its_own_will_is_not_waited_for() {
    let guarded = || idle().and(event("loopd.client_guard", json!({ "byClient": true })));
    let left = |others_stay| {
        move || {
            Command::GuardLeft(GuardLeft {
                name: String::new(),
                others_stay,
            })
        }
    };
    check(
        &guarded(),
        left(false),
        "
        answer yes
        store loopd.client_guard byClient=false
        now idle
        ",
    );
    check(
        &guarded(),
        left(true),
        r#"
        answer yes
        store loopd.client_guard byClient=false
        store session.warning warningType=guard_left message="The hooks of an app do not guard this session any more: it has left the …"
        now idle
        "#,
    );
    declines(&idle(), left(true));
}

#[test]
fn calls_that_wait_for_a_guard_go_on_when_it_is_lifted() {
    let waiting = requested(&["a"])
        .and(event("loopd.client_guard", json!({ "byClient": true })))
        .and(waits_for_guard("a"));
    check(
        &waiting,
        || Command::LiftGuards(LiftScope::Gone),
        "
        answer lifted an app, stays nobody
        store loopd.client_guard byClient=false
        store session.warning warningType=guard_lifted message=\"The hooks of an app do not guard this session any more: somebody lifted …\"
        do guard i/0 a
        now turn i/0 [a:guarding]
        ",
    );
}

/// A guard that is not there has not answered: the call waits, and all hooks are asked again.
#[test]
fn a_permission_waits_while_the_client_that_guards_it_is_not_there() {
    let absent = || {
        let Command::HooksAnswered { asked, .. } =
            hooks_answered(write("/work/file"), HookVerdict::None)
        else {
            return Command::GuardsChanged;
        };
        Command::HooksAbsent {
            asked,
            missing: ClientGuards::of(["x"]),
        }
    };
    check(
        &calls_started(&["a"]).with_hooks(),
        absent,
        r#"
        store loopd.asked kind=guard requestId=#1 toolCallId=a
        store session.warning warningType=guard_absent message="A tool call waits: the hooks of the app `x` guard this session, and no c…"
        now turn i/0 [a:guarding]
        "#,
    );
    let waiting = || calls_started(&["a"]).with_hooks().and(waits_for_guard("a"));
    check(
        &waiting(),
        || guarded("a", HookVerdict::None),
        "
        store loopd.answered requestId=r-a
        do assess i/0 a edit
        now turn i/0 [a:started]
        ",
    );
    ignores(&waiting(), || {
        hooks_answered(write("/work/file"), HookVerdict::Allow)
    });
}
