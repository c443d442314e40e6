use std::fs;

use tempfile::TempDir;

use super::*;
use crate::discovery::agents::{ModelPolicy, PermissionMode, parse};
use crate::tool::catalog::Catalog;

/// Tools that agents may name and that are not built in.
const OF_AGENTS: [&str; 5] = [
    "task",
    "read_agent",
    "write_agent",
    "list_agents",
    "stop_agent",
];

fn write(root: &TempDir, file: &str, text: &str) {
    let path = root.path().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
}

fn agent(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nPrompt.\n")
}

fn input(root: &TempDir) -> RosterInput {
    RosterInput {
        host: Some(Host {
            copilot: None,
            home: root.path().join("home"),
            user: None,
        }),
        projects: vec![root.path().join("app")],
        plugins: vec![root.path().join("plugin")],
        ..RosterInput::default()
    }
}

fn names<'a>(agents: impl Iterator<Item = &'a Arc<AgentDefinition>>) -> Vec<&'a str> {
    agents.map(|agent| agent.name.as_str()).collect()
}

#[test]
fn all_built_in_agents_can_be_read_and_use_tools_there_are() {
    let catalog = Catalog::new();
    let tools = catalog.names();
    for (file, text) in builtin::FILES {
        let agent = parse(Path::new(file), text, AgentOrigin::BuiltIn).unwrap();
        assert_eq!(format!("{}.md", agent.name), *file);
        assert!(agent.prompt.len() > 500, "{file} says what to do");
        assert!(agent.description.len() > 40, "{file} says when to use it");
        assert!(!agent.description.contains('\n'), "{file}");
        for tool in agent.tools.iter().flatten() {
            let known = tools.contains(&tool.as_str()) || OF_AGENTS.contains(&tool.as_str());
            assert!(known, "{file} names the tool `{tool}`");
        }
        if agent.mode == AgentMode::Subagent {
            let told = agent.prompt.contains("last message reaches");
            assert!(told, "{file} says what the answer must look like");
        }
    }
    assert_eq!(builtin::all().len(), builtin::FILES.len());
}

#[test]
fn built_in_agents_have_the_right_settings() {
    let roster = load(&RosterInput::default());
    assert_eq!(
        names(roster.startable()),
        [
            "explore",
            "task",
            "general-purpose",
            "rubber-duck",
            "code-review",
            "research",
            "rem-agent"
        ]
    );
    assert_eq!(names(roster.selectable()), ["build", "plan"]);
    assert_eq!(names(roster.custom()), Vec::<&str>::new());
    let get = |name: &str| Arc::clone(roster.get(name).unwrap());
    let writes = ["create", "edit", "apply_patch"];
    for name in ["explore", "rubber-duck", "research", "plan"] {
        let may = |tool: &&str| get(name).allows(tool, ToolOrigin::BuiltIn);
        assert!(!writes.iter().any(may), "{name} changes nothing");
        // The commands of `plan` run in a sandbox.
        assert_eq!(may(&"bash"), name == "plan", "{name}");
    }
    for tool in Catalog::new().names() {
        assert!(get("general-purpose").allows(tool, ToolOrigin::BuiltIn));
        assert!(get("build").allows(tool, ToolOrigin::BuiltIn));
    }
    assert!(!get("code-review").allows("edit", ToolOrigin::BuiltIn));
    assert_eq!(get("explore").model, ModelPolicy::Small);
    assert_eq!(get("rubber-duck").model, ModelPolicy::OtherFamily);
    assert_eq!(get("plan").permission_mode, Some(PermissionMode::Plan));
    assert_eq!(get("plan").path, None);
}

#[test]
fn the_first_agent_of_a_name_counts() {
    let root = TempDir::new().unwrap();
    for (file, who) in [
        ("app/.github/agents/one.md", "project"),
        ("app/.claude/agents/one.md", "project, other folder"),
        ("app/.github/agents/two.md", "project"),
        ("home/agents/two.md", "user"),
        ("home/agents/three.md", "user"),
        ("plugin/agents/three.md", "plugin"),
        ("plugin/agents/four.md", "plugin"),
        ("plugin/agents/explore.md", "plugin"),
        ("home/agents/Code_Review.md", "user"),
    ] {
        write(&root, file, &agent(who));
    }
    let mut input = input(&root);
    input.custom = vec![CustomAgent {
        name: "one".to_owned(),
        description: Some("client".to_owned()),
        ..CustomAgent::default()
    }];
    let roster = load(&input);
    assert_eq!(roster.problems(), []);
    let told: Vec<(&str, &str)> = roster
        .custom()
        .map(|agent| (agent.name.as_str(), agent.description.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("one", "client"),
            ("two", "project"),
            ("Code_Review", "user"),
            ("three", "user"),
            ("explore", "plugin"),
            ("four", "plugin"),
        ]
    );
    assert_eq!(
        roster
            .all()
            .filter(|agent| is_same(&agent.name, "explore"))
            .count(),
        1
    );
    let origins: Vec<AgentOrigin> = roster.all().map(|agent| agent.origin).collect();
    assert!(origins.is_sorted(), "{origins:?}");
    // Both spellings of the name replace the same built-in agent.
    assert_eq!(roster.get("code-review").unwrap().description, "user");
    assert_eq!(roster.get("CODE REVIEW").unwrap().description, "user");
}

#[test]
fn excluded_builtins_are_gone_unless_a_custom_agent_has_the_name() {
    let root = TempDir::new().unwrap();
    write(&root, "home/agents/task.md", &agent("mine"));
    let mut input = input(&root);
    input.excluded_builtins = vec!["Explore".to_owned(), "task".to_owned(), "plan".to_owned()];
    let roster = load(&input);
    assert!(roster.get("explore").is_none());
    assert!(roster.get("plan").is_none());
    assert_eq!(roster.get("task").unwrap().description, "mine");
    assert!(roster.get("research").is_some());
}

const DANGEROUS: &str = "---\ndescription: Does.\ntools: [view]\nmodel: gpt-5\nhooks:\n  subagentStart: []\n\
    mcpServers:\n  docs:\n    command: docs\nrequiredMcpServers: docs\npermissionMode: bypassPermissions\n\
    memory: project\nisolation: worktree\n---\nPrompt.\n";

#[test]
fn agents_of_an_untrusted_folder_cannot_run_or_grant_anything() {
    let root = TempDir::new().unwrap();
    write(&root, "app/.github/agents/a.md", DANGEROUS);
    let cautious = "---\ndescription: Plans.\npermissionMode: plan\n---\n";
    write(&root, "app/.github/agents/b.md", cautious);
    write(&root, "home/agents/c.md", DANGEROUS);
    let mut input = input(&root);
    let roster = load(&input);
    let restricted = roster.get("a").unwrap();
    assert_eq!(
        (restricted.prompt.as_str(), restricted.description.as_str()),
        ("Prompt.", "Does.")
    );
    assert_eq!(
        restricted.tools.as_deref(),
        Some(["view".to_owned()].as_slice())
    );
    assert_eq!(restricted.model, ModelPolicy::Named("gpt-5".to_owned()));
    assert_eq!((&restricted.hooks, &restricted.mcp_servers), (&None, &None));
    assert_eq!(restricted.required_mcp_servers, Vec::<String>::new());
    assert_eq!(restricted.permission_mode, None);
    assert_eq!((restricted.memory, restricted.isolation), (None, None));
    // A mode that only restricts must not be lost.
    let plan = Some(PermissionMode::Plan);
    assert_eq!(roster.get("b").unwrap().permission_mode, plan);
    assert!(roster.get("c").unwrap().hooks.is_some(), "the user's own");
    let told: Vec<String> = roster.problems().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let all =
        "`hooks`, `mcpServers`, `requiredMcpServers`, `permissionMode`, `memory`, `isolation`";
    for word in ["a.md", all, "loop trust"] {
        assert!(told.concat().contains(word), "{told:?}");
    }
    input.trust = ProjectTrust::All;
    let roster = load(&input);
    assert_eq!(roster.problems(), []);
    let agent = roster.get("a").unwrap();
    assert_eq!(
        agent.permission_mode,
        Some(PermissionMode::BypassPermissions)
    );
    assert_eq!(agent.required_mcp_servers, ["docs"]);
    assert!(agent.hooks.is_some() && agent.isolation.is_some());
}

#[test]
fn models_are_offered_sub_agents_only() {
    let root = TempDir::new().unwrap();
    let front = |line: &str| format!("---\ndescription: Does.\n{line}\n---\n");
    write(&root, "home/agents/shy.md", &front("infer: false"));
    write(
        &root,
        "home/agents/first.md",
        &front("disable-model-invocation: true"),
    );
    write(&root, "home/agents/head.md", &front("mode: primary"));
    write(&root, "home/agents/hand.md", &front("mode: subagent"));
    let mut input = input(&root);
    input.custom = vec![CustomAgent {
        name: "quiet".to_owned(),
        infer: Some(false),
        ..CustomAgent::default()
    }];
    let roster = load(&input);
    assert_eq!(names(roster.startable()).first(), Some(&"hand"));
    assert!(roster.get("shy").is_some() && roster.get("quiet").is_some());
    assert_eq!(
        names(roster.selectable()),
        ["quiet", "first", "head", "shy", "build", "plan"]
    );

    let disabled = ["Research".to_owned()];
    let start = |name: &str, by| {
        let started = roster.may_start(name, by, &disabled);
        started.map(|agent| agent.name.clone())
    };
    assert_eq!(start("Hand", AskedBy::Model).unwrap(), "hand");
    assert_eq!(start("shy", AskedBy::Person).unwrap(), "shy");
    let refused = start("shy", AskedBy::Model).unwrap_err();
    assert!(matches!(refused, StartRefusal::PeopleOnly(..)), "{refused}");
    let refused = start("plan", AskedBy::Person).unwrap_err();
    assert!(matches!(refused, StartRefusal::Primary(..)), "{refused}");
    let refused = start("research", AskedBy::Person).unwrap_err();
    assert_eq!(refused, StartRefusal::Disabled("research".to_owned()));
    let text = start("nobody", AskedBy::Model).unwrap_err().to_string();
    assert!(
        text.contains("`nobody`") && text.contains("hand, explore"),
        "{text}"
    );
    assert!(
        !text.contains("research") && !text.contains("shy"),
        "{text}"
    );
}

#[test]
fn tools_are_known_by_their_names_in_other_programs() {
    let text = |tools: &str| format!("---\ndescription: Does.\n{tools}\n---\n");
    let read = |tools: &str| parse(Path::new("a.md"), &text(tools), AgentOrigin::User).unwrap();
    let built_in = ToolOrigin::BuiltIn;
    let claude = read("tools: Read, Grep, Bash(git diff *)");
    for tool in ["view", "grep", "bash", "read_bash"] {
        assert!(claude.allows(tool, built_in), "{tool}");
    }
    for tool in ["edit", "create", "web_fetch", "task"] {
        assert!(!claude.allows(tool, built_in), "{tool}");
    }
    assert!(!claude.allows("lookup", ToolOrigin::Client));
    let copilot = read("tools: [search, execute, lookup]");
    assert!(copilot.allows("glob", built_in) && copilot.allows("write_bash", built_in));
    assert!(copilot.allows("lookup", ToolOrigin::Client));
    // A name of another program does not match a tool of a client.
    assert!(!copilot.allows("glob", ToolOrigin::Client));
    let denied = read("disallowedTools: [Edit, Bash]");
    for tool in ["edit", "create", "apply_patch", "bash", "write_bash"] {
        assert!(!denied.allows(tool, built_in), "{tool}");
    }
    assert!(denied.allows("view", built_in));
    let prefixed = read("tools: ['custom:*', 'builtin:view']");
    assert!(prefixed.allows("anything", ToolOrigin::Client));
    assert!(prefixed.allows("view", built_in) && !prefixed.allows("grep", built_in));
    let none = read("tools: []");
    assert!(!none.allows("view", built_in));
}

#[test]
fn a_client_s_agent_without_a_name_is_reported_and_affects_no_other() {
    let input = RosterInput {
        custom: vec![
            CustomAgent::default(),
            CustomAgent {
                name: "good".to_owned(),
                model: Some("inherit".to_owned()),
                ..CustomAgent::default()
            },
        ],
        ..RosterInput::default()
    };
    let roster = load(&input);
    assert_eq!(names(roster.custom()), ["good"]);
    assert_eq!(roster.get("good").unwrap().model, ModelPolicy::Inherit);
    let told: Vec<String> = roster.problems().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["customAgents: the agent has no name"]);
}
