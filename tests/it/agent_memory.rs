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
