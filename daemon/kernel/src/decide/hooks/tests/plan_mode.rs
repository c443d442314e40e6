//! Hooks that allow everything, in plan mode: they let nothing through that plan mode refuses, or that
//! neither the sandbox nor plan mode itself keeps from changing something.

use loopd_proto::event::Durable;
use serde_json::{Value, json};

use crate::command::{Decision, Effect, Step};
use crate::decide::tests::decided;
use crate::decide::tests::prelude::*;
use crate::hook::HookVerdict;

/// What becomes of the call.
fn end(decision: &Decision) -> &'static str {
    let mut steps = decision.steps.iter();
    let found = steps.find_map(|step| match step {
        Step::Store(Durable::ToolComplete(_)) => Some("refused"),
        Step::Store(Durable::PermissionRequested(asked)) if asked.resolved_by_hook.is_none() => {
            Some("asks a person")
        }
        Step::Do(Effect::AskHooks(_)) => Some("asks"),
        Step::Do(Effect::Run { .. }) | Step::Store(Durable::ExternalToolRequested(_)) => {
            Some("runs")
        }
        Step::Store(_) | Step::Tell(_) | Step::Do(_) => None,
    });
    found.unwrap_or("nothing")
}

fn requests() -> [(&'static str, Value); 9] {
    let shell = json!({"kind": "shell", "fullCommandText": "make", "intention": "", "commands": [],
        "possiblePaths": [], "possibleUrls": [], "hasWriteFileRedirection": false,
        "canOfferSessionApproval": false});
    let mcp = |read_only: bool| {
        json!({"kind": "mcp", "serverName": "s", "toolName": "t", "toolTitle": "",
            "readOnly": read_only})
    };
    let tool = json!({"kind": "custom-tool", "toolName": "deploy", "toolDescription": ""});
    let hook = json!({"kind": "hook", "toolName": "deploy"});
    [
        ("shell", shell),
        (
            "read",
            json!({"kind": "read", "intention": "", "path": "/etc/x"}),
        ),
        ("plan", write("/home/plan.md")),
        ("write", write("/work/file")),
        (
            "url",
            json!({"kind": "url", "intention": "", "url": "https://a.example"}),
        ),
        ("mcp", mcp(false)),
        ("mcp that reads", mcp(true)),
        ("client tool", tool),
        ("hook", hook),
    ]
}

/// The request with the call that it is about.
fn about_a(mut request: Value) -> Value {
    if let Some(members) = request.as_object_mut() {
        members.insert("toolCallId".to_owned(), json!("a"));
    }
    request
}

#[test]
fn a_hook_that_allows_lets_through_only_what_the_sandbox_covers() {
    // Without plan mode, in plan mode after preToolUse, in plan mode after permissionRequest.
    let table = [
        ("shell", "runs", "runs", "asks a person"),
        ("read", "runs", "runs", "asks a person"),
        ("plan", "runs", "runs", "asks a person"),
        ("write", "runs", "refused", "asks a person"),
        ("url", "runs", "asks", "asks a person"),
        ("mcp", "runs", "asks", "asks a person"),
        ("mcp that reads", "runs", "asks", "asks a person"),
        ("client tool", "runs", "asks", "asks a person"),
        ("hook", "runs", "asks", "asks a person"),
    ];
    for ((name, request), (row, free, guarded, permitted)) in requests().into_iter().zip(table) {
        assert_eq!(name, row);
        let request = about_a(request);
        let assessed = || needs("a", request.clone()).after_hooks(HookVerdict::Allow);
        let answered = || hooks_answered(request.clone(), HookVerdict::Allow);
        let acting = calls_started(&["a"]).with_hooks();
        let found = [
            end(&decided(&acting, assessed())),
            end(&decided(&planning().with_hooks(), assessed())),
            end(&decided(&planning().with_hooks(), answered())),
        ];
        assert_eq!(found, [free, guarded, permitted], "{name}");
        assert_eq!(end(&decided(&acting, answered())), "runs", "{name}");
    }
}
