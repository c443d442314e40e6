//! Background commands of agents: they go on when their agent has answered, and their end is told.

use loopd_tests::{Daemon, Latch, Script, Session, Turn, call, within};
use serde_json::{Value, json};

use super::{background, daemon, execution_complete, last_said, says, task, task_of};

/// A call that starts a command in the background.
fn in_background(command: &str) -> loopd_tests::script::Call {
    call(
        "b",
        "bash",
        json!({"command": command, "mode": "async", "shellId": "server", "description": "Serve"}),
    )
}

/// The notifications of ended commands, as the main agent was told.
fn commands_told(session: &Session) -> Vec<Value> {
    let events = session.events().into_iter();
    let told = events.filter(|event| event["type"] == "system.notification");
    told.filter(|event| {
        event["agentId"].is_null() && event["data"]["kind"]["type"] == "shell_completed"
    })
    .collect()
}

#[tokio::test]
async fn the_parent_is_told_of_the_command_of_an_agent_that_is_done() {
    let script = Script::answering(|request| {
        let first = request.first_user_text();
        if let Some((_, command)) = first.split_once("run: ") {
            return match request.last_results().len() {
                0 => Turn::any().calls([in_background(command)]),
                _ => Turn::any().says("it runs"),
            };
        }
        let text = request.last_user_text();
        if text.contains("system_notification") {
            return Turn::any().says("so it ended");
        }
        match request.last_results().len() {
            0 => {
                let (_, command) = text.split_once("go: ").unwrap();
                let prompt = format!("run: {command}");
                Turn::any().calls([task("t", json!({"prompt": prompt, "name": "runner"}))])
            }
            _ => Turn::any().says("it goes on"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let latch = Latch::new(daemon.work(), "latch");
    let mut session = daemon.client().create(json!({})).await;
    let command = format!("{}; echo the end is near", latch.wait());
    session.send(&format!("go: {command}")).await;
    let done = execution_complete(&mut session, "t").await;
    assert_eq!(done["success"], true);
    let text = done["result"]["content"].as_str().unwrap();
    assert!(
        text.starts_with("it runs") && text.contains("runner:server"),
        "{text}"
    );
    says(&mut session, "it goes on").await;
    session.next("session.idle").await;
    let running = task_of(&session, "runner:server").await;
    assert_eq!(running["status"], "running");
    latch.release("go").await;
    says(&mut session, "so it ended").await;
    let told = commands_told(&session);
    assert_eq!(told.len(), 1);
    let kind = &told[0]["data"]["kind"];
    assert_eq!(kind["agentId"], "runner");
    assert_eq!(kind["exitCode"], 0);
    let text = told[0]["data"]["content"].as_str().unwrap();
    assert!(
        text.contains("of the agent runner") && text.contains("the end is near"),
        "{text}"
    );
    assert_eq!(
        task_of(&session, "runner:server").await["status"],
        "completed"
    );
    session.next("session.idle").await;
    let given_up = async {
        while daemon.app.sessions.ids().len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    within("the agent to be given up", given_up).await;
    daemon.finish().await;
}

#[tokio::test]
async fn an_idle_agent_hears_of_its_command_and_its_parent_of_its_answer() {
    let script = Script::answering(|request| {
        let first = request.first_user_text();
        if let Some((_, command)) = first.split_once("run: ") {
            if request.last_user_text().contains("system_notification") {
                return Turn::any().says("the server has ended");
            }
            return match request.last_results().len() {
                0 => Turn::any().calls([in_background(command)]),
                _ => Turn::any().says("it runs"),
            };
        }
        let text = request.last_user_text();
        if text.contains("the server has ended") {
            return Turn::any().says("I know");
        }
        if text.contains("system_notification") {
            return Turn::any().says("good");
        }
        match request.last_results().len() {
            0 => {
                let (_, command) = text.split_once("go: ").unwrap();
                Turn::any().calls([background("t", &format!("run: {command}"), "runner")])
            }
            _ => Turn::any().says("it goes on"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let latch = Latch::new(daemon.work(), "latch");
    let mut session = daemon.client().create(json!({})).await;
    session.send(&format!("go: {}", latch.wait())).await;
    says(&mut session, "good").await;
    session.next("session.idle").await;
    assert_eq!(task_of(&session, "runner").await["status"], "idle");
    latch.release("go").await;
    says(&mut session, "I know").await;
    assert_eq!(commands_told(&session).len(), 0, "the agent tells it");
    session.next("session.idle").await;
    assert_eq!(task_of(&session, "runner").await["status"], "idle");
    let given_up = async {
        while daemon.app.sessions.ids().len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    within("the agent to be given up", given_up).await;
    daemon.finish().await;
}

#[tokio::test]
async fn who_stops_the_agent_or_the_command_stops_the_command() {
    let script = Script::answering(|request| {
        let first = request.first_user_text();
        if let Some((_, command)) = first.split_once("run: ") {
            return match request.last_results().len() {
                0 => Turn::any().calls([in_background(command)]),
                _ => Turn::any().says("it runs"),
            };
        }
        let text = request.last_user_text();
        match text.split_once("go: ") {
            Some((_, command)) if request.last_results().is_empty() => {
                Turn::any().calls([background("t", &format!("run: {command}"), "runner")])
            }
            _ => Turn::any().says("fine"),
        }
    })
    .await;
    let daemon = Daemon::builder().script(script).yolo().start().await;
    let latch = Latch::new(daemon.work(), "latch");
    let mut session = daemon.client().create(json!({})).await;
    for (stopped, number) in [("runner:server", 1), ("runner-2", 2)] {
        session.send(&format!("go: {}", latch.wait())).await;
        session
            .next_where("the agent to answer", |event| {
                event["type"] == "system.notification"
                    && event["data"]["kind"]["type"] == "agent_idle"
            })
            .await;
        session.next("session.idle").await;
        let agent = if number == 1 { "runner" } else { "runner-2" };
        let command = format!("{agent}:server");
        assert_eq!(task_of(&session, &command).await["status"], "running");
        let cancelled = session
            .call("session.tasks.cancel", json!({"id": stopped}))
            .await;
        assert_eq!(cancelled, json!({"cancelled": true}), "{stopped}");
        session
            .next_where("the command to end", |event| {
                event["type"] == "session.background_tasks_changed"
            })
            .await;
        let live = daemon
            .until(&session.id, "the command to end", |state| {
                state
                    .tasks
                    .get(&command)
                    .is_some_and(|task| !task.is_running())
            })
            .await;
        drop(live);
        assert_eq!(task_of(&session, &command).await["status"], "cancelled");
    }
    assert_eq!(task_of(&session, "runner-2").await["status"], "cancelled");
    daemon.finish().await;
}

#[tokio::test]
async fn the_commands_of_agents_end_with_the_session() {
    let daemon = daemon([
        (
            "begin",
            vec![
                Turn::user("begin")
                    .calls([task("t", json!({"prompt": "run it", "name": "runner"}))]),
                Turn::any().says("it goes on"),
            ],
        ),
        (
            "run it",
            vec![
                Turn::user("run it").calls([in_background("sleep 600")]),
                Turn::any().says("it runs"),
            ],
        ),
    ])
    .await;
    let client = daemon.client();
    let mut session = client.create(json!({})).await;
    session.ask("begin").await;
    assert_eq!(last_said(&session), "it goes on");
    let running = task_of(&session, "runner:server").await;
    assert_eq!(running["status"], "running");
    assert_eq!(daemon.app.services.processes.list().len(), 1);
    session.destroy().await;
    assert_eq!(daemon.app.services.processes.list().len(), 0);
    let live = daemon.app.sessions.ids();
    assert!(live.is_empty(), "nothing is orphaned: {live:?}");
    daemon.finish().await;
}
