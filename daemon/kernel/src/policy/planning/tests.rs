use serde_json::{Value, json};

use loopd_proto::permission::Permissions;

use super::*;

const PLAN: &str = "/home/plan.md";

fn request(value: Value) -> PermissionRequest {
    serde_json::from_value(value).unwrap_or_else(|error| unreachable!("{error}"))
}

fn write(file: &str, others: &[&str]) -> PermissionRequest {
    request(
        json!({"kind": "write", "intention": "", "fileName": file, "diff": "",
        "canOfferSessionApproval": true, "otherFiles": others}),
    )
}

fn shell() -> PermissionRequest {
    request(
        json!({"kind": "shell", "fullCommandText": "rm x", "intention": "", "commands": [],
        "possiblePaths": [], "possibleUrls": [], "hasWriteFileRedirection": false,
        "canOfferSessionApproval": false}),
    )
}

fn tool() -> PermissionRequest {
    request(json!({"kind": "custom-tool", "toolName": "deploy", "toolDescription": ""}))
}

fn mcp(read_only: bool) -> PermissionRequest {
    request(
        json!({"kind": "mcp", "serverName": "s", "toolName": "t", "toolTitle": "",
        "readOnly": read_only}),
    )
}

/// What becomes of a request in plan mode when the rules allow everything.
fn allowed(request: PermissionRequest, claim: ToolClaim) -> &'static str {
    let everything = Permissions {
        approve_all: true,
        ..Permissions::default()
    };
    outcome(&everything, request, claim)
}

fn outcome(
    permissions: &Permissions,
    request: PermissionRequest,
    claim: ToolClaim,
) -> &'static str {
    if refuses(&request, PLAN) {
        return "refused";
    }
    let granted = Grant::by_rules(permissions, "/work", Some(request));
    match weigh(granted, claim, permissions, PLAN) {
        Ok(_) => "runs",
        Err(NotGranted {
            verdict: Verdict::Deny(_),
            ..
        }) => "denied",
        Err(_) => "asks",
    }
}

#[test]
fn rules_that_allow_everything_do_not_lift_plan_mode() {
    let table = [
        (write("/work/a", &[]), ToolClaim::Nothing, "refused"),
        (write(PLAN, &["/work/a"]), ToolClaim::Nothing, "refused"),
        (write("/home/plan.md.x", &[]), ToolClaim::Nothing, "refused"),
        (write(PLAN, &[]), ToolClaim::Nothing, "runs"),
        // Commands run in a sandbox.
        (shell(), ToolClaim::Nothing, "runs"),
        (tool(), ToolClaim::Nothing, "asks"),
        (tool(), ToolClaim::ReadOnly, "runs"),
        (mcp(false), ToolClaim::Nothing, "asks"),
        // What a server says of itself is no reason to let it run.
        (mcp(true), ToolClaim::Nothing, "asks"),
    ];
    for (request, claim, expected) in table {
        assert_eq!(allowed(request.clone(), claim), expected, "{request:?}");
    }
}

#[test]
fn what_a_server_says_counts_if_a_rule_names_it() {
    let with = |argument: Option<&str>| Permissions {
        approved: vec![loopd_proto::permission::PermissionRule {
            kind: "mcp".to_owned(),
            argument: argument.map(str::to_owned),
        }],
        ..Permissions::default()
    };
    let table = [
        (with(Some("s")), true, "runs"),
        (with(Some("s/t")), true, "runs"),
        (with(Some("s")), false, "asks"),
        (with(Some("s/other")), true, "asks"),
        (with(None), true, "asks"),
    ];
    for (permissions, read_only, expected) in table {
        let found = outcome(&permissions, mcp(read_only), ToolClaim::Nothing);
        assert_eq!(found, expected, "{permissions:?} {read_only}");
    }
}

#[test]
fn without_rules_the_plan_is_written_and_the_rest_asks() {
    let none = Permissions::default();
    let table = [
        (write(PLAN, &[]), "runs"),
        (write("/work/a", &[]), "refused"),
        (shell(), "asks"),
        (tool(), "asks"),
    ];
    for (request, expected) in table {
        let shown = format!("{request:?}");
        assert_eq!(
            outcome(&none, request, ToolClaim::Nothing),
            expected,
            "{shown}"
        );
    }
}

#[test]
fn a_rule_that_denies_counts_in_plan_mode_as_well() {
    let denied = Permissions {
        denied: vec![loopd_proto::permission::PermissionRule {
            kind: "write".to_owned(),
            argument: None,
        }],
        ..Permissions::default()
    };
    assert_eq!(
        outcome(&denied, write(PLAN, &[]), ToolClaim::Nothing),
        "denied"
    );
}

#[test]
fn plan_mode_reaches_everything_below() {
    use Planning::{Agent, Mode, No, Parent};
    let table = [
        (No, No, No),
        (No, Mode, Parent),
        (No, Parent, Parent),
        (No, Agent, Parent),
        (Agent, No, Agent),
        (Agent, Mode, Agent),
        (Mode, No, Mode),
    ];
    for (own, parent, expected) in table {
        assert_eq!(own.below(parent), expected, "{own:?} below {parent:?}");
    }
}
