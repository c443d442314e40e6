//! Logs that earlier versions wrote, in `tests/logs/<version>/`: they fold and load as they did when
//! they were written, forever.
//!
//! A story is one or more sessions: `<story>.<session>.jsonl` has a session's stored events, a line
//! each, as the store keeps them; only paths and addresses of the machine were replaced. Beside it,
//! `<story>.json` says what each session folds to, and what a daemon shows of it after loading all
//! sessions of the story. These files are never written again: if a test fails here, old sessions of
//! users would change, and the code has to be mended.
//!
//! To add the logs of a new version, when the format of events has grown:
//!
//! ```text
//! LOOPD_RECORD_LOGS=<version> cargo nextest run -p loopd-tests --run-ignored only golden_logs
//! ```
//!
//! This plays the stories of `stories.rs` and writes a new folder. It refuses a folder that exists.
//! `LOOPD_RECORD_STORY` names one story, if the others are as they were.

mod recording;
mod stories;
mod summary;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use summary::Log;

/// Where the logs of all versions are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("logs")
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| {
        panic!("{} cannot be read: {error}", folder.display());
    });
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// The stories of one version: the logs of each, by the name of the session.
fn stories_of(version: &Path) -> BTreeMap<String, Vec<Log>> {
    let mut stories: BTreeMap<String, Vec<Log>> = BTreeMap::new();
    for name in names(version) {
        let Some(stem) = name.strip_suffix(".jsonl") else {
            continue;
        };
        let (story, session) = stem.split_once('.').expect("<story>.<session>.jsonl");
        let text = std::fs::read_to_string(version.join(&name)).unwrap();
        let log = Log::read(session, &text);
        stories.entry(story.to_owned()).or_default().push(log);
    }
    stories
}

#[tokio::test]
async fn old_logs_fold_and_load_as_ever() {
    let mut seen = 0;
    for version in names(&folder()) {
        let version = folder().join(version);
        for (story, logs) in stories_of(&version) {
            let file = version.join(format!("{story}.json"));
            let text = std::fs::read_to_string(&file).unwrap();
            let expected: Value = serde_json::from_str(&text).unwrap();
            let found = summary::of_story(&logs).await;
            if !covers(&found, &expected) {
                let (found, expected) = (shown(&found), shown(&expected));
                let lines = expected.lines().zip(found.lines());
                let same = lines.take_while(|(one, other)| one == other).count();
                let part = |text: &str| {
                    let lines: Vec<&str> =
                        text.lines().skip(same.saturating_sub(4)).take(12).collect();
                    lines.join("\n")
                };
                panic!(
                    "{} is not what its logs come to, from line {}:\n{}\nbut now:\n{}",
                    file.display(),
                    same + 1,
                    part(&expected),
                    part(&found)
                );
            }
            seen += 1;
        }
    }
    assert!(seen > 0, "there are no logs in {}", folder().display());
}

/// Whether a summary says all that an older one says. Members that came later may be there, too.
fn covers(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let nothing = Value::Null;
            let mut members = expected.iter();
            members.all(|(name, value)| covers(found.get(name).unwrap_or(&nothing), value))
        }
        (Value::Array(found), Value::Array(expected)) => {
            let mut pairs = found.iter().zip(expected);
            found.len() == expected.len() && pairs.all(|(one, other)| covers(one, other))
        }
        (found, expected) => found == expected,
    }
}

fn shown(summary: &Value) -> String {
    format!("{summary:#}\n")
}

#[test]
fn the_logs_are_small_and_name_no_place_of_a_machine() {
    let mut bytes = 0;
    for version in names(&folder()) {
        for name in names(&folder().join(&version)) {
            let text = std::fs::read_to_string(folder().join(&version).join(&name)).unwrap();
            bytes += text.len();
            for foreign in ["/tmp/", "/home/", "/root/", "/work/", "127.0.0.1"] {
                assert!(!text.contains(foreign), "{name} names {foreign}");
            }
        }
        assert!(bytes < 300_000, "the logs of {version} have {bytes} bytes");
        bytes = 0;
    }
}

/// The kinds of our own events that no story has: they are not stored, or need a command that waits for its input, a
/// detached one, or a client's own tasks.
const NOT_LOGGED: &[&str] = &[
    "loopd.autopilot_changed",
    "loopd.fleet_progress",
    "loopd.shell_waiting",
    "loopd.task_noted",
    "loopd.task_process",
    "loopd.task_promoted",
];

#[test]
fn every_event_of_our_own_is_in_a_log() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/src/event.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let kinds = source.split('"').filter(|text| {
        let name = text.strip_prefix("loopd.");
        name.is_some_and(|name| !name.is_empty() && !name.contains(' '))
    });
    let mut logs = String::new();
    for version in names(&folder()) {
        for name in names(&folder().join(&version)) {
            logs += &std::fs::read_to_string(folder().join(&version).join(&name)).unwrap();
        }
    }
    let mut missing: Vec<&str> = kinds
        .filter(|kind| !logs.contains(&format!("\"{kind}\"")))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    assert_eq!(missing, NOT_LOGGED, "a new event needs a story");
}

/// Plays all stories and writes their logs and what these come to; see the top of the file.
#[tokio::test]
#[ignore = "writes the logs of a new version; LOOPD_RECORD_LOGS names it"]
async fn record_the_logs_of_a_version() {
    let version = std::env::var("LOOPD_RECORD_LOGS").expect("LOOPD_RECORD_LOGS names a version");
    let target = folder().join(version);
    assert!(!target.exists(), "{} exists already", target.display());
    let only = std::env::var("LOOPD_RECORD_STORY").ok();
    let stories = stories::play(only.as_deref()).await;
    assert!(!stories.is_empty(), "there is no story {only:?}");
    std::fs::create_dir_all(&target).unwrap();
    for (story, logs) in stories {
        for log in &logs {
            let file = target.join(format!("{story}.{}.jsonl", log.name));
            std::fs::write(file, log.text()).unwrap();
        }
        let summary = shown(&summary::of_story(&logs).await);
        std::fs::write(target.join(format!("{story}.json")), summary).unwrap();
    }
}
