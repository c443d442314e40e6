use loopd_proto::permission::ShellCommand;

use super::super::judge;
use super::*;

fn settings(member: &str, rules: &[&str]) -> ManagedSettingsPermissions {
    let rules = Some(rules.iter().map(|rule| (*rule).to_owned()).collect());
    let mut given = ManagedSettingsPermissions::default();
    match member {
        "deny" => given.deny = rules,
        "ask" => given.ask = rules,
        "allow" => given.allow = rules,
        _ => given.limit_to = rules,
    }
    given
}

fn under(member: &str, rules: &[&str], approve_all: bool) -> Permissions {
    let managed = read(&settings(member, rules), "/work", Some("/home/u")).unwrap();
    Permissions {
        approve_all,
        managed: Some(Box::new(managed)),
        ..Permissions::default()
    }
}

fn shell(text: &str) -> PermissionRequest {
    let identifier = text.split(' ').take(2).collect::<Vec<_>>().join(" ");
    PermissionRequest::Shell {
        managed_approval_required: None,
        tool_call_id: None,
        full_command_text: text.to_owned(),
        intention: String::new(),
        commands: vec![ShellCommand {
            identifier,
            read_only: false,
        }],
        possible_paths: Vec::new(),
        possible_urls: Vec::new(),
        has_write_file_redirection: false,
        can_offer_session_approval: true,
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

fn file(path: &str) -> PermissionRequest {
    PermissionRequest::Read {
        managed_approval_required: None,
        tool_call_id: None,
        intention: String::new(),
        path: path.to_owned(),
        also_named: Vec::new(),
    }
}

fn url(url: &str) -> PermissionRequest {
    PermissionRequest::Url {
        managed_approval_required: None,
        tool_call_id: None,
        intention: String::new(),
        url: url.to_owned(),
    }
}

fn is_denied(permissions: &Permissions, request: &PermissionRequest) -> bool {
    matches!(judge(permissions, "/work", request), Verdict::Deny(_))
}

#[test]
fn a_managed_deny_rule_holds_whatever_else_is_allowed() {
    for (rule, hit, passed) in [
        (
            "Shell(git push)",
            shell("git push origin"),
            shell("git status"),
        ),
        (
            "Shell(git push *)",
            shell("git push origin"),
            shell("git status"),
        ),
        (
            "Bash(git push:*)",
            shell("git push origin"),
            shell("git status"),
        ),
        ("Shell", shell("ls"), file("/work/a")),
        ("Shell(*)", shell("ls"), file("/work/a")),
        ("Read(/etc/**)", file("/etc/passwd"), file("/work/a")),
        ("Read(secret)", file("/work/secret/key"), file("/work/a")),
        ("Read(~/.ssh)", file("/home/u/.ssh/id"), file("/home/u/a")),
        (
            "Domain(*.evil.com)",
            url("https://a.evil.com/x"),
            url("https://evil.org"),
        ),
    ] {
        let permissions = under("deny", &[rule], true);
        assert!(is_denied(&permissions, &hit), "{rule} misses {hit:?}");
        let verdict = judge(&permissions, "/work", &passed);
        assert_eq!(verdict, Verdict::Allow, "{rule} and {passed:?}");
    }
}

#[test]
fn commands_are_asked_about_if_a_deny_rule_names_paths_or_hosts() {
    for rule in ["Read(/etc/**)", "Read", "Write", "Domain(evil.com)"] {
        let permissions = under("deny", &[rule], true);
        let verdict = judge(&permissions, "/work", &shell("make all"));
        assert_eq!(verdict, Verdict::Ask, "{rule}");
    }
}

#[test]
fn ask_rules_hold_under_approve_all() {
    let permissions = under("ask", &["Shell(git push)", "Domain(publish.example)"], true);
    for request in [shell("git push origin"), url("https://publish.example/x")] {
        assert_eq!(
            judge(&permissions, "/work", &request),
            Verdict::Ask,
            "{request:?}"
        );
    }
    assert_eq!(
        judge(&permissions, "/work", &shell("git log")),
        Verdict::Allow
    );
}

#[test]
fn an_allow_list_allows_what_it_names_and_everything_else_is_asked_about() {
    for approve_all in [false, true] {
        let permissions = under("allow", &["Read(**)", "Shell(git status)"], approve_all);
        for request in [file("/anywhere"), shell("git status")] {
            assert_eq!(
                judge(&permissions, "/work", &request),
                Verdict::Allow,
                "{request:?}"
            );
        }
        assert_eq!(
            judge(&permissions, "/work", &shell("git log")),
            Verdict::Ask
        );
    }
    let mut permissions = under("allow", &["Read"], false);
    permissions.denied = vec![PermissionRule {
        kind: "read".to_owned(),
        argument: None,
    }];
    assert!(
        is_denied(&permissions, &file("/work/a")),
        "a deny rule of the session still holds"
    );
}

#[test]
fn a_second_app_can_only_restrict_further() {
    let first = read(&settings("allow", &["Read", "Shell(ls)"]), "/work", None).unwrap();
    let second = read(&settings("allow", &["Read"]), "/work", None).unwrap();
    let both = Permissions {
        managed: Some(Box::new(first.and(second))),
        ..Permissions::default()
    };
    assert_eq!(judge(&both, "/work", &file("/work/a")), Verdict::Allow);
    assert_eq!(judge(&both, "/work", &shell("ls")), Verdict::Ask);
}

#[test]
fn approve_all_can_be_disabled() {
    let given = ManagedSettingsPermissions {
        disable_bypass_permissions_mode: Some("a word of tomorrow".to_owned()),
        ..ManagedSettingsPermissions::default()
    };
    let permissions = Permissions {
        approve_all: true,
        managed: Some(Box::new(read(&given, "/work", None).unwrap())),
        ..Permissions::default()
    };
    assert_eq!(judge(&permissions, "/work", &shell("ls")), Verdict::Ask);
}

#[test]
fn a_rule_that_cannot_be_enforced_is_refused_and_named() {
    for (member, rule, named) in [
        ("deny", "Shell(git push", "no closing parenthesis"),
        ("deny", "Shell()", "nothing between"),
        ("deny", "Shell(git * --force)", "pattern"),
        ("deny", "Read(**/.env)", "pattern"),
        ("deny", "Read(~/x)", "home"),
        ("deny", "Clipboard", "no kind of rule"),
        ("ask", "", "no kind of rule"),
        ("allow", "Domain(*)x", "no closing parenthesis"),
        ("limitTo", "Domain(a.b)", "cannot be enforced"),
    ] {
        let refused = read(&settings(member, &[rule]), "/work", None).unwrap_err();
        assert!(refused.starts_with(member), "{refused}");
        assert!(refused.contains(named), "{refused}");
    }
}

#[test]
fn a_path_that_can_match_nothing_is_refused_by_name() {
    for about in ["$PWD/priv", "$HOME", "${PWD}/priv", "~root/x"] {
        let refused = place(about, "/project", Some("/home/me"));
        assert!(refused.is_err(), "{about}: {refused:?}");
    }
    let table = [
        ("priv", "/project/priv"),
        ("~/x", "/home/me/x"),
        ("~", "/home/me"),
        ("a$b", "/project/a$b"),
    ];
    for (about, expected) in table {
        let place = place(about, "/project", Some("/home/me"));
        assert_eq!(place.as_deref(), Ok(expected), "{about}");
    }
}
