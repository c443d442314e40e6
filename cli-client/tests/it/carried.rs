//! Stored sessions: found, named, copied, deleted, and carried to another home.

use serde_json::Value;

use crate::home::Home;

#[test]
fn a_session_goes_on_in_another_home() {
    let (there, here) = (Home::new(), Home::new());
    there.prints(&["run echo milk"]);
    let id = there.last_session();
    let said = there.run(&["sessions", "export", &id[..30], "--output", "work.jsonl"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "work.jsonl\n");
    assert!(said.err.contains("left out: keys, tokens"), "{said:?}");
    let again = there.run(&["sessions", "export", &id, "--output", "work.jsonl"]);
    assert_eq!(again.code, 1);
    assert!(
        again.err.contains("exists already and is not overwritten"),
        "{again:?}"
    );
    let file = there.path("work.jsonl");
    let file = file.to_str().unwrap();
    let said = here.run(&["sessions", "import", file]);
    assert_eq!((said.code, said.out.trim()), (0, id.as_str()), "{said:?}");
    assert!(said.err.contains("is asked again"), "{said:?}");
    assert!(here.prints(&["events", &id]).contains("echo milk"));
    // It is the last session of this directory, and may look around as any new one.
    let out = here.prints(&["-c", "run cat work.txt"]);
    assert!(out.contains("work.txt"), "{out}");
    let again = here.run(&["sessions", "import", file]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("is here already"), "{again:?}");
    let copy = here.prints(&["sessions", "import", file, "--copy"]);
    assert_ne!(copy.trim(), id);
    assert_eq!(here.prints(&["sessions"]).lines().count(), 2);
}

#[test]
fn a_bundle_goes_through_pipes_and_what_is_none_is_refused_by_name() {
    use std::io::Write;
    use std::process::Stdio;
    let (there, here) = (Home::new(), Home::new());
    there.prints(&["run echo milk"]);
    let id = there.last_session();
    let bundle = there.prints(&["sessions", "export", &id, "--output", "-"]);
    for line in bundle.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    let mut importing = here
        .command(&["--json", "sessions", "import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = importing.stdin.take().unwrap();
    stdin.write_all(bundle.as_bytes()).unwrap();
    drop(stdin);
    let output = importing.wait_with_output().unwrap();
    let imported: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(imported["sessionId"], id.as_str());
    for (name, text, why) in [
        (
            "notes.md",
            "# Notes\n".to_owned(),
            "this is no session bundle of loopd",
        ),
        ("cut.jsonl", bundle[..bundle.len() / 2].to_owned(), "line "),
        (
            "empty.jsonl",
            String::new(),
            "this is no session bundle of loopd",
        ),
        (
            "newer.jsonl",
            bundle.replacen("\"loopdSession\":1", "\"loopdSession\":9", 1),
            "the bundle has version 9, and this daemon reads bundles up to version 1",
        ),
    ] {
        std::fs::write(here.path(name), text).unwrap();
        let said = here.run(&["sessions", "import", name, "--copy"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(
            said.err.contains(why) && said.err.contains(name),
            "{said:?}"
        );
    }
    std::fs::write(here.path("bytes"), b"\xff\xfe\n").unwrap();
    let said = here.run(&["sessions", "import", "bytes"]);
    assert!(said.err.contains("no session bundle of loopd"), "{said:?}");
    let said = here.run(&["sessions", "import", "nothing"]);
    assert!(said.err.contains("nothing cannot be read"), "{said:?}");
    assert_eq!(here.prints(&["sessions"]).lines().count(), 1);
}

#[test]
fn sessions_are_found_named_copied_and_deleted() {
    let home = Home::new();
    home.prints(&["run echo milk"]);
    let milk = home.last_session();
    home.prints(&["run echo bread"]);
    let bread = home.last_session();
    let found = home.prints(&["sessions", "search", "MILK"]);
    assert!(found.starts_with(&milk), "{found}");
    assert!(
        found.contains("\n    model: ") || found.contains("\n    you: "),
        "{found}"
    );
    let json = home.prints(&["--json", "sessions", "search", "milk"]);
    let hit: Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(hit["session"]["sessionId"], milk.as_str());
    let none = home.run(&["sessions", "search", "cheese"]);
    assert_eq!((none.code, none.out.as_str()), (1, ""));
    assert!(none.err.contains("no session has `cheese`"), "{none:?}");
    home.prints(&["sessions", "rename", &milk, "About milk"]);
    assert!(home.prints(&["sessions"]).contains("About milk"));
    let copy = home.prints(&["sessions", "fork", &bread, "--name", "Other bread"]);
    let copy = copy.trim();
    assert!(home.prints(&["sessions"]).contains("Other bread"));
    let before = home.prints(&["--json", "sessions", "fork", &bread, "--to", "1"]);
    let before: Value = serde_json::from_str(before.trim()).unwrap();
    let events = home.prints(&["events", before["sessionId"].as_str().unwrap()]);
    assert!(!events.contains("user.message"), "{events}");
    let asked = home.run(&["sessions", "delete", copy]);
    assert_eq!(asked.code, 1);
    assert!(asked.err.contains("--yes"), "{asked:?}");
    let deleted = home.run(&["sessions", "delete", copy, &milk, "--yes"]);
    assert_eq!(deleted.code, 0, "{deleted:?}");
    assert!(
        deleted.err.contains(&format!("deleted {copy}")),
        "{deleted:?}"
    );
    assert_eq!(home.prints(&["sessions"]).lines().count(), 2);
    let unknown = home.run(&["sessions", "delete", "zzz", "--yes"]);
    assert!(
        unknown.err.contains("no session begins with `zzz`"),
        "{unknown:?}"
    );
}

#[test]
fn old_sessions_are_shown_before_they_are_pruned() {
    let home = Home::new();
    home.prints(&["run echo milk"]);
    let named = home.last_session();
    home.prints(&["sessions", "rename", &named, "Kept"]);
    home.prints(&["run echo bread"]);
    let plain = home.last_session();
    home.prints(&["daemon", "stop"]);
    let nothing = home.run(&["sessions", "prune", "--older-than", "30", "--yes"]);
    assert!(
        nothing.err.contains("0 sessions would be deleted"),
        "{nothing:?}"
    );
    let shown = home.run(&["sessions", "prune", "--older-than", "0", "--dry-run"]);
    assert_eq!(shown.out.trim(), plain, "{shown:?}");
    let asked = home.run(&["sessions", "prune", "--older-than", "0"]);
    assert!(asked.err.contains("--yes"), "{asked:?}");
    let pruned = home.run(&["sessions", "prune", "--older-than", "0", "--yes"]);
    assert!(pruned.err.contains("deleted 1 session"), "{pruned:?}");
    assert!(home.prints(&["sessions"]).contains("Kept"));
    let json = home.prints(&[
        "--json",
        "sessions",
        "prune",
        "--older-than",
        "0",
        "--named",
        "--yes",
    ]);
    let pruned: Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(pruned["deleted"][0], named.as_str());
}
