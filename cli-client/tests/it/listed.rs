//! `loop todos`, `models`, `agents`, `config`, `completions` and `man`: for people, and with --json for programs.

use loopd_tests::{Turn, call};
use serde_json::{Value, json};

use crate::home::Home;
use crate::model::Model;

#[test]
fn the_todos_of_a_session_are_listed() {
    let home = Home::new();
    let model = Model::answering(|request| match request.last_results().len() {
        0 => Turn::any().calls([call(
            "a",
            "todowrite",
            json!({"todos": [
                {"id": "one", "content": "Find milk", "status": "completed", "priority": "high"},
                {"id": "two", "content": "Bake bread", "status": "pending", "priority": "low"},
            ]}),
        )]),
        _ => Turn::any().says("noted"),
    });
    model.prints(&home, &["plan the day"]);
    let listed = home.prints(&["todos"]);
    assert_eq!(listed, "[x] one  Find milk\n[ ] two  Bake bread\n");
    let json = home.prints(&["--json", "todos"]);
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["status"], "completed");
    let unknown = home.run(&["todos", "--session", "zzz"]);
    assert_eq!(unknown.code, 1);
}

#[test]
fn models_are_listed_and_the_usual_one_is_marked() {
    let home = Home::new();
    let said = home.run(&["models"]);
    assert!(said.out.starts_with("* offline "), "{said:?}");
    assert!(said.err.contains("no model is configured"), "{said:?}");
    let model = Model::answering(|_| Turn::any().says("hi"));
    let listed = model.prints(&home, &["models"]);
    assert!(listed.starts_with("* scripted "), "{listed}");
    let json = model.prints(&home, &["--json", "models"]);
    let line: Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(
        (&line["id"], &line["usual"]),
        (&json!("scripted"), &json!(true))
    );
}

#[test]
fn agents_are_listed_with_those_that_are_built_in() {
    let home = Home::new();
    let folder = home.path(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let agent = "---\nname: helper\ndescription: Helps.\n---\nYou help.\n";
    std::fs::write(folder.join("helper.agent.md"), agent).unwrap();
    std::fs::write(folder.join("broken.agent.md"), "---\nname: [\n---\n").unwrap();
    let said = home.run(&["agents"]);
    assert!(
        said.out
            .contains("helper  .github/agents/helper.agent.md\n    Helps."),
        "{said:?}"
    );
    assert!(said.out.contains("explore  built in"), "{said:?}");
    assert!(said.err.contains("broken.agent.md"), "{said:?}");
    let json = home.prints(&["--json", "agents"]);
    let listed: Value = serde_json::from_str(&json).unwrap();
    assert!(listed["agents"].as_array().unwrap().len() > 5);
    let said = home.run(&["agents", "nowhere"]);
    assert!(said.err.contains("is no directory"), "{said:?}");
}

#[test]
fn the_configuration_is_shown_with_what_is_wrong() {
    let home = Home::new();
    let said = home.run(&["config"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.ends_with("config.toml\n"), "{said:?}");
    assert!(said.err.contains("does not exist"), "{said:?}");
    home.prints(&["daemon", "stop"]);
    std::fs::write(home.path("home/config.toml"), "[agents]\nmax_depth = 3\n").unwrap();
    let shown = home.prints(&["config"]);
    assert!(shown.ends_with("  agents.max_depth = 3\n"), "{shown}");
    let all = home.prints(&["config", "--all"]);
    assert!(
        all.contains("agents.max_depth  (number; default 6)\n    How deep"),
        "{all}"
    );
    std::fs::write(home.path("home/config.toml"), "unattended = 3\n").unwrap();
    let said = home.run(&["config"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("line 1"), "{said:?}");
    let json = home.run(&["--json", "config"]);
    let shown: Value = serde_json::from_str(&json.out).unwrap();
    assert!(shown["problem"].is_string());
}

#[test]
fn shells_get_their_completions() {
    let home = Home::new();
    for (shell, mark) in [
        ("bash", "complete -F _loop"),
        ("zsh", "#compdef loop"),
        ("fish", "complete -c loop"),
    ] {
        let script = home.prints(&["completions", shell]);
        assert!(script.contains(mark), "{shell}: {script}");
        assert!(script.contains("sessions"), "{shell}");
    }
    let said = home.run(&["completions", "tcsh"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("[possible values: bash"), "{said:?}");
    // No daemon is started for it.
    assert_eq!(home.run(&["daemon", "status"]).code, 1);
}

/// What bash makes of the script.
#[test]
fn bash_completes_subcommands() {
    let home = Home::new();
    let script = home.prints(&["completions", "bash"]);
    std::fs::write(home.path("loop.bash"), script).unwrap();
    let typed = "source ./loop.bash; COMP_WORDS=(loop sessions exp); COMP_CWORD=2; _loop loop exp sessions; echo ${COMPREPLY[@]}";
    let mut bash = std::process::Command::new("bash");
    let output = bash.args(["-c", typed]).current_dir(home.folder.path());
    let output = output.output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "export",
        "{output:?}"
    );
}

#[test]
fn every_subcommand_gets_a_manual_page() {
    let home = Home::new();
    let said = home.run(&["man", "pages"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("mkdir -p"), "{said:?}");
    std::fs::create_dir(home.path("pages")).unwrap();
    let said = home.run(&["man", "pages"]);
    assert_eq!(said.code, 0, "{said:?}");
    for page in [
        "loop.1",
        "loop-sessions.1",
        "loop-sessions-export.1",
        "loop-daemon-install.1",
    ] {
        let text = std::fs::read_to_string(home.path("pages").join(page)).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
    let page = std::fs::read_to_string(home.path("pages/loop-sessions-export.1")).unwrap();
    assert!(
        page.contains("loop\\-sessions\\-export") || page.contains("loop sessions export"),
        "{page}"
    );
}

/// Every subcommand says in its help what it is for, and the longer ones show an example.
#[test]
fn help_teaches_with_an_example() {
    let home = Home::new();
    for verb in [
        "sessions",
        "models",
        "agents",
        "todos",
        "config",
        "completions",
        "man",
    ] {
        let help = home.prints(&[verb, "--help"]);
        assert!(help.contains("For example"), "{verb}: {help}");
    }
    for verb in ["search", "rename", "export", "prune", "fork"] {
        let help = home.prints(&["sessions", verb, "--help"]);
        assert!(help.contains("or example"), "{verb}: {help}");
    }
}
