//! Lines that open or run what deny rules are about, without naming it as it is. Each was run once and
//! did so. None may run without a question, not even if everything is approved.

use std::sync::Arc;

use loopd_proto::permission::{PermissionRequest, PermissionRule, Permissions};
use serde_json::json;

use crate::tool::Need;
use crate::tool::catalog::Catalog;
use crate::tool::fixture::Fixture;
use loopd_kernel::policy::{GuardedPaths, Verdict, judge};

/// A project in which `secret.env` and `priv` may not be read.
fn project() -> Fixture {
    let mut fixture = Fixture::new();
    for (file, text) in [
        ("secret.env", "KEY=x"),
        ("priv/key", "x"),
        ("a.txt", "a"),
        ("b.txt", "b"),
        ("b.txt.gz", "b"),
        ("names.lst", "secret.env"),
        ("src/main.c", ""),
    ] {
        fixture.write(file, text);
    }
    let guarded = GuardedPaths {
        denied_reads: vec![fixture.text("secret.env"), fixture.text("priv")],
        ..GuardedPaths::default()
    };
    fixture.context.assess.guarded = Arc::new(guarded);
    fixture
}

async fn request(fixture: &Fixture, line: &str) -> Option<PermissionRequest> {
    let bash = Catalog::new().get("bash")?;
    match bash.need(&json!({"command": line}), &fixture.context).await {
        Need::Permission(request) | Need::PermissionForShell(request) => Some(request),
        Need::Nothing | Need::Answer(_) | Need::Approval(_) | Need::Refused(_) => None,
    }
}

fn all_but(denied: &[(&str, String)]) -> Permissions {
    let rule = |(kind, argument): &(&str, String)| PermissionRule {
        kind: (*kind).to_owned(),
        argument: Some(argument.clone()),
    };
    Permissions {
        approve_all: true,
        denied: denied.iter().map(rule).collect(),
        ..Permissions::default()
    }
}

fn lines(text: &str) -> impl Iterator<Item = String> {
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.replace('⏎', "\n"))
}

/// Returns the lines that run without a question.
async fn allowed(fixture: &Fixture, permissions: &Permissions, text: &str) -> Vec<String> {
    let cwd = fixture.context.assess.cwd.to_string_lossy().into_owned();
    let mut allowed = Vec::new();
    for line in lines(text) {
        // A line that the tool refuses does not run at all.
        if let Some(request) = request(fixture, &line).await
            && judge(permissions, cwd.as_str(), &request) == Verdict::Allow
        {
            allowed.push(line);
        }
    }
    allowed
}

fn reading(fixture: &Fixture) -> Permissions {
    all_but(&[
        ("read", fixture.text("secret.env")),
        ("read", fixture.text("priv")),
    ])
}

#[tokio::test]
async fn no_line_reads_what_is_denied_without_a_question() {
    let fixture = project();
    let text = include_str!("data/reading.txt");
    assert!(lines(text).count() >= 90);
    let allowed = allowed(&fixture, &reading(&fixture), text).await;
    assert!(allowed.is_empty(), "{allowed:#?}");
}

#[tokio::test]
async fn no_line_writes_what_is_denied_without_a_question() {
    let fixture = project();
    let text = include_str!("data/writing.txt");
    assert!(lines(text).count() >= 80);
    let writing = all_but(&[("write", fixture.text("b.txt"))]);
    let allowed = allowed(&fixture, &writing, text).await;
    assert!(allowed.is_empty(), "{allowed:#?}");
}

#[tokio::test]
async fn no_line_runs_what_is_denied_without_a_question() {
    let fixture = project();
    let text = include_str!("data/running.txt");
    assert!(lines(text).count() >= 15);
    let running = all_but(&[("shell", "victim".to_owned())]);
    let allowed = allowed(&fixture, &running, text).await;
    assert!(allowed.is_empty(), "{allowed:#?}");
}

/// The lines of developers at work. What is denied lies beside the project, so that `grep -r x .` does
/// not come to it.
#[tokio::test]
async fn everyday_lines_are_seldom_asked_about() {
    let mut fixture = project();
    fixture.write("../vault/key.pem", "x");
    let key = fixture.path("").join("../vault/key.pem").canonicalize();
    let key = key.map(|key| key.to_string_lossy().into_owned());
    let key = key.unwrap_or_default();
    assert!(key.ends_with("/vault/key.pem"), "{key}");
    fixture.context.assess.guarded = Arc::new(GuardedPaths {
        denied_reads: vec![key.clone()],
        ..GuardedPaths::default()
    });
    let text = include_str!("../../../../kernel/src/policy/shell/analysis/tests/data/everyday.txt");
    let count = lines(text).count();
    for kind in ["read", "write"] {
        let permissions = all_but(&[(kind, key.clone())]);
        let allowed = allowed(&fixture, &permissions, text).await;
        let asked: Vec<String> = lines(text).filter(|line| !allowed.contains(line)).collect();
        assert!(
            asked.len() * 20 <= count,
            "{kind}: {} of {count}: {asked:#?}",
            asked.len()
        );
    }
}
