//! Files of hooks as people publish them, with their mistakes: what is loaded, and what is reported.
//!
//! Each file in `hook_files/` has three parts: where the text belongs, the text, and what comes of it.

use std::fs;
use std::path::Path;

use loopd_tests::{Client, Daemon};
use serde_json::{Value, json};

/// A line between the parts.
const BORDER: &str = "----\n";

/// One file of `hook_files/`.
struct Case {
    /// Words about the bytes (`bom`, `crlf`) and the launch (`local`).
    words: Vec<String>,
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
        let mut words: Vec<String> = head.split_whitespace().map(str::to_owned).collect();
        let path = words.pop().unwrap();
        let mut text = (*text).to_owned();
        if words.iter().any(|word| word == "bom") {
            text.insert(0, '\u{feff}');
        }
        if words.iter().any(|word| word == "crlf") {
            text = text.replace('\n', "\r\n");
        }
        Self {
            words,
            path,
            text,
            expected: expected.trim_end().to_owned(),
        }
    }
}

/// Trusts a folder with its hooks, and shows a line per hook and per problem.
async fn shown(client: &Client, folder: &Path) -> String {
    let shown = client
        .call("loopd.trust.show", json!({"path": folder}))
        .await;
    let params = json!({"path": folder, "hash": shown["hash"]});
    client.call("loopd.trust.set", params).await;
    let listed = client
        .call("loopd.hooks.list", json!({"cwd": folder}))
        .await;
    let hooks = listed["hooks"].as_array().unwrap().iter().map(hook);
    let folder = folder.canonicalize().unwrap();
    let problems = listed["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| {
            let file = Path::new(problem["file"].as_str().unwrap());
            let file = file.strip_prefix(&folder).unwrap().display();
            let line = problem["line"].as_u64();
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("! {file}{line}: {}", problem["message"].as_str().unwrap())
        });
    hooks.chain(problems).collect::<Vec<_>>().join("\n")
}

fn hook(hook: &Value) -> String {
    let text = |member: &str| hook[member].as_str().unwrap_or_default().to_owned();
    let mut line = format!("{}: {}", hook["line"], text("event"));
    for (member, word) in [("matcher", "for"), ("if", "if")] {
        if hook[member].is_string() {
            line = format!("{line} {word} {}", text(member));
        }
    }
    line = format!("{line} | {} | {}", text("action"), text("command"));
    if hook["timeoutSec"] != 30.0 {
        line = format!("{line} | {} s", hook["timeoutSec"]);
    }
    if text("state") != "runs" {
        line = format!("{line} | {}", text("state"));
    }
    line
}

#[tokio::test]
async fn what_is_loaded_and_what_is_reported() {
    let daemon = Daemon::playing([]).await;
    let local = Daemon::builder().env("COPILOT_HOOK_ALLOW_LOCALHOST", "1");
    let local = local.start().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/hook_files");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    files.sort_unstable();
    assert!(files.len() >= 40, "{}", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let case = Case::read(file);
        let name = file.file_stem().unwrap().to_str().unwrap();
        let daemon = if case.words.iter().any(|word| word == "local") {
            &local
        } else {
            &daemon
        };
        let project = daemon.file(name);
        let path = project.join(&case.path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &case.text).unwrap();
        let found = shown(&daemon.client(), &project).await;
        if found != case.expected {
            wrong.push(format!(
                "==== {name}\n{found}\n==== expected\n{}",
                case.expected
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    daemon.finish().await;
    local.finish().await;
}
