use loopd_proto::permission::ShellCommand;

use super::*;

fn shell(identifiers: &[&str], plain: bool) -> PermissionRequest {
    PermissionRequest::Shell {
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
    assert_eq!(judge(&permissions, request), *expected);
}

#[test]
fn nothing_said_means_ask() {
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
        judge(&permissions, &shell(&["git status", "rm"], false)),
        Verdict::Deny(rule("shell", Some("rm")))
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
fn an_opaque_command_never_matches_a_narrow_allowance() {
    check(
        &[rule("shell", Some("git status"))],
        &[],
        &shell(&["git status"], false),
        &Verdict::Ask,
    );
}

#[test]
fn a_path_rule_covers_parts_of_paths_not_letters() {
    let read = |path: &str| PermissionRequest::Read {
        tool_call_id: None,
        intention: String::new(),
        path: path.to_owned(),
    };
    let home = [rule("read", Some("/home/ann"))];
    check(&home, &[], &read("/home/ann/notes"), &Verdict::Allow);
    check(&home, &[], &read("/home/annabel/notes"), &Verdict::Ask);
}

#[test]
fn a_url_rule_does_not_reach_another_host() {
    assert!(covers_url("https://example.com", "https://example.com/a"));
    assert!(!covers_url(
        "https://example.com",
        "https://example.com.evil.net/"
    ));
}
