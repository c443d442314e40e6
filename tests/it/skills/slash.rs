//! Skills as slash commands.

use loopd_tests::validator::text_of;
use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::{Value, json};

use super::{session, session_of, skill};

const INVOKE: &str = "session.commands.invoke";
const EXECUTE: &str = "session.commands.execute";

#[tokio::test]
async fn a_person_uses_a_skill() {
    let daemon = Daemon::playing([
        Turn::user("the kitchen").says("tidied"),
        Turn::user("Use the skill \"tidy\".").says("tidied again"),
    ])
    .await;
    let file = skill(
        &daemon,
        "tidy",
        "argument-hint: [room]\n",
        "Tidy up $ARGUMENTS.",
    );
    skill(&daemon, "quiet", "user-invocable: false\n", "Quiet.");
    let mut session = session(&daemon).await;
    let listed = session
        .call("session.commands.list", json!({"includeBuiltins": false}))
        .await;
    let expected = json!([{
        "name": "tidy", "description": "Does tidy.", "kind": "skill", "source": "skill", "path": file,
        "input": {"hint": "[room]", "required": false}, "allowDuringAgentExecution": true,
    }]);
    assert_eq!(listed["commands"], expected);
    let invoked = session
        .call(INVOKE, json!({"name": "/tidy", "input": "the kitchen"}))
        .await;
    assert_eq!(invoked["kind"], "completed", "{invoked}");
    session.next("session.idle").await;
    let said = session
        .events()
        .into_iter()
        .find(|it| it["type"] == "user.message")
        .unwrap();
    assert_eq!(said["data"]["content"], "/tidy the kitchen");
    let text = daemon.script().last_request().last_user_text();
    let context = text.find("<skill-context name=\"tidy\">").unwrap();
    let prompt = text.rfind("the kitchen").unwrap();
    assert!(
        text.contains("Tidy up the kitchen.\n") && context < prompt,
        "{text}"
    );
    let event = session
        .events()
        .into_iter()
        .find(|it| it["type"] == "skill.invoked")
        .unwrap();
    assert_eq!(event["data"]["trigger"], "user-invoked");
    // The text is not told a second time.
    let users = daemon.script().last_request().messages().to_vec();
    assert_eq!(
        users
            .iter()
            .filter(|it| text_of(it).contains("<skill-context"))
            .count(),
        1
    );
    session
        .call(EXECUTE, json!({"commandName": "tidy", "args": ""}))
        .await;
    session.next("session.idle").await;
    let refused = session.refused(INVOKE, json!({"name": "quiet"})).await;
    assert!(
        refused.message.contains("there is no command /quiet"),
        "{}",
        refused.message
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_message_whose_skill_is_gone_fails_and_says_so() {
    let daemon = Daemon::playing([Turn::user("after").says("fine")]).await;
    skill(&daemon, "tidy", "", "Tidy.");
    let mut session = session(&daemon).await;
    let kept = json!({"name": "tidy", "input": "x", "keepsScope": true});
    let invoked = session.call(INVOKE, kept).await;
    let scope = json!({"command": "tidy", "skill": {"name": "tidy", "arguments": "x"}});
    assert_eq!(invoked["runScope"], scope);
    std::fs::remove_dir_all(daemon.file("lib")).unwrap();
    let message = json!({"prompt": invoked["prompt"], "runScope": invoked["runScope"]});
    session.call("session.send", message).await;
    let failed = session.next("session.error").await;
    let why = failed["data"]["message"].as_str().unwrap();
    assert!(why.contains("there is no skill tidy"), "{why}");
    session.next("session.idle").await;
    session.ask("after").await;
    daemon.finish().await;
}

#[tokio::test]
async fn names_belong_to_clients_then_to_ours_then_to_skills_then_to_files() {
    let daemon = Daemon::playing([]).await;
    for name in ["help", "deploy", "tidy"] {
        skill(&daemon, name, "", "Text.");
    }
    let file = daemon.file(".claude/commands/tidy.md");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "Tidy by a file.").unwrap();
    let params = json!({"enableConfigDiscovery": true, "commands": [{"name": "deploy"}]});
    let session = session_of(&daemon.client(), params).await;
    let listed = session
        .call("session.commands.list", json!({"includeBuiltins": false}))
        .await;
    let commands = listed["commands"].as_array().unwrap().iter();
    let names: Vec<&str> = commands.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "deploy",
            "skill:deploy",
            "skill:help",
            "tidy",
            "project:tidy"
        ]
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_skill_that_forks_is_carried_out_by_a_sub_agent() {
    let script = Script::voices([
        (
            "Carry out the skill",
            vec![
                Turn::user("It is about this: the attic").says("The attic is tidy."),
                Turn::user("It is about this: the cellar").says("The cellar is tidy."),
            ],
        ),
        (
            "Please tidy",
            vec![
                Turn::user("Please tidy").calls([call(
                    "a",
                    "skill",
                    json!({"skill": "tidy", "args": "the attic"}),
                )]),
                Turn::results(["The attic is tidy."]).says("done"),
                Turn::any().says("nothing"),
            ],
        ),
    ])
    .await;
    let daemon = Daemon::with(script).await;
    skill(
        &daemon,
        "tidy",
        "context: fork\nallowed-tools: Read\n",
        "Tidy up $ARGUMENTS.",
    );
    let mut session = session(&daemon).await;
    session.ask("Please tidy").await;
    let requests = daemon.script().requests();
    let of_agent = requests
        .iter()
        .find(|it| it.first_user_text().contains("Carry out"));
    let of_agent = of_agent.unwrap();
    assert!(
        of_agent
            .first_user_text()
            .contains("<skill-context name=\"tidy\">")
    );
    assert!(of_agent.first_user_text().contains("Tidy up the attic."));
    assert_eq!(of_agent.tools(), ["view"]);
    // The text is in the conversation of the sub-agent, not in this one.
    let own = requests.last().unwrap();
    assert!(!own.raw.contains("Tidy up the attic."), "{}", own.raw);
    let done = session
        .call(INVOKE, json!({"name": "tidy", "input": "the cellar"}))
        .await;
    assert_eq!(
        done,
        json!({"kind": "text", "text": "The cellar is tidy.", "markdown": true})
    );
    session.ask("What now?").await;
    let last = daemon.script().last_request();
    let told = last
        .messages()
        .iter()
        .any(|it| text_of(it).contains("The cellar is tidy."));
    assert!(told, "{}", last.raw);
    let none: Vec<Value> = session
        .events()
        .into_iter()
        .filter(|it| it["type"] == "skill.invoked" && it["agentId"].is_null())
        .collect();
    assert_eq!(none, Vec::<Value>::new());
    daemon.finish().await;
}
