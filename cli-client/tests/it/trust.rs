//! `loop trust` and `loop hooks`.

use crate::home::Home;
use crate::terminal::OnTerminal;

fn write(home: &Home, file: &str, text: &str) {
    let path = home.path(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn hook(home: &Home, command: &str) {
    let text = format!(
        "{{\n\"version\":1,\"hooks\":{{\"preToolUse\":[\n{{\"bash\":\"{command}\",\"matcher\":\"bash\"}}]}}}}"
    );
    write(home, "app/.github/hooks/a.json", &text);
}

/// Returns the hash that `loop trust --show` prints.
fn hash(home: &Home) -> String {
    let shown = home.prints(&["trust", "app", "--show"]);
    let line = shown.lines().find_map(|line| line.strip_prefix("hash "));
    line.unwrap_or_else(|| panic!("{shown}")).to_owned()
}

#[test]
fn a_folder_is_trusted_with_what_was_shown() {
    let home = Home::new();
    std::fs::create_dir(home.path("app")).unwrap();
    let nothing = home.prints(&["trust", "app"]);
    assert!(
        nothing.contains("brings nothing that needs trust"),
        "{nothing}"
    );
    let none = home.run(&["hooks", "app"]);
    assert!(none.code == 0 && none.err.contains("no hooks"), "{none:?}");

    hook(&home, "./guard.sh");
    let shown = home.prints(&["trust", "app", "--show"]);
    let row = "Hooks:\n  new      .github/hooks/a.json:3  preToolUse (bash)\n           ./guard.sh";
    assert!(shown.contains(row), "{shown}");
    let listed = home.run(&["hooks", "app"]);
    assert!(listed.out.contains("  not trusted\n"), "{listed:?}");
    assert!(listed.err.contains("loop trust"), "{listed:?}");
    let asked = home.run(&["trust", "app"]);
    assert_eq!(asked.code, 3, "nobody is there to ask: {asked:?}");
    assert!(
        asked.err.contains(&format!("--yes {}", hash(&home))),
        "{asked:?}"
    );

    let before = hash(&home);
    hook(&home, "./other.sh");
    let refused = home.run(&["trust", "app", "--yes", &before]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("nothing was trusted"), "{refused:?}");
    let done = home.run(&["trust", "app", "--yes", &hash(&home)]);
    assert!(
        done.code == 0 && done.err.contains("with 1 item"),
        "{done:?}"
    );
    let listed = home.run(&["hooks", "app"]);
    let head = ".github/hooks/a.json:3  preToolUse (bash)  runs\n";
    assert!(
        listed.out.starts_with(head) && listed.err.is_empty(),
        "{listed:?}"
    );
    let listed: serde_json::Value =
        serde_json::from_str(&home.prints(&["hooks", "app", "--json"])).unwrap();
    assert_eq!(listed["hooks"][0]["command"], "./other.sh");
    let shown: serde_json::Value =
        serde_json::from_str(&home.prints(&["trust", "app", "--json"])).unwrap();
    assert_eq!(shown["trusted"], true);
    let missing = home.run(&["trust", "nowhere"]);
    assert!(
        missing.code == 1 && missing.err.contains("is no folder"),
        "{missing:?}"
    );
}

#[test]
fn a_person_is_asked_about_a_folder() {
    let home = Home::new();
    hook(&home, "./guard.sh");
    let mut no = OnTerminal::start(home.command(&["trust", "app"]));
    no.read_until("./guard.sh");
    no.read_until("[y/n] ");
    no.types("n\n");
    no.read_until("nothing was trusted");
    assert_eq!(no.ends(), Some(1));
    let mut yes = OnTerminal::start(home.command(&["trust", "app"]));
    yes.read_until("[y/n] ");
    yes.types("y\n");
    yes.read_until("with 1 item");
    assert_eq!(yes.ends(), Some(0));
    assert!(home.prints(&["hooks", "app"]).contains("  runs\n"));
}

#[test]
fn a_hook_is_tried_without_a_session() {
    let home = Home::new();
    hook(&home, "echo '{}'");
    let tried = home.run(&["hooks", "test", "app/.github/hooks/a.json", "PreToolUse"]);
    assert_eq!(tried.code, 0, "{tried:?}");
    assert!(tried.out.contains("a.json:3  "), "{tried:?}");
    assert!(tried.out.contains("answered  nothing"), "{tried:?}");
    hook(&home, "exit 7");
    let failed = home.run(&["hooks", "test", "app/.github/hooks/a.json", "preToolUse"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.out.contains("exit code 7"), "{failed:?}");
    let none = home.run(&["hooks", "test", "app/.github/hooks/a.json", "agentStop"]);
    assert!(none.code == 1 && none.err.contains("no hook"), "{none:?}");
}
