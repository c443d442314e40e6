use loopd_proto::permission::PermissionRequest;
use serde_json::json;

use super::super::{Verdict, judge};
use super::*;

const BASE: RuleBase<'static> = RuleBase {
    folder: "/app",
    user: Some("/home/u"),
};

/// Returns what a rule comes to; after `!` what is asked about in its place.
fn shown(text: &str) -> String {
    match read(text, BASE) {
        Ok(rule) => named(&rule),
        Err(error) if error.instead == everything() => "! everything".to_owned(),
        Err(error) => {
            let rules: Vec<String> = error.instead.iter().map(named).collect();
            format!("! {}", rules.join(", "))
        }
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
        ("bash(rm:*)", "shell rm:*"),
        ("shell(git push)", "shell git push"),
        ("Read(./.env)", "read /app/.env"),
        ("Read(.env)", "read glob:/app/**/.env"),
        ("Read(**/*.pem)", "read glob:/app/**/*.pem"),
        ("Read(../x/*.pem)", "read glob:/x/*.pem"),
        ("Read(/secrets/**)", "read /app/secrets"),
        ("Read(secrets/**)", "read /app/secrets"),
        ("Read(//etc/passwd)", "read /etc/passwd"),
        ("Read(~/.ssh/**)", "read /home/u/.ssh"),
        ("Edit(src/**)", "write /app/src"),
        ("Read(./a b )", "read /app/a b"),
        ("Bash(gcc -Wl,-x:*)", "shell gcc -Wl,-x:*"),
        ("Write", "write"),
        ("Grep(secrets/**)", "read /app/secrets"),
        ("Grep", "tool grep"),
        ("Task", "tool task"),
        ("WebFetch", "url"),
        ("WebFetch(domain:example.com)", "url example.com"),
        ("WebFetch(domain:*.example.com)", "url *.example.com"),
        ("mcp__github", "mcp github"),
        ("mcp__github__get_issue", "mcp github/get_issue"),
        ("mcp__github__*", "mcp github"),
        ("mcp__*", "mcp"),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_is_asked_about_in_the_place_of_a_rule_that_is_not_understood() {
    let table = [
        ("Bash(* --force)", "! shell"),
        ("Bash(git * --force[x])", "! shell git:*"),
        ("Bash(git push -?)", "! shell git push:*"),
        ("Bash(a && b)", "! shell a:*, shell b:*"),
        ("Bash(rm|curl)", "! shell rm:*, shell curl:*"),
        ("Bash(rm, curl)", "! shell rm:*, shell curl:*"),
        ("Bash(curl | $x)", "! shell"),
        ("Bash(^rm)", "! shell"),
        ("Bash(rm*)", "! shell"),
        ("Bash('rm)", "! shell"),
        ("Bash(", "! shell"),
        ("Bash(rm) now", "! shell"),
        ("Read(~/.ssh/[a-z]*)", "! read /home/u/.ssh"),
        ("Read(secrets/{a,b}.txt)", "! read glob:/app/**/secrets"),
        ("Read([a-z].txt)", "! read"),
        ("Read(~root/x)", "! read"),
        ("Read($HOME/x)", "! read"),
        (
            "Read(.env, secrets/**)",
            "! read glob:/app/**/.env, read /app/secrets",
        ),
        (
            "Read(./a,./b)",
            "! read /app/a, read /app/a,./b, read /app/b",
        ),
        ("Read(\"./a b\")", "! read /app/\"./a b\", read /app/a b"),
        (
            "Edit('./a','./b')",
            "! write /app/'./a', write /app/'./a','./b', write /app/'./b', write /app/a, write /app/b",
        ),
        ("Read(./a\u{200b})", "! read"),
        ("Read(file:///etc/passwd)", "! read"),
        ("Bash(\"git push\")", "! shell git push:*"),
        ("Bash(rm -rf, curl)", "! shell rm -rf:*, shell curl:*"),
        ("Edit(**/a/**/b/**/c/**/d)", "! write"),
        ("WebFetch(https://example.com/x)", "! url example.com"),
        ("WebFetch(example.com)", "! url example.com"),
        ("WebFetch(domain:ex*mple.com)", "! url"),
        ("mcp__github__get_*", "! mcp github"),
        ("mcp__git*__x", "! mcp"),
        ("mcp__github__x(y)", "! mcp github/x"),
        ("Task(explore)", "! tool task"),
        ("Bsh(rm *)", "! everything"),
        ("Curl(x)", "! everything"),
        ("rm -rf", "! everything"),
        ("", "! everything"),
        ("WebSearch", "! "),
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
        ..SettingsRules::default()
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
