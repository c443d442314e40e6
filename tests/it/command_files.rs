//! Files of slash commands as people publish them, with their mistakes: what is loaded, what is
//! reported, and which prompt comes of it.
//!
//! Each file in `command_files/` has three parts: where the text belongs and the words of a call, the
//! text, and what comes of it.

use std::fs;
use std::path::Path;

use loopd_tests::{Daemon, Session};
use serde_json::{Value, json};

/// A line between the parts.
const BORDER: &str = "----\n";

/// One file of `command_files/`.
struct Case {
    /// Words about the bytes (`bom`, `crlf`) and about what to do (`list`: do not run it).
    words: Vec<String>,
    path: String,
    input: String,
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
        let (head, input) = head.split_once("\n>").unwrap_or((head, ""));
        let mut words: Vec<String> = head.split_whitespace().map(str::to_owned).collect();
        let path = words.pop().unwrap();
        let mut text = (*text).to_owned();
        if words.iter().any(|word| word == "crlf") {
            text = text.replace('\n', "\r\n");
        }
        if words.iter().any(|word| word == "bom") {
            text.insert(0, '\u{feff}');
        }
        Self {
            words,
            path,
            input: input.trim().to_owned(),
            text,
            expected: expected.trim_end().to_owned(),
        }
    }
}

/// A line for each command and each problem, and what comes of a call.
async fn shown(session: &Session, project: &Path, case: &Case) -> String {
    let only_files = json!({"includeBuiltins": false, "includeClientCommands": false});
    let listed = session.call("session.commands.list", only_files).await;
    let commands = listed["commands"].as_array().unwrap();
    let mut lines: Vec<String> = commands.iter().map(command).collect();
    let project = project.canonicalize().unwrap();
    for problem in listed["problems"].as_array().into_iter().flatten() {
        let file = Path::new(problem["file"].as_str().unwrap());
        let file = file.canonicalize().unwrap();
        let file = file.strip_prefix(&project).unwrap().display();
        let line = problem["line"].as_u64();
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        lines.push(format!(
            "! {file}{line}: {}",
            problem["message"].as_str().unwrap()
        ));
    }
    if let [command] = commands.as_slice()
        && !case.words.iter().any(|word| word == "list")
    {
        let params = json!({"name": command["name"], "input": case.input, "keepsScope": true});
        lines.push(
            match session.try_call("session.commands.invoke", params).await {
                Ok(invoked) => prompt(&invoked),
                Err(error) => {
                    let why = error.message.split_once("with message: ").unwrap().1;
                    format!("failed: {why}")
                }
            },
        );
    }
    let text = lines.join("\n");
    text.replace(&*project.to_string_lossy(), "PROJECT")
        .replace('\r', "<CR>")
}

fn command(command: &Value) -> String {
    assert_eq!(command["kind"], "skill");
    assert_eq!(command["unavailable"], Value::Null, "{command}");
    let mut line = format!("/{}", command["name"].as_str().unwrap());
    for alias in command["aliases"].as_array().into_iter().flatten() {
        line = format!("{line} = /{}", alias.as_str().unwrap());
    }
    if let Some(hint) = command["input"]["hint"].as_str() {
        line = format!("{line} {hint}");
    }
    format!("{line}: {}", command["description"].as_str().unwrap())
}

fn prompt(invoked: &Value) -> String {
    assert_eq!(invoked["kind"], "agent-prompt", "{invoked}");
    let mut lines = Vec::new();
    if let Value::Object(scope) = &invoked["runScope"] {
        for (member, value) in scope.iter().filter(|(member, _)| *member != "command") {
            // The tools of an agent are those of its own definition.
            let value = value.get("name").unwrap_or(value);
            lines.push(format!("{member}: {value}"));
        }
    }
    if let Some(notice) = invoked["notice"].as_str() {
        lines.push(format!("notice: {notice}"));
    }
    lines.push(format!("prompt: {}", invoked["prompt"].as_str().unwrap()));
    lines.join("\n")
}

#[tokio::test]
async fn what_is_loaded_what_is_reported_and_what_is_said() {
    let daemon = Daemon::playing([]).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/command_files");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort_unstable();
    assert!(files.len() >= 25, "{}", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let case = Case::read(file);
        let name = file.file_stem().unwrap().to_str().unwrap();
        let project = daemon.file(name);
        let path = project.join(&case.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &case.text).unwrap();
        fs::write(project.join("notes.txt"), "milk\neggs\n").unwrap();
        let client = daemon.client();
        let shown_content = client
            .call("loopd.trust.show", json!({"path": project}))
            .await;
        let trusted = json!({"path": project, "hash": shown_content["hash"]});
        client.call("loopd.trust.set", trusted).await;
        let params = json!({"workingDirectory": project, "enableConfigDiscovery": true});
        let session = client.create(params).await;
        session.approve_all().await;
        let found = shown(&session, &project, &case).await;
        session.destroy().await;
        assert!(
            !project.join("pwned").exists(),
            "{name} ran a command of its arguments"
        );
        if found != case.expected {
            wrong.push(format!(
                "==== {name}\n{found}\n==== expected\n{}",
                case.expected
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    daemon.finish().await;
}
