//! Todos and sub-agents: `sql` works on the list of the session at the top; a list of its own is for
//! an agent whose tools name `todowrite`.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

use super::{lines, sql, write};

async fn daemon<'a>(voices: impl IntoIterator<Item = (&'a str, Vec<Turn>)>) -> Daemon {
    let script = Script::voices(voices).await;
    Daemon::builder().script(script).yolo().start().await
}

fn task(prompt: &str, agent: &str) -> loopd_tests::script::Call {
    call(
        "t",
        "task",
        json!({"description": "a part", "prompt": prompt, "agent_type": agent, "mode": "sync"}),
    )
}

#[tokio::test]
async fn an_agent_works_on_the_list_of_the_session_that_started_it() {
    let update = "UPDATE todos SET status = 'done' WHERE id = 'a'";
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([write("w", json!([{"id": "a", "content": "Do it"}]))]),
                Turn::results(["Do it"]).calls([task("your part", "task")]),
                Turn::results(["finished"]).says("well"),
            ],
        ),
        (
            "your part",
            vec![
                Turn::user("your part").calls([sql("s", update), write("no", json!([]))]),
                Turn::results(["1 row(s) updated.", "Tool 'todowrite' does not exist"])
                    .says("finished"),
            ],
        ),
    ])
    .await;
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    assert_eq!(lines(&session).await, ["a done"]);
    let updated: Vec<_> = session
        .events()
        .into_iter()
        .filter(|event| event["type"] == "todo.updated")
        .collect();
    assert_eq!(updated.len(), 2);
    assert!(updated.iter().all(|event| event["agentId"].is_null()));
    let start = session.events().into_iter().find(|event| {
        event["type"] == "tool.execution_start" && event["data"]["toolName"] == "sql"
    });
    assert!(
        start.unwrap()["agentId"].is_string(),
        "the call is the agent's"
    );
    daemon.finish().await;
}

#[tokio::test]
async fn which_agents_have_which_todo_tools() {
    let reports = ["task", "general-purpose", "planner"];
    let mut voices = vec![(
        "begin",
        reports
            .iter()
            .map(|agent| {
                let asked = if *agent == "task" {
                    Turn::user("begin")
                } else {
                    Turn::results(["ok"])
                };
                asked.calls([task(&format!("you are {agent}"), agent)])
            })
            .chain([Turn::results(["ok"]).says("well")])
            .collect::<Vec<_>>(),
    )];
    voices.extend(
        ["you are task", "you are general-purpose", "you are planner"]
            .map(|name| (name, vec![Turn::user(name).says("ok")])),
    );
    let daemon = daemon(voices).await;
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text =
        "---\nname: planner\ndescription: Plans.\ntools: [TodoWrite, todoread, sql]\n---\nPlan.\n";
    std::fs::write(folder.join("planner.md"), text).unwrap();
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    for (agent, expected) in [
        ("begin", vec!["sql", "todowrite", "todoread"]),
        ("you are task", vec!["sql"]),
        ("you are general-purpose", vec!["sql"]),
        ("you are planner", vec!["sql", "todowrite", "todoread"]),
    ] {
        let requests = daemon.script().requests();
        let mut requests = requests.iter();
        let asked = requests.find(|request| request.first_user_text().contains(agent));
        let asked = asked.unwrap_or_else(|| panic!("{agent} was not asked"));
        let mut tools = asked.tools();
        tools.retain(|tool| tool.starts_with("todo") || *tool == "sql");
        assert_eq!(tools, expected, "{agent}");
    }
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_with_a_list_of_its_own_leaves_the_other_alone() {
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin").calls([write("w", json!([{"id": "a", "content": "Mine"}]))]),
                Turn::results(["Mine"]).calls([task("your part", "planner")]),
                Turn::results(["finished"]).says("well"),
            ],
        ),
        (
            "your part",
            vec![
                Turn::user("your part")
                    .calls([write("p", json!([{"id": "x", "content": "Theirs"}]))]),
                Turn::results(["Theirs"]).calls([sql("s", "SELECT id, title FROM todos")]),
                Turn::results(["| x | Theirs |"]).says("finished"),
            ],
        ),
    ])
    .await;
    let folder = daemon.file(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: planner\ndescription: Plans.\ntools: [todo, sql]\n---\nPlan.\n";
    std::fs::write(folder.join("planner.md"), text).unwrap();
    let mut session = daemon.client().create(json!({})).await;
    session.ask("begin").await;
    assert_eq!(lines(&session).await, ["a pending"]);
    // A client takes the list of an event for that of the session.
    assert_eq!(session.count("todo.updated"), 1);
    daemon.finish().await;
}
