//! Files of skills as people publish them, with their mistakes: what is loaded, what is reported, and
//! what restricts each skill.
//!
//! Each file in `skill_files/` has three parts: where the text belongs, the text, and what comes of it.

use std::fs;
use std::path::Path;

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

/// A line between the parts. Front matter has three dashes.
const BORDER: &str = "----\n";

/// One file of `skill_files/`.
struct Case {
    path: String,
    text: String,
    expected: String,
}

impl Case {
    fn read(file: &Path) -> Self {
        let content = fs::read_to_string(file).unwrap();
        let parts: Vec<&str> = content.split(BORDER).collect();
        let [head, text, expected] = parts.as_slice() else {
            panic!("{} does not have three parts", file.display());
        };
        let mut words: Vec<&str> = head.split_whitespace().collect();
        let path = words.pop().unwrap().to_owned();
        let mut text = (*text).to_owned();
        if words.contains(&"crlf") {
            text = text.replace('\n', "\r\n");
        }
        if words.contains(&"bom") {
            text.insert(0, '\u{feff}');
        }
        Self {
            path,
            text,
            expected: expected.trim_end().to_owned(),
        }
    }
}

/// A model that loads the skill that a message names.
async fn model() -> Script {
    Script::answering(|request| {
        let said = request.last_user_text();
        let wanted = said.split_once("load ").map(|(_, name)| name.to_owned());
        let is_asked = request.messages().last().unwrap()["role"] == "user";
        match wanted {
            Some(name) if is_asked && !said.contains("<skill-context") => {
                Turn::any().calls([call("a", "skill", json!({"skill": name}))])
            }
            _ => Turn::any().says("ok"),
        }
    })
    .await
}

/// A line for each skill, what it says when it is loaded, and a line for each problem.
async fn shown(session: &mut Session, folder: &Path) -> String {
    let found = session.call("session.skills.reload", json!({})).await;
    let listed = session.call("session.skills.list", json!({})).await;
    let mut lines = Vec::new();
    for skill in listed["skills"].as_array().unwrap() {
        lines.push(one_skill(session, skill).await);
    }
    for (mark, list) in [("error", &found["errors"]), ("warning", &found["warnings"])] {
        for problem in list.as_array().unwrap() {
            lines.push(format!("{mark}: {}", problem.as_str().unwrap()));
        }
    }
    let text = lines.join("\n").replace('\r', "<CR>");
    let text = text.replace(&format!("{}/", folder.display()), "");
    text.replace("long long long long long long long long ", "long … ")
}

/// What was loaded; null if nothing was.
async fn last_invoked(session: &mut Session) -> Value {
    let loaded = session.call("session.skills.getInvoked", json!({})).await;
    let last = loaded["skills"].as_array().unwrap().last();
    last.cloned().unwrap_or_default()
}

/// What a skill says of itself; loads it by the model, or by a person if the model may not.
async fn one_skill(session: &mut Session, skill: &Value) -> String {
    let name = skill["name"].as_str().unwrap();
    session.ask(&format!("load {name}")).await;
    let mut invoked = last_invoked(session).await;
    let models = !invoked.is_null();
    let command = json!({"commandName": skill["commandName"], "args": ""});
    let ran = session.call("session.commands.execute", command).await;
    let people = ran["error"].is_null();
    if people {
        session.next("session.idle").await;
        invoked = last_invoked(session).await;
    }
    let for_whom = match (people, models) {
        (true, true) => "people and models",
        (true, false) => "people",
        (false, true) => "models",
        (false, false) => "nobody",
    };
    let description = skill["description"].as_str().unwrap();
    let mut line = format!("{name} for {for_whom}: {description}");
    if let Some(tools) = invoked["allowedTools"].as_array() {
        line = format!("{line}\n  tools: {}", Value::Array(tools.clone()));
    }
    if let Some(text) = invoked["content"].as_str() {
        line = format!("{line}\n  text: {text:?}");
    }
    line
}

#[tokio::test]
async fn what_is_loaded_and_what_is_reported() {
    let daemon = Daemon::with(model().await).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/skill_files");
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    assert!(files.len() >= 40, "{}", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let case = Case::read(file);
        let name = file.file_stem().unwrap().to_str().unwrap();
        let lib = daemon.file(name);
        let path = lib.join(&case.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &case.text).unwrap();
        let params = json!({"skillDirectories": [lib], "enableConfigDiscovery": false});
        let mut session = daemon.client().create(params).await;
        let shown = shown(&mut session, &lib).await;
        if shown != case.expected {
            wrong.push(format!(
                "{name}:\n{shown}\n\nbut expected:\n{}",
                case.expected
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    daemon.finish().await;
}
