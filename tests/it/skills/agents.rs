//! The skills of agents: a definition names them, and the system message has their texts.

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::{offered, session_of, skill, warnings};

fn agent(skills: &Value) -> Value {
    json!([{"name": "helper", "description": "Helps", "prompt": "You help.", "skills": skills}])
}

#[tokio::test]
async fn the_system_message_of_an_agent_has_its_skills_and_the_agent_no_others() {
    let daemon = Daemon::playing([
        Turn::user("one").calls([
            call("a", "create", json!({"path": "x", "file_text": "x"})),
            call("b", "view", json!({"path": "lib/tidy/SKILL.md"})),
        ]),
        Turn::results(["The skill \"tidy\" is active", "Put things away."]).says("1"),
        Turn::user("two").says("2"),
    ])
    .await;
    skill(&daemon, "tidy", "allowed-tools: Grep\n", "Put things away.");
    skill(&daemon, "other", "", "Other.");
    skill(
        &daemon,
        "human",
        "disable-model-invocation: true\n",
        "For people.",
    );
    let params =
        json!({"customAgents": agent(&json!(["tidy", "human", "gone"])), "agent": "helper"});
    let mut session = session_of(&daemon.client(), params).await;
    session.approve_all().await;
    session.ask("one").await;
    let system = text_of(&daemon.script().requests()[0].messages()[0]);
    assert!(
        system.contains("<skill-context name=\"tidy\">") && system.contains("Put things away.")
    );
    assert!(
        !system.contains("Other.") && !system.contains("For people."),
        "{system}"
    );
    assert_eq!(offered(&daemon), None);
    let invoked: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|it| it["type"] == "skill.invoked")
        .collect();
    assert_eq!(invoked.len(), 1);
    assert_eq!(invoked[0]["data"]["trigger"], "context-load");
    let told = warnings(&session, &daemon);
    assert!(
        told.iter()
            .any(|it| it.contains("goes without the skill `human`")),
        "{told:#?}"
    );
    assert!(
        told.iter()
            .any(|it| it.contains("goes without the skill `gone`")),
        "{told:#?}"
    );
    session.call("session.agent.deselect", json!({})).await;
    session.ask("two").await;
    let system = text_of(&daemon.script().last_request().messages()[0]);
    assert!(!system.contains("<skill-context"), "{system}");
    assert!(offered(&daemon).unwrap().contains("- other:"));
    assert_eq!(warnings(&session, &daemon).len(), told.len());
    daemon.finish().await;
}

#[tokio::test]
async fn an_agent_without_skills_has_none() {
    let daemon = Daemon::playing([Turn::user("one").says("1")]).await;
    skill(&daemon, "tidy", "", "Put things away.");
    let params = json!({"customAgents": agent(&Value::Null), "agent": "helper"});
    let mut session = session_of(&daemon.client(), params).await;
    session.ask("one").await;
    let request = daemon.script().last_request();
    assert!(!request.raw.contains("Put things away.") && !request.raw.contains("Does tidy."));
    assert_eq!(offered(&daemon), None);
    daemon.finish().await;
}

#[tokio::test]
async fn sub_agents_have_the_skills_of_their_definition_or_all_of_the_session() {
    let start = |id: &str, kind: &str| {
        let prompt = format!("work as {kind}");
        call(
            id,
            "task",
            json!({"description": kind, "prompt": prompt, "agent_type": kind}),
        )
    };
    let script = Script::voices([
        ("work as helper", vec![Turn::user("helper").says("helped")]),
        (
            "work as general-purpose",
            vec![
                Turn::user("general").calls([call("s", "skill", json!({"skill": "tidy"}))]),
                Turn::any().says("tidied"),
            ],
        ),
        (
            "go",
            vec![
                Turn::user("go").calls([start("a", "helper"), start("b", "general-purpose")]),
                Turn::any().says("done"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::with(script).await;
    skill(&daemon, "tidy", "", "Put things away.");
    skill(&daemon, "off", "", "Off.");
    let params = json!({"customAgents": agent(&json!(["tidy"])), "disabledSkills": ["off"]});
    let mut session = session_of(&daemon.client(), params).await;
    session.ask("go").await;
    let requests = daemon.script().requests();
    let of = |text: &str| {
        requests
            .iter()
            .rfind(|it| it.first_user_text().contains(text))
            .unwrap()
    };
    let helper = of("work as helper");
    assert!(text_of(&helper.messages()[0]).contains("Put things away."));
    assert!(!helper.tools().contains(&"skill"));
    let general = of("work as general-purpose");
    assert!(general.tools().contains(&"skill") && !general.raw.contains("Does off."));
    assert!(text_of(general.messages().last().unwrap()).contains("Put things away."));
    daemon.finish().await;
}
