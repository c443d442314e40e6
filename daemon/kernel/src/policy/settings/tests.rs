use loopd_proto::permission::PermissionRequest;
use serde_json::json;

use super::super::{Verdict, judge};
use super::*;

const BASE: RuleBase<'static> = RuleBase {
    cwd: "/app/sub",
    folder: "/app",
    user: Some("/home/u"),
};

fn shown(text: &str) -> String {
    match read(text, BASE) {
        Ok(rule) => named(&rule),
        Err(error) => format!("! {}", error.wider.as_ref().map(named).unwrap_or_default()),
    }
}

fn named(rule: &PermissionRule) -> String {
    match &rule.argument {
        Some(argument) => format!("{} {argument}", rule.kind),
        None => rule.kind.clone(),
    }
}

#[test]
fn what_rules_mean() {
    let table = [
        ("Bash", "shell"),
        ("Bash(*)", "shell"),
        ("Bash(git diff:*)", "shell git diff:*"),
        ("Bash(git diff *)", "shell git diff:*"),
        ("Bash(npm run build)", "shell npm run build"),
        ("Bash(* --force)", "! shell"),
        ("Bash(a && b)", "! shell"),
        ("Bash(", "! shell"),
        ("Read(./.env)", "read /app/sub/.env"),
        ("Read(.env)", "read glob:/app/sub/**/.env"),
        ("Read(**/*.pem)", "read glob:/app/sub/**/*.pem"),
        ("Read(/secrets/**)", "read /app/secrets"),
        ("Read(//etc/passwd)", "read /etc/passwd"),
        ("Read(~/.ssh/**)", "read /home/u/.ssh"),
        ("Read(~/.ssh/[a-z]*)", "! read"),
        ("Edit(src/**)", "write /app/sub/src"),
        ("Write", "write"),
        ("WebFetch", "url"),
        ("WebFetch(domain:example.com)", "url example.com"),
        ("WebFetch(domain:*.example.com)", "url *.example.com"),
        ("WebFetch(https://example.com)", "! url"),
        ("mcp__github", "mcp github"),
        ("mcp__github__get_issue", "mcp github/get_issue"),
        ("mcp__github__*", "mcp github"),
        ("Task(explore)", "! "),
        ("Bsh(rm *)", "! "),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn rules_of_settings_are_judged_with_those_of_the_session() {
    let rule = |text: &str| read(text, BASE).unwrap();
    let rules = SettingsRules {
        deny: vec![rule("Read(.env)"), rule("Bash(curl:*)")],
        ask: vec![rule("Bash(git push:*)")],
        allow: vec![rule("Bash(ls:*)"), rule("Read(*.md)")],
    };
    let shell = |text: &str| -> PermissionRequest {
        serde_json::from_value(json!({
            "kind": "shell", "fullCommandText": text, "intention": "",
            "commands": [{"identifier": text.split(' ').next(), "readOnly": false}],
            "possiblePaths": [], "possibleUrls": [], "hasWriteFileRedirection": false,
            "canOfferSessionApproval": true, "resolvedWorkingDirectory": "/app/sub",
        }))
        .unwrap()
    };
    let reads = |path: &str| -> PermissionRequest {
        serde_json::from_value(json!({"kind": "read", "path": path, "intention": ""})).unwrap()
    };
    let verdict = |approve_all: bool, request: &PermissionRequest| {
        let mut permissions = Permissions {
            approve_all,
            ..Permissions::default()
        };
        rules.add_to(&mut permissions);
        match judge(&permissions, "/app/sub", request) {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny(_) => "deny",
        }
    };
    let table = [
        (true, reads("/app/sub/a/.env"), "deny"),
        (true, reads("/app/sub/a/env"), "allow"),
        (false, reads("/app/sub/a/b.md"), "allow"),
        (false, reads("/app/sub/a/b.txt"), "ask"),
        (true, shell("cat a/.env"), "deny"),
        (true, shell("echo x; curl http://a"), "deny"),
        (true, shell("git push origin"), "ask"),
        (true, shell("git status"), "allow"),
        (false, shell("ls -l"), "allow"),
        (false, shell("make"), "ask"),
    ];
    for (approve_all, request, expected) in table {
        assert_eq!(verdict(approve_all, &request), expected, "{request:?}");
    }
}
