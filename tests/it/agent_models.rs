//! The model that the file of an agent names, when the agent is that of the session.

use loopd_tests::{Daemon, Turn};
use serde_json::{Value, json};

fn agent(model: &str) -> Value {
    json!({"name": "poet", "prompt": "Write verses.", "model": model})
}

#[tokio::test]
async fn the_selected_agents_model_answers_unless_the_client_names_one() {
    for (named, answers) in [(None, "own-model"), (Some("other-model"), "other-model")] {
        let daemon = Daemon::playing([Turn::user("go").says("ok")]).await;
        let mut options = json!({"customAgents": [agent("own-model")], "agent": "poet"});
        options["model"] = json!(named);
        let mut session = daemon.client().create(options).await;
        session.ask("go").await;
        assert_eq!(daemon.script().last_request().body["model"], answers);
        daemon.finish().await;
    }
}

#[tokio::test]
async fn an_agent_that_is_selected_later_brings_its_model() {
    let daemon =
        Daemon::playing([Turn::user("one").says("ok"), Turn::user("two").says("ok")]).await;
    let options = json!({"customAgents": [agent("own-model")]});
    let mut session = daemon.client().create(options).await;
    session.ask("one").await;
    session
        .call("session.agent.select", json!({"name": "poet"}))
        .await;
    session.ask("two").await;
    assert_eq!(daemon.script().last_request().body["model"], "own-model");
    daemon.finish().await;
}
