//! The memory of agents: a folder per agent and scope, whose index is in the agent's prompt.

use std::fs;

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

#[tokio::test]
async fn an_agent_writes_its_memory_without_asking_and_finds_it_again() {
    let notes = |path: &std::path::Path| {
        call(
            "w",
            "create",
            json!({"path": path.join("MEMORY.md"), "file_text": "LIKES TABS"}),
        )
    };
    let start = |prompt: &str| {
        call(
            "t",
            "task",
            json!({"prompt": prompt, "description": "d", "agent_type": "keeper", "name": prompt}),
        )
    };
    let work = tempfile::tempdir().unwrap();
    let root = work.path().canonicalize().unwrap();
    let folder = root.join(".agent-memory.local/keeper");
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([start("remember")]),
                Turn::any().says("1"),
                Turn::user("again").calls([start("recall")]),
                Turn::any().says("2"),
            ],
        ),
        (
            "remember",
            vec![
                Turn::user("remember").calls([notes(&folder)]),
                Turn::any().says("kept"),
            ],
        ),
        ("recall", vec![Turn::user("recall").says("tabs")]),
    ]);
    let daemon = Daemon::builder().script(script.await).start().await;
    let agents = daemon.home().join("agents");
    fs::create_dir_all(&agents).unwrap();
    let agent =
        "---\nname: keeper\ndescription: Keeps.\ntools: [grep]\nmemory: local\n---\nYou keep.\n";
    fs::write(agents.join("keeper.md"), agent).unwrap();
    let params = json!({
        "workingDirectory": root, "enableConfigDiscovery": true, "requestPermission": true,
    });
    let mut session = daemon.client().create(params).await;
    session.ask("begin").await;
    assert_eq!(
        fs::read_to_string(folder.join("MEMORY.md")).unwrap(),
        "LIKES TABS"
    );
    assert_eq!(
        fs::read_to_string(root.join(".agent-memory.local/.gitignore")).unwrap(),
        "*\n"
    );
    let events = session.events();
    let asked = events
        .iter()
        .filter(|event| event["type"] == "permission.requested");
    assert_eq!(asked.count(), 0);
    session.ask("again").await;
    let requests = daemon.script().requests();
    let system = |prompt: &str| {
        let request = requests
            .iter()
            .find(|it| it.first_user_text().contains(prompt))
            .unwrap();
        text_of(&request.messages()[0])
    };
    let first = system("remember");
    assert!(
        first.contains("You keep.") && first.contains("There is no MEMORY.md yet."),
        "{first}"
    );
    let second = system("recall");
    assert!(
        second.contains("<memory>\nLIKES TABS\n</memory>"),
        "{second}"
    );
    daemon.finish().await;
}

/// The folder of an agent's memory gives it no right beyond that folder: not by `..`, not by links in
/// it or to it, not in the folders of other agents, and not in a folder whose name begins alike.
#[cfg(unix)]
#[tokio::test]
async fn the_right_to_its_memory_ends_at_its_folder() {
    use std::os::unix::fs::symlink;
    let work = tempfile::tempdir().unwrap();
    let root = work.path().canonicalize().unwrap();
    let all = root.join(".agent-memory.local");
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    for folder in ["keeper", "other", "keeper-2"] {
        fs::create_dir_all(all.join(folder)).unwrap();
    }
    symlink(&outside, all.join("keeper/out")).unwrap();
    symlink(outside.join("new"), all.join("keeper/file")).unwrap();
    symlink(&outside, all.join("linked")).unwrap();
    let paths = [
        "keeper/../other/MEMORY.md",
        "keeper/../../escaped.txt",
        "other/MEMORY.md",
        "keeper-2/MEMORY.md",
        "keeper/out/escaped.txt",
        "keeper/file",
    ];
    let mut turns = vec![];
    for (number, path) in paths.iter().enumerate() {
        let to = format!("{}/{path}", all.display());
        let write = json!({"path": to, "file_text": "ESCAPED"});
        turns.push(Turn::any().calls([call(&format!("w{number}"), "create", write)]));
    }
    turns.push(Turn::any().says("tried"));
    // The folder of this agent is a link itself.
    let to = format!("{}/linked/escaped.txt", all.display());
    let write = json!({"path": to, "file_text": "ESCAPED"});
    let linked = vec![
        Turn::any().calls([call("l", "create", write)]),
        Turn::any().says("tried"),
    ];
    let start = |agent: &str, prompt: &str| {
        call(
            prompt,
            "task",
            json!({"prompt": prompt, "description": "d", "agent_type": agent, "name": prompt}),
        )
    };
    let script = Script::voices([
        (
            "begin",
            vec![
                Turn::user("begin").calls([start("keeper", "escape")]),
                Turn::any().says("1"),
                Turn::user("again").calls([start("linked", "follow")]),
                Turn::any().says("2"),
            ],
        ),
        ("escape", turns),
        ("follow", linked),
    ]);
    let daemon = Daemon::builder().script(script.await).start().await;
    let agents = daemon.home().join("agents");
    fs::create_dir_all(&agents).unwrap();
    for name in ["keeper", "linked"] {
        let agent = format!(
            "---\nname: {name}\ndescription: Keeps.\ntools: [grep]\nmemory: local\npermissionMode: dontAsk\n---\nYou keep.\n"
        );
        fs::write(agents.join(format!("{name}.md")), agent).unwrap();
    }
    let params = json!({"workingDirectory": root, "enableConfigDiscovery": true});
    let mut session = daemon.client().create(params).await;
    session.ask("begin").await;
    session.ask("again").await;
    let requests = daemon.script().requests();
    let results: Vec<String> = requests
        .iter()
        .flat_map(loopd_tests::script::Recorded::last_results)
        .collect();
    assert!(results.len() >= paths.len() + 3, "{results:#?}");
    for place in [&root, &outside] {
        assert!(!place.join("escaped.txt").exists(), "{results:#?}");
    }
    assert!(!outside.join("new").exists(), "{results:#?}");
    for folder in ["other", "keeper-2"] {
        let made = fs::read_dir(all.join(folder)).unwrap().count();
        assert_eq!(made, 0, "{folder} {results:#?}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    daemon.finish().await;
}
