//! Skills: one that the model loads, one that a person uses, one of an agent, and one that is put out
//! of use.

use loopd_tests::{Daemon, Script, Turn, call};
use serde_json::json;

use super::{Log, session, take};

pub(super) async fn skills() -> Vec<Log> {
    let script = Script::play([
        Turn::user("one").calls([call("a", "skill", json!({"skill": "tidy"}))]),
        Turn::any().calls([call(
            "b",
            "bash",
            json!({"command": "true", "description": "x"}),
        )]),
        Turn::results(["allows only these tools"]).says("tidied"),
        Turn::user("the attic").says("swept"),
        Turn::user("three").says("helped"),
    ]);
    let daemon = Daemon::with(script.await).await;
    for (name, more) in [("tidy", "allowed-tools: Read\n"), ("sweep", "")] {
        let folder = daemon.file(&format!("lib/{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: Does {name}.\n{more}---\nDo it.\n");
        std::fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    let helper = json!({"name": "helper", "prompt": "You help.", "skills": ["tidy"]});
    let options = json!({"skillDirectories": ["lib"], "customAgents": [helper]});
    let mut session = session(&daemon, "skills", options).await;
    session.ask("one").await;
    let command = json!({"commandName": "sweep", "args": "the attic"});
    session.call("session.commands.execute", command).await;
    session.next("session.idle").await;
    let off = json!({"name": "sweep"});
    session.call("session.skills.disable", off).await;
    session
        .call("session.agent.select", json!({"name": "helper"}))
        .await;
    session.ask("three").await;
    let logs = take(&daemon).await;
    daemon.finish().await;
    logs
}
