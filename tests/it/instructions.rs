//! Instructions on disk: which files reach the model, when, and what is reported of others.

use std::fs;
use std::path::{Path, PathBuf};

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

mod nested;
mod wild;

fn write(daemon: &Daemon, file: &str, text: &str) -> PathBuf {
    let path = daemon.file(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// Makes the folder `app` the root of a repository.
fn repository(daemon: &Daemon) -> PathBuf {
    fs::create_dir_all(daemon.file("app/.git")).unwrap();
    daemon.file("app")
}

fn system(daemon: &Daemon) -> String {
    text_of(&daemon.script().last_request().messages()[0])
}

fn warnings(session: &Session) -> Vec<String> {
    let events = session.events().into_iter();
    let warnings = events.filter(|event| {
        event["type"] == "session.warning" && event["data"]["warningType"] == "instruction_file"
    });
    let texts = warnings.map(|event| event["data"]["message"].as_str().unwrap().to_owned());
    texts.collect()
}

/// Returns where each text begins, which shows the order.
fn order(text: &str, parts: &[&str]) -> Vec<usize> {
    let found = parts.iter().map(|part| text.find(part));
    found
        .map(|at| at.unwrap_or_else(|| panic!("{parts:?} in {text}")))
        .collect()
}

#[tokio::test]
async fn files_of_all_formats_count_from_the_root_down() {
    let daemon = Daemon::playing([Turn::user("go").says("1")]).await;
    let app = repository(&daemon);
    for (file, text) in [
        ("app/.github/copilot-instructions.md", "RULE COPILOT"),
        ("app/AGENTS.md", "RULE AGENTS"),
        ("app/CLAUDE.md", "RULE CLAUDE"),
        ("app/.claude/CLAUDE.md", "RULE HIDDEN CLAUDE"),
        ("app/GEMINI.md", "RULE GEMINI"),
        ("app/.github/instructions/a.instructions.md", "RULE PART"),
        ("app/web/AGENTS.md", "RULE OVERRIDDEN"),
        ("app/web/AGENTS.override.md", "RULE OVERRIDE"),
        ("app/web/ui/CLAUDE.md", "RULE NEAREST"),
        ("app/other/AGENTS.md", "RULE ELSEWHERE"),
    ] {
        write(&daemon, file, text);
    }
    let params = json!({"workingDirectory": app.join("web/ui")});
    let mut session = daemon.client().create(params).await;
    session.ask("go").await;
    let text = system(&daemon);
    let parts = [
        "RULE COPILOT",
        "RULE AGENTS",
        "RULE PART",
        "RULE OVERRIDE",
        "RULE NEAREST",
    ];
    let order = order(&text, &parts);
    assert!(order.is_sorted(), "{order:?}");
    for more in ["RULE CLAUDE", "RULE HIDDEN CLAUDE", "RULE GEMINI"] {
        assert!(text.contains(more), "{more}");
    }
    for none in ["RULE OVERRIDDEN", "RULE ELSEWHERE"] {
        assert!(!text.contains(none), "{none}");
    }
    let sources = session
        .call("session.instructions.getSources", json!({}))
        .await;
    let sources = sources["sources"].as_array().unwrap();
    assert_eq!(sources.len(), 8, "{sources:?}");
    let nearest = sources
        .iter()
        .find(|it| it["label"] == "web/ui/CLAUDE.md")
        .unwrap();
    assert_eq!(
        (&nearest["type"], &nearest["location"]),
        (&json!("model"), &json!("working-directory"))
    );
    assert!(warnings(&session).is_empty());
    daemon.finish().await;
}

#[tokio::test]
async fn imports_stay_in_the_project_and_circles_end() {
    let daemon = Daemon::playing([Turn::user("go").says("1"), Turn::user("again").says("2")]).await;
    let app = repository(&daemon);
    write(&daemon, "secret.md", "THE SECRET");
    write(&daemon, "app/.env", "THE PASSWORD");
    write(&daemon, "app/docs/style.md", "STYLE\n@tests.md @style.md");
    write(
        &daemon,
        "app/docs/tests.md",
        "TESTS\n@style.md @../AGENTS.md",
    );
    fs::create_dir_all(daemon.file("app/links")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../../secret.md", daemon.file("app/links/out.md")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../docs", daemon.file("app/links/docs")).unwrap();
    let mentions = "Ask @someone. Use @scope/package. See @docs/style.md.\n@../secret.md\n@.env\n@./.env\n\
                    @links/out.md\n@links/docs/tests.md\n@~/notes.md\n@missing.md\n@/etc/passwd";
    write(&daemon, "app/AGENTS.md", &format!("RULES\n{mentions}"));
    let mut session = daemon
        .client()
        .create(json!({"workingDirectory": app}))
        .await;
    session.ask("go").await;
    let text = system(&daemon);
    let order = order(&text, &["RULES", "STYLE", "TESTS"]);
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(text.matches("STYLE\n").count(), 1, "{text}");
    for none in ["THE SECRET", "THE PASSWORD", "root:"] {
        assert!(!text.contains(none), "{none}");
    }
    let warned = warnings(&session);
    let whys = [
        ("@../secret.md", "leads out of the project"),
        ("@./.env", "names a hidden file"),
        ("@links/out.md", "leads through a link"),
        ("@links/docs/tests.md", "leads through a link"),
        ("@~/notes.md", "leads out of the project"),
        ("@missing.md", "there is no such file"),
    ];
    for (name, why) in whys {
        let is_told =
            |it: &&String| it.contains(&format!("the import {name} ")) && it.contains(why);
        assert_eq!(
            warned.iter().filter(is_told).count(),
            1,
            "{name}: {warned:?}"
        );
    }
    assert_eq!(warned.len(), whys.len(), "{warned:?}");
    let sources = session
        .call("session.instructions.getSources", json!({}))
        .await;
    let kinds: Vec<&Value> = sources["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["type"])
        .collect();
    assert_eq!(kinds, ["model", "child-instructions", "child-instructions"]);
    // What was told is not told again, and an edit counts with the next message.
    write(&daemon, "app/docs/tests.md", "OTHER TESTS");
    session.ask("again").await;
    assert!(system(&daemon).contains("OTHER TESTS"));
    assert_eq!(warnings(&session).len(), whys.len());
    daemon.finish().await;
}

#[tokio::test]
async fn instructions_are_bounded_and_the_cut_is_told() {
    let daemon = Daemon::playing([Turn::user("go").says("1")]).await;
    let app = repository(&daemon);
    write(
        &daemon,
        "app/AGENTS.md",
        &"one two three four five\n".repeat(20_000),
    );
    write(
        &daemon,
        "app/CLAUDE.md",
        &"six seven eight nine ten\n".repeat(20_000),
    );
    write(&daemon, "app/GEMINI.md", "THE LAST RULE");
    let mut session = daemon
        .client()
        .create(json!({"workingDirectory": app}))
        .await;
    session.ask("go").await;
    let text = system(&daemon);
    assert!(text.len() < 300_000, "{}", text.len());
    let warned = warnings(&session).join("\n");
    assert!(warned.contains("AGENTS.md: is too long"), "{warned}");
    assert!(warned.contains("CLAUDE.md: is too long"), "{warned}");
    assert_eq!(
        text.contains("THE LAST RULE"),
        !warned.contains("GEMINI.md: is left out"),
        "{warned}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn clients_leave_sources_out_and_give_their_own() {
    let turns = ["one", "two", "three"].map(|it| Turn::user(it).says("ok"));
    let daemon = Daemon::playing(turns).await;
    let app = repository(&daemon);
    let agents = write(&daemon, "app/AGENTS.md", "RULE AGENTS");
    write(&daemon, "app/CLAUDE.md", "RULE CLAUDE");
    let mut session = daemon
        .client()
        .create(json!({
            "workingDirectory": app, "organizationCustomInstructions": "RULE OF ALL",
            "disabledInstructionSources": [agents],
        }))
        .await;
    session.ask("one").await;
    let text = system(&daemon);
    assert!(
        text.contains("RULE OF ALL") && text.contains("RULE CLAUDE"),
        "{text}"
    );
    assert!(!text.contains("RULE AGENTS"));
    let change =
        json!({"disabledInstructionSources": [], "organizationCustomInstructions": "RULE OF SOME"});
    session.call("session.options.update", change).await;
    session.ask("two").await;
    let text = system(&daemon);
    assert!(
        text.contains("RULE OF SOME") && text.contains("RULE AGENTS"),
        "{text}"
    );
    let change = json!({"skipCustomInstructions": true});
    session.call("session.options.update", change).await;
    session.ask("three").await;
    let text = system(&daemon);
    assert!(
        text.contains("RULE OF SOME") && !text.contains("RULE AGENTS"),
        "{text}"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn files_of_the_user_for_other_programs_count_with_discovery_only() {
    let home = tempfile::tempdir().unwrap();
    let script = Script::play([Turn::user("one").says("1"), Turn::user("two").says("2")]).await;
    let daemon = Daemon::builder()
        .script(script)
        .env("HOME", home.path().to_str().unwrap())
        .start()
        .await;
    let app = repository(&daemon);
    for (file, text) in [
        (".claude/CLAUDE.md", "MY CLAUDE @~/mine.md"),
        ("mine.md", "MY OWN"),
        (".copilot/copilot-instructions.md", "MY COPILOT"),
    ] {
        let path = home.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    for (prompt, discovers) in [("one", false), ("two", true)] {
        let params = json!({"workingDirectory": app, "enableConfigDiscovery": discovers});
        daemon.client().create(params).await.ask(prompt).await;
        let text = system(&daemon);
        assert!(text.contains("MY COPILOT"), "{text}");
        assert_eq!(text.contains("MY CLAUDE"), discovers, "{text}");
        assert_eq!(text.contains("MY OWN"), discovers, "{text}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_rule_denies_to_read_is_no_instruction() {
    let daemon = Daemon::playing([Turn::user("go").says("1")]).await;
    let app = repository(&daemon);
    write(&daemon, "app/AGENTS.md", "RULES @private/notes.md");
    let notes = write(&daemon, "app/private/notes.md", "THE NOTES");
    let mut session = daemon
        .client()
        .create(json!({"workingDirectory": app}))
        .await;
    deny_reading(&session, &notes).await;
    session.ask("go").await;
    let text = system(&daemon);
    assert!(
        text.contains("RULES") && !text.contains("THE NOTES"),
        "{text}"
    );
    let warned = warnings(&session);
    assert!(warned[0].contains("a rule denies reading it"), "{warned:?}");
    daemon.finish().await;
}

async fn deny_reading(session: &Session, path: &Path) {
    let denied = json!([{"kind": "read", "argument": path}]);
    let rules = json!({"rules": {"approved": [], "denied": denied}});
    session.call("session.permissions.configure", rules).await;
}
