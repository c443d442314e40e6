//! Skills over the wire: how they reach models and people, what they restrict, and which count.

mod agents;
mod loading;
mod methods;
mod narrowing;
mod provided;
mod slash;
mod trusted;

use std::fs;
use std::path::{Path, PathBuf};

use loopd_tests::{Client, Daemon, Session};
use serde_json::{Value, json};

/// Writes a skill into a folder of skills; returns its file.
fn skill_in(folder: &Path, name: &str, front: &str, text: &str) -> PathBuf {
    let file = folder.join(name).join("SKILL.md");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let front = format!("---\nname: {name}\ndescription: Does {name}.\n{front}---\n");
    fs::write(&file, format!("{front}\n{text}\n")).unwrap();
    file
}

/// Writes a skill into the folder `lib` of the launch.
fn skill(daemon: &Daemon, name: &str, front: &str, text: &str) -> PathBuf {
    skill_in(&daemon.file("lib"), name, front, text)
}

/// Creates a session with the skills of the folder `lib`. It answers permission requests.
async fn session(daemon: &Daemon) -> Session {
    session_of(&daemon.client(), json!({})).await
}

async fn session_of(client: &Client, mut params: Value) -> Session {
    if params["skillDirectories"].is_null() {
        params["skillDirectories"] = json!(["lib"]);
    }
    params["requestPermission"] = true.into();
    client.create(params).await
}

/// Returns the description of the tool `skill` in the last request; `None` if it was not offered.
fn offered(daemon: &Daemon) -> Option<String> {
    let request = daemon.script().last_request();
    let mut tools = request.body["tools"].as_array().unwrap().iter();
    let tool = tools.find(|tool| tool["function"]["name"] == "skill")?;
    Some(tool["function"]["description"].as_str().unwrap().to_owned())
}

/// Returns the names of a list of skills, with a mark behind those that are not enabled.
fn names(list: &Value) -> Vec<String> {
    let skills = list["skills"].as_array().unwrap().iter();
    let shown = skills.map(|skill| {
        let off = if skill["enabled"] == true { "" } else { " off" };
        format!("{}{off}", skill["name"].as_str().unwrap())
    });
    shown.collect()
}

async fn list(session: &Session) -> Vec<String> {
    names(&session.call("session.skills.list", json!({})).await)
}

/// Returns the warnings that a client was told of, without the folder of the daemon.
fn warnings(session: &Session, daemon: &Daemon) -> Vec<String> {
    let events = session.events().into_iter();
    let warnings = events.filter(|event| event["type"] == "session.warning");
    let warnings =
        warnings.filter_map(|event| event["data"]["message"].as_str().map(str::to_owned));
    let work = daemon.work().canonicalize().unwrap();
    let shown = warnings.map(|text| {
        text.replace(&*work.to_string_lossy(), "WORK")
            .replace(&*daemon.work().to_string_lossy(), "WORK")
    });
    shown.collect()
}
