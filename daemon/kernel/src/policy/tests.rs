use loopd_proto::permission::ShellCommand;

use super::*;

#[cfg(unix)]
mod denied_reads;
mod denied_ways;
mod denied_writes;

fn shell(identifiers: &[&str], plain: bool) -> PermissionRequest {
    PermissionRequest::Shell {
        managed_approval_required: None,
        tool_call_id: None,
        full_command_text: identifiers.join(" && "),
        intention: String::new(),
        commands: identifiers
            .iter()
            .map(|identifier| ShellCommand {
                identifier: (*identifier).to_owned(),
                read_only: false,
            })
            .collect(),
        possible_paths: Vec::new(),
        possible_urls: Vec::new(),
        has_write_file_redirection: false,
        can_offer_session_approval: plain,
        warning: None,
        resolved_paths: std::collections::BTreeMap::new(),
        resolved_working_directory: None,
        changed_shell: None,
        shell_directories: Vec::new(),
        shell_directory_unknown: None,
        repository_folders: Vec::new(),
        writes_protected: None,
        reached: None,
        typed_before: Vec::new(),
    }
}

fn rule(kind: &str, argument: Option<&str>) -> PermissionRule {
    PermissionRule {
        kind: kind.to_owned(),
        argument: argument.map(str::to_owned),
    }
}

fn check(
    approved: &[PermissionRule],
    denied: &[PermissionRule],
    request: &PermissionRequest,
    expected: &Verdict,
) {
    let permissions = Permissions {
        approved: approved.to_vec(),
        denied: denied.to_vec(),
        ..Permissions::default()
    };
    assert_eq!(judge(&permissions, "/project", request), *expected);
}

#[test]
fn a_request_that_no_rule_covers_is_asked_about() {
    check(&[], &[], &shell(&["git status"], true), &Verdict::Ask);
}

#[test]
fn deny_wins_even_over_approve_all() {
    let permissions = Permissions {
        approve_all: true,
        denied: vec![rule("shell", Some("rm"))],
        ..Permissions::default()
    };
    assert_eq!(
        judge(
            &permissions,
            "/project",
            &shell(&["git status", "rm"], false)
        ),
        Verdict::Deny(vec![rule("shell", Some("rm"))])
    );
}

#[test]
fn every_command_of_a_chain_has_to_be_allowed() {
    let git = [rule("commands", Some("git status"))];
    check(&git, &[], &shell(&["git status"], true), &Verdict::Allow);
    check(
        &git,
        &[],
        &shell(&["git status", "rm"], true),
        &Verdict::Ask,
    );
}

#[test]
fn an_opaque_command_never_matches_a_narrow_allow_rule() {
    check(
        &[rule("shell", Some("git status"))],
        &[],
        &shell(&["git status"], false),
        &Verdict::Ask,
    );
}

#[test]
fn a_path_rule_compares_whole_parts_of_a_path() {
    let read = |path: &str| PermissionRequest::Read {
        managed_approval_required: None,
        tool_call_id: None,
        intention: String::new(),
        path: path.to_owned(),
        also_named: Vec::new(),
    };
    let home = [rule("read", Some("/home/ann"))];
    check(&home, &[], &read("/home/ann/notes"), &Verdict::Allow);
    check(&home, &[], &read("/home/annabel/notes"), &Verdict::Ask);
}

fn read(path: &str, also_named: &[&str]) -> PermissionRequest {
    PermissionRequest::Read {
        managed_approval_required: None,
        tool_call_id: None,
        intention: String::new(),
        path: path.to_owned(),
        also_named: also_named.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn write(files: &[&str]) -> PermissionRequest {
    let mut files = files.iter().map(|name| (*name).to_owned());
    PermissionRequest::Write {
        managed_approval_required: None,
        tool_call_id: None,
        intention: String::new(),
        file_name: files.next().unwrap_or_default(),
        diff: String::new(),
        new_file_contents: None,
        can_offer_session_approval: true,
        other_files: files.collect(),
        also_named: Vec::new(),
        repository_folders: Vec::new(),
    }
}

#[test]
fn a_blanket_rule_stays_inside_the_sessions_directories() {
    let all = [rule("read", None), rule("write", None)];
    check(&all, &[], &read("/project/a", &[]), &Verdict::Allow);
    check(
        &all,
        &[],
        &read("/etc/passwd", &["/project/link"]),
        &Verdict::Ask,
    );
    check(
        &all,
        &[],
        &write(&["/project/a", "/project/b"]),
        &Verdict::Allow,
    );
    check(&all, &[], &write(&["/project/a", "/etc/b"]), &Verdict::Ask);
    let mut permissions = Permissions {
        approved: all.to_vec(),
        directories: vec!["/more".to_owned()],
        ..Permissions::default()
    };
    assert_eq!(
        judge(&permissions, "/project", &read("/more/a", &[])),
        Verdict::Allow
    );
    permissions.approve_all_reads = true;
    assert_eq!(
        judge(&permissions, "/project", &read("/etc/a", &[])),
        Verdict::Ask
    );
    permissions.unrestricted_paths = true;
    assert_eq!(
        judge(&permissions, "/project", &read("/etc/a", &[])),
        Verdict::Allow
    );
}

#[test]
fn every_file_of_a_change_has_to_be_allowed_and_none_denied() {
    let src = [rule("write", Some("/project/src"))];
    check(
        &src,
        &[],
        &write(&["/project/src/a", "/project/src/b"]),
        &Verdict::Allow,
    );
    check(
        &src,
        &[],
        &write(&["/project/src/a", "/project/b"]),
        &Verdict::Ask,
    );
    let secret = [rule("write", Some("/project/src/secret"))];
    let denied = Verdict::Deny(vec![rule("write", Some("/project/src/secret"))]);
    check(
        &src,
        &secret,
        &write(&["/project/src/a", "/project/src/secret/b"]),
        &denied,
    );
}

#[test]
fn a_deny_rule_matches_every_name_of_a_file() {
    let secret = [rule("read", Some("/project/link"))];
    let denied = Verdict::Deny(vec![rule("read", Some("/project/link"))]);
    check(
        &[],
        &secret,
        &read("/project/real/x", &["/project/link/x"]),
        &denied,
    );
}

#[test]
fn a_text_that_may_hide_a_denied_command_is_asked_about_even_under_approve_all() {
    let permissions = Permissions {
        approve_all: true,
        denied: vec![rule("shell", Some("rm"))],
        ..Permissions::default()
    };
    let verdict = |text: &str| judge(&permissions, "/project", &shell(&[text], false));
    assert_eq!(verdict("$(echo r)m x"), Verdict::Ask);
    assert_eq!(verdict("cargo test > log"), Verdict::Allow);
    assert_eq!(
        verdict("cargo test > log; rm x"),
        Verdict::Deny(vec![rule("shell", Some("rm"))])
    );
}

#[test]
fn a_rule_for_a_command_does_not_cover_it_in_a_changed_shell() {
    let request = shell(&["git status"], true).for_changed_shell("because");
    let named = [
        rule("shell", Some("git status")),
        rule("shell", Some("git:*")),
        rule("look", None),
    ];
    check(&named, &[], &request, &Verdict::Ask);
    check(&[rule("shell", None)], &[], &request, &Verdict::Allow);
    // A rule that spells out the words does not cover them either.
    let spelled = [rule("shell", Some("git push --force"))];
    let request = shell(&["git push --force"], false);
    check(&spelled, &[], &request, &Verdict::Allow);
    let request = request.for_changed_shell("because");
    check(&spelled, &[], &request, &Verdict::Ask);
}
