//! Changes of permissions keep what they do not name.

use serde_json::json;

use crate::command::{PermissionChange, PermissionsPatch, RuleRemoval, RuleSet};
use crate::decide::tests::prelude::*;

/// A session with an approval of each kind.
fn approved() -> Given {
    idle().and(permissions(json!({
        "approved": [{ "kind": "shell", "argument": "ls" }],
        "denied": [{ "kind": "url", "argument": null }],
        "directories": ["/more"], "allowedUrls": ["example.com"],
    })))
}

#[test]
fn a_switch_changes_nothing_else() {
    check(
        &idle(),
        || change_permissions(PermissionChange::ApproveAll(true)),
        r#"
        answer changed AllowAll
        store loopd.permissions permissions={"approveAll":true}
        now idle
        "#,
    );
    check(
        &idle(),
        || change_permissions(PermissionChange::ApproveAll(false)),
        "
        answer unchanged Manual
        now idle
        ",
    );
    check(
        &approved(),
        || change_permissions(PermissionChange::UnrestrictUrls(true)),
        r#"
        answer changed Manual
        store loopd.permissions permissions={"approved":[{"kind":"shell","argument":"ls"}],"denied":[{"kind":"url"}],"directories":["/more"],"allowedUrls":["example.com"],"unrestrictedUrls":true}
        now idle
        "#,
    );
}

#[test]
fn a_launch_that_allows_everything_shows_in_the_mode() {
    check(
        &idle().allowing_all(),
        || change_permissions(PermissionChange::ApproveAll(false)),
        "
        answer unchanged AllowAll
        now idle
        ",
    );
    let managed = permissions(json!({ "managed": { "noApproveAll": true } }));
    check(
        &idle().allowing_all().and(managed),
        || change_permissions(PermissionChange::ApproveAll(false)),
        "
        answer unchanged Manual
        now idle
        ",
    );
}

#[test]
fn rules_are_added_once() {
    let list = || json!([{ "kind": "shell", "argument": "ls" }]);
    check(
        &idle(),
        || approve(list()),
        r#"
        answer changed Manual
        store loopd.rules_changed added=[{"kind":"shell","argument":"ls"}]
        now idle
        "#,
    );
    let known = || permissions(json!({ "approved": list() }));
    check(
        &idle().and(known()),
        || approve(list()),
        "
        answer unchanged Manual
        now idle
        ",
    );
    check(
        &idle().and(known()),
        || approve(json!([{ "kind": "shell", "argument": "ls" }, { "kind": "read" }])),
        r#"
        answer changed Manual
        store loopd.rules_changed added=[{"kind":"read"}]
        now idle
        "#,
    );
}

#[test]
fn rules_are_removed_before_others_are_added() {
    let read = || json!([{ "kind": "read", "argument": null }]);
    let both = || {
        permissions(
            json!({ "approved": [{ "kind": "read", "argument": null }, { "kind": "write", "argument": null }] }),
        )
    };
    check(
        &idle().and(both()),
        || modify_rules(read(), json!([])),
        r#"
        answer changed Manual
        store loopd.rules_changed removed=[{"kind":"read"}]
        now idle
        "#,
    );
    check(
        &idle().and(both()),
        || modify_rules(read(), read()),
        r#"
        answer changed Manual
        store loopd.rules_changed removed=[{"kind":"read"}] added=[{"kind":"read"}]
        now idle
        "#,
    );
    check(
        &idle().and(both()),
        || {
            change_permissions(PermissionChange::ModifyRules {
                remove: RuleRemoval::All,
                add: Vec::new(),
            })
        },
        "
        answer changed Manual
        store loopd.rules_changed removedAll=true
        now idle
        ",
    );
}

#[test]
fn directories_are_added_once_and_the_primary_one_is_set() {
    check(
        &idle(),
        || change_permissions(PermissionChange::AddDirectory("/more".to_owned())),
        r#"
        answer changed Manual
        store loopd.permissions permissions={"directories":["/more"]}
        now idle
        "#,
    );
    check(
        &approved(),
        || change_permissions(PermissionChange::AddDirectory("/more".to_owned())),
        "
        answer unchanged Manual
        now idle
        ",
    );
    check(
        &idle(),
        || change_permissions(PermissionChange::SetPrimaryDirectory("/main".to_owned())),
        r#"
        answer changed Manual
        store loopd.permissions permissions={"primaryDirectory":"/main"}
        now idle
        "#,
    );
}

#[test]
fn a_reset_removes_what_people_approved() {
    check(
        &approved(),
        || change_permissions(PermissionChange::Reset),
        r#"
        answer changed Manual
        store loopd.permissions permissions={"denied":[{"kind":"url"}],"directories":["/more"]}
        now idle
        "#,
    );
}

#[test]
fn a_configuration_replaces_what_it_names() {
    check(
        &approved(),
        || configure_permissions(PermissionsPatch::default()),
        "
        answer unchanged Manual
        now idle
        ",
    );
    check(
        &approved(),
        || {
            configure_permissions(PermissionsPatch {
                approve_all_reads: Some(true),
                rules: Some(RuleSet::default()),
                extra_directory: Some("/tmp".to_owned()),
                ..PermissionsPatch::default()
            })
        },
        r#"
        answer changed Manual
        store loopd.permissions permissions={"approveAllReads":true,"directories":["/more","/tmp"],"allowedUrls":["example.com"]}
        now idle
        "#,
    );
    check(
        &approved(),
        || {
            configure_permissions(PermissionsPatch {
                directories: Some(vec!["/tmp".to_owned()]),
                extra_directory: Some("/tmp".to_owned()),
                primary_directory: Some("/main".to_owned()),
                unrestricted_paths: Some(true),
                unrestricted_urls: Some(true),
                allowed_urls: Some(Vec::new()),
                ..PermissionsPatch::default()
            })
        },
        r#"
        answer changed Manual
        store loopd.permissions permissions={"approved":[{"kind":"shell","argument":"ls"}],"denied":[{"kind":"url"}],"directories":["/tmp"],"primaryDirectory":"/main","unrestrictedPaths":true,"unrestrictedUrls":true}
        now idle
        "#,
    );
}

#[test]
fn clients_cannot_change_managed_rules() {
    let managed = || idle().and(permissions(json!({ "managed": { "noApproveAll": true } })));
    check(
        &managed(),
        || {
            configure_permissions(PermissionsPatch {
                approve_all_reads: Some(true),
                ..PermissionsPatch::default()
            })
        },
        r#"
        answer changed Manual
        store loopd.permissions permissions={"approveAllReads":true,"managed":{"noApproveAll":true}}
        now idle
        "#,
    );
    let refused = "
        refused the managed settings of this session do not let anybody approve everything at once
        now idle
        ";
    check(
        &managed(),
        || change_permissions(PermissionChange::ApproveAll(true)),
        refused,
    );
    check(
        &managed(),
        || {
            configure_permissions(PermissionsPatch {
                approve_all: Some(true),
                ..PermissionsPatch::default()
            })
        },
        refused,
    );
}

#[test]
fn a_session_with_an_earlier_approve_all_can_change_other_settings() {
    let both = permissions(json!({ "approveAll": true, "managed": { "noApproveAll": true } }));
    check(
        &idle().and(both),
        || approve(json!([{ "kind": "read", "argument": null }])),
        r#"
        answer changed Manual
        store loopd.rules_changed added=[{"kind":"read"}]
        now idle
        "#,
    );
}
