use std::fs;
use std::path::{Path, PathBuf};

use loopd_proto::params::discovery::{McpSource, McpTransport};
use tempfile::TempDir;

use super::agents::{AgentOrigin, ModelPolicy};
use super::*;

fn write(root: &Path, file: &str, text: &str) -> PathBuf {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn host(root: &TempDir) -> Host {
    Host {
        copilot: Some(root.path().join("user/.copilot")),
        home: root.path().join("home"),
        user: Some(root.path().join("user")),
    }
}

fn mcp_places(root: &TempDir, app: &Path) -> mcp::McpPlaces {
    let user = root.path().join("user").display().to_string();
    let env = [("HOME".to_owned(), user)].into();
    mcp::McpPlaces::of(&env, &root.path().join("home"), app, app, Vec::new())
}

#[cfg(unix)]
#[test]
fn links_must_stay_in_their_project_but_the_users_own_may_lead_anywhere() {
    use std::os::unix::fs::symlink;
    let root = TempDir::new().unwrap();
    write(root.path(), "secret.md", "the key");
    let app = root.path().join("app");
    write(&app, "AGENTS.md", "be kind");
    symlink("AGENTS.md", app.join("CLAUDE.md")).unwrap();
    symlink("../secret.md", app.join("GEMINI.md")).unwrap();
    fs::create_dir_all(root.path().join("home")).unwrap();
    symlink("../secret.md", root.path().join("home/AGENTS.md")).unwrap();
    let places = instructions::places(Some(&host(&root)), &[app]);
    let found = instructions::discover(&places);
    let texts: Vec<_> = found.items.iter().map(|file| file.text.as_str()).collect();
    assert_eq!(texts, ["be kind", "be kind", "the key"]);
    let told: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert!(
        told.len() == 1
            && told
                .iter()
                .all(|it| it.contains("GEMINI.md: is a link that leads out")),
        "{told:?}"
    );
}

#[cfg(unix)]
#[test]
fn the_search_ends_despite_pipes_and_links_in_circles() {
    use std::os::unix::fs::symlink;
    let root = TempDir::new().unwrap();
    let app = root.path().join("app");
    write(&app, ".github/instructions/a.instructions.md", "once");
    symlink(".", app.join(".github/instructions/loop")).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        app.join("AGENTS.md"),
        rustix::fs::Mode::RUSR,
    )
    .unwrap();
    let found = instructions::discover(&instructions::places(None, &[app]));
    assert!(found.items.len() <= 5, "{:?}", found.items.len());
    let told: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert!(
        told.iter().any(|it| it.contains("not a regular file")),
        "{told:?}"
    );
}

#[test]
fn instructions_name_the_files_they_apply_to() {
    let root = TempDir::new().unwrap();
    let app = root.path().join("app");
    write(
        &app,
        ".github/copilot-instructions.md",
        "---\nnot front matter here",
    );
    write(
        &app,
        ".github/instructions/deep/rust.instructions.md",
        "---\napplyTo: '**/*.rs, **/*.toml'\ndescription: Rust\n---\nNo unwrap.\n",
    );
    write(&app, ".github/instructions/notes.md", "not one");
    let found = instructions::discover(&instructions::places(None, &[app]));
    let problems: Vec<_> = found.problems.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(
        problems,
        ["is not used: the name of the file does not end in .instructions.md"]
    );
    let told: Vec<_> = found
        .items
        .iter()
        .map(|file| {
            (
                file.label.as_str(),
                file.text.as_str(),
                file.apply_to.clone(),
            )
        })
        .collect();
    let globs = vec!["**/*.rs".to_owned(), "**/*.toml".to_owned()];
    assert_eq!(
        told,
        [
            (
                ".github/copilot-instructions.md",
                "---\nnot front matter here",
                None
            ),
            (
                ".github/instructions/deep/rust.instructions.md",
                "No unwrap.",
                Some(globs)
            ),
        ]
    );
}

#[test]
fn agents_are_parsed_in_every_dialect() {
    let root = TempDir::new().unwrap();
    let app = root.path().join("app");
    write(
        &app,
        ".github/agents/reviewer.agent.md",
        "---\ndescription: Reviews.\ntools: [view, grep]\nmodel: inherit\nmcp-servers:\n  docs:\n    command: docs\n---\nYou review.\n",
    );
    write(
        &app,
        ".claude/agents/planner.md",
        "---\nname: Planner\ndescription: Plans.\ntools: view, glob\nmaxTurns: 3\n---\nYou plan.",
    );
    write(
        &app,
        ".opencode/agent/writer.md",
        "---\ndescription: Writes.\nmode: subagent\ntools:\n  bash: false\n  view: true\n---\nYou write.",
    );
    write(&app, ".github/agents/README.md", "about agents");
    write(
        root.path(),
        "home/agents/mine.md",
        "---\ndescription: Mine.\n---\nHi.",
    );
    write(
        root.path(),
        "home/agents/bad.md",
        "---\ndescription: {\n---\n",
    );
    let found = agents::discover(&agents::folders(Some(&host(&root)), &[app]));
    let told: Vec<_> = found
        .items
        .iter()
        .map(|agent| (agent.name.as_str(), agent.origin, agent.prompt.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("reviewer", AgentOrigin::Project, "You review."),
            ("Planner", AgentOrigin::Project, "You plan."),
            ("writer", AgentOrigin::Project, "You write."),
            ("mine", AgentOrigin::User, "Hi."),
        ]
    );
    let [reviewer, planner, writer, _] = found.items.as_slice() else {
        panic!("{found:?}");
    };
    let words = |words: &[&str]| {
        Some(
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(
        (&reviewer.tools, &reviewer.model),
        (&words(&["view", "grep"]), &ModelPolicy::Inherit)
    );
    assert!(
        reviewer
            .mcp_servers
            .as_ref()
            .is_some_and(|it| it["docs"]["command"] == "docs")
    );
    assert_eq!(
        (&planner.tools, planner.max_turns),
        (&words(&["view", "glob"]), Some(3))
    );
    assert_eq!(
        (&writer.tools, writer.disallowed_tools.as_slice()),
        (&None, ["bash".to_owned()].as_slice())
    );
    assert_eq!(found.problems.len(), 1);
}

#[test]
fn servers_come_from_the_workspace_first_and_broken_ones_are_reported() {
    let root = TempDir::new().unwrap();
    let app = root.path().join("app");
    write(
        &app,
        ".mcp.json",
        r#"{"mcpServers": {"docs": {"command": "docs"}, "odd": {}, "off": {"url": "http://x", "disabled": true}}}"#,
    );
    write(&app, ".vscode/mcp.json", "{\n\"servers\": {\n");
    write(
        root.path(),
        "home/mcp-config.json",
        r#"{"mcpServers": {"docs": {"command": "other"}, "events": {"type": "sse", "url": "http://y"}}}"#,
    );
    let found = mcp::load(&mcp_places(&root, &app));
    let told: Vec<_> = found
        .items
        .iter()
        .map(|server| {
            (
                server.name.as_str(),
                server.transport,
                server.source,
                server.enabled,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("docs", McpTransport::Stdio, McpSource::Workspace, true),
            ("off", McpTransport::Http, McpSource::Workspace, false),
            ("docs", McpTransport::Stdio, McpSource::User, true),
            ("events", McpTransport::Sse, McpSource::User, true),
        ]
    );
    let told: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert!(
        matches!(told.as_slice(), [odd, json] if odd.contains("`odd` has neither") && json.contains("line 3")),
        "{told:?}"
    );
}

#[test]
fn every_member_of_an_agent_s_front_matter_is_read() {
    use agents::{AgentMode, Isolation, MemoryScope, PermissionMode};
    let text = "---\nname: all\ndescription: Does.\ncolor: red\nmemory: local\nmode: subagent\n\
        permissionMode: acceptEdits\nisolation: worktree\nbackground: true\nmodel: other-family\n\
        effort: high\nrequired-mcp-servers: a, b\nhooks:\n  agentStop:\n    - command: done\n\
        disallowedTools: [bash]\ninitialPrompt: Begin.\nskills: [tidy]\nmaxTurns: 2\n---\nHi.";
    let agent = agents::parse(Path::new("x.md"), text, AgentOrigin::User).unwrap();
    assert_eq!(
        (agent.color.as_deref(), agent.memory, agent.mode),
        (Some("red"), Some(MemoryScope::Local), AgentMode::Subagent)
    );
    assert_eq!(
        (agent.permission_mode, agent.isolation, agent.background),
        (
            Some(PermissionMode::AcceptEdits),
            Some(Isolation::Worktree),
            true
        )
    );
    assert_eq!(agent.model, ModelPolicy::OtherFamily);
    assert_eq!(agent.required_mcp_servers, ["a", "b"]);
    assert_eq!(agent.hooks.unwrap()["agentStop"][0]["command"], "done");
    assert_eq!(agent.disallowed_tools, ["bash"]);
    assert!(!agent.user_invocable && agent.infer, "it works for callers");
    let plain = "---\ndescription: Does.\nmodel: gpt-5\n---\n";
    let agent = agents::parse(Path::new("x.agent.md"), plain, AgentOrigin::User).unwrap();
    assert_eq!((agent.name.as_str(), agent.mode), ("x", AgentMode::All));
    assert_eq!(agent.model, ModelPolicy::Named("gpt-5".to_owned()));
    assert!(agent.user_invocable);
}

#[test]
fn a_wrong_value_in_an_agent_s_front_matter_is_reported_with_its_line() {
    for (wrong, word) in [
        ("permissionMode: everything", "everything"),
        ("isolation: container", "container"),
        ("memory: cloud", "cloud"),
        ("mode: boss", "boss"),
        ("maxTurns: 0", "a whole number from 1"),
        ("maxTurns: many", "many"),
        ("background: maybe", "maybe"),
        ("hooks: [a]", "an object"),
    ] {
        let text =
            format!("---\nname: a\ndescription: Does.\ncolor: red\n{wrong}\neffort: low\n---\nHi.");
        let problem = agents::parse(Path::new("a.md"), &text, AgentOrigin::User).unwrap_err();
        let told = problem.to_string();
        assert!(told.starts_with("a.md, line 5: "), "{told}");
        assert!(told.contains(word), "{told}");
    }
    let long = format!("---\ndescription: Does.\nname: {}\n---\n", "x".repeat(101));
    let problem = agents::parse(Path::new("a.md"), &long, AgentOrigin::User).unwrap_err();
    assert!(
        problem.to_string().starts_with("a.md, line 3: "),
        "{problem}"
    );
}
