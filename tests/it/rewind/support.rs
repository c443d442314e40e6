//! A session in a folder of its own whose model plays given calls, and pictures of that folder.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loopd_tests::{Daemon, Script, Session, Turn, call};
use serde_json::{Value, json};

/// One call of a turn: the tool, its arguments and a part of its result.
pub(super) type Step = (&'static str, Value, &'static str);

pub(super) fn create(path: &str, text: &str) -> Step {
    (
        "create",
        json!({"path": path, "file_text": text}),
        "Created",
    )
}

pub(super) fn edit(path: &str, old: &str, new: &str) -> Step {
    let args = json!({"path": path, "old_str": old, "new_str": new});
    ("edit", args, "updated")
}

pub(super) fn patch(sections: &str) -> Step {
    let patch = format!("*** Begin Patch\n{sections}\n*** End Patch\n");
    ("apply_patch", json!({ "patch": patch }), "Patch applied")
}

pub(super) fn bash(command: &str) -> Step {
    let args = json!({"command": command, "description": "a command"});
    ("bash", args, "exit code 0")
}

/// What is at a path: its kind, mode and content.
pub(super) type Tree = BTreeMap<PathBuf, (char, u32, Vec<u8>)>;

/// Reads a folder with all that is in it.
pub(super) fn tree_of(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().to_owned();
            let mode = metadata.permissions().mode() & 0o7777;
            let picture = if metadata.is_dir() {
                waiting.push(path);
                ('d', mode, Vec::new())
            } else if metadata.is_symlink() {
                let to = std::fs::read_link(&path).unwrap();
                ('l', 0, to.to_string_lossy().into_owned().into_bytes())
            } else {
                ('f', mode, std::fs::read(&path).unwrap())
            };
            tree.insert(name, picture);
        }
    }
    tree
}

/// Fails with the paths that differ.
#[track_caller]
pub(super) fn same_tree(what: &str, expected: &Tree, found: &Tree) {
    let show = |entry: Option<&(char, u32, Vec<u8>)>| {
        entry.map_or_else(
            || "nothing".to_owned(),
            |(kind, mode, text)| format!("{kind} {mode:o} {:?}", String::from_utf8_lossy(text)),
        )
    };
    let names = expected.keys().chain(found.keys());
    let mut wrong: Vec<String> = names
        .filter(|name| expected.get(*name) != found.get(*name))
        .map(|name| {
            let (was, is) = (show(expected.get(name)), show(found.get(name)));
            format!("{}: {was} is now {is}", name.display())
        })
        .collect();
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

/// The prompt of a turn.
pub(super) fn prompt(number: usize) -> String {
    format!("turn number {number:02}")
}

/// The turns of the model: each step of a turn is one call.
pub(super) fn script(turns: &[Vec<Step>]) -> Vec<Turn> {
    let mut script = Vec::new();
    for (number, steps) in turns.iter().enumerate() {
        let mut next = Turn::user(&prompt(number));
        for (at, (tool, args, result)) in steps.iter().enumerate() {
            let id = format!("call-{number}-{at}");
            script.push(next.calls([call(&id, tool, args.clone())]));
            next = Turn::results([*result]);
        }
        script.push(next.says("done"));
    }
    script
}

pub(super) struct World {
    pub(super) daemon: Daemon,
    pub(super) session: Session,
}

impl World {
    /// Starts a daemon whose model plays these turns in a folder that `files` fills.
    pub(super) async fn new(turns: &[Vec<Step>], files: impl FnOnce(&Self)) -> Self {
        Self::with(turns, json!({}), files).await
    }

    pub(super) async fn with(
        turns: &[Vec<Step>],
        options: Value,
        files: impl FnOnce(&Self),
    ) -> Self {
        let script = Script::play(script(turns)).await;
        let daemon = Daemon::builder().script(script).yolo().start().await;
        let session = daemon.client().create(options).await;
        let world = Self { daemon, session };
        files(&world);
        world
    }

    pub(super) fn write(&self, name: &str, contents: &[u8], mode: u32) {
        let path = self.daemon.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }

    pub(super) fn folder(&self, name: &str, mode: u32) {
        let path = self.daemon.file(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.daemon.file(name)).unwrap()
    }

    pub(super) fn tree(&self) -> Tree {
        tree_of(self.daemon.work())
    }

    /// Plays one turn.
    pub(super) async fn turn(&mut self, number: usize) {
        self.session.ask(&prompt(number)).await;
    }

    pub(super) async fn points(&self) -> Vec<Value> {
        let listed = self
            .session
            .call("session.history.listRewindPoints", json!({}));
        let listed = listed.await;
        assert_eq!(listed["fileChangeTrackingEnabled"], true, "{listed}");
        listed["points"].as_array().unwrap().clone()
    }

    pub(super) async fn rewind(&self, point: &Value, mode: &str) -> Value {
        let params = json!({"eventId": point["eventId"], "mode": mode});
        self.session.call("session.history.rewind", params).await
    }

    pub(super) async fn undo(&self) -> Value {
        self.session.call("loopd.rewind", json!({})).await
    }

    /// Returns what users said, as the session tells it.
    pub(super) async fn said(&self) -> Vec<String> {
        let events = self.session.messages().await.into_iter();
        events
            .filter(|event| event["type"] == "user.message")
            .map(|event| event["data"]["content"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(super) async fn finish(self) {
        self.daemon.finish().await;
    }
}
