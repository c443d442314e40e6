//! Sub-agents in what `loop` prints: told of, and never mixed into the answer.

use loopd_tests::{Turn, call};
use serde_json::json;

use crate::home::Home;
use crate::model::Model;

/// A main agent that has `finder` do something with a tool, and says what came of it.
fn with_finder(tool: &'static str, arguments: serde_json::Value) -> Model {
    Model::answering(move |request| {
        let done = !request.last_results().is_empty();
        match (request.first_user_text().contains("find the parser"), done) {
            (true, false) => Turn::any().calls([call("g", tool, arguments.clone())]),
            (true, true) => Turn::any().streams(["words of ", "the finder"]),
            (false, false) => Turn::any().calls([call(
                "t",
                "task",
                json!({
                    "name": "finder", "prompt": "find the parser", "description": "looks for it",
                    "agent_type": "general-purpose",
                }),
            )]),
            (false, true) => Turn::any().streams(["it is ", "found"]),
        }
    })
}

#[test]
fn the_answer_is_the_main_agents_alone() {
    let home = Home::new();
    let model = with_finder("glob", json!({"pattern": "**/*.rs"}));
    let said = model.run(&home, &["go"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "it is found\n", "{said:?}");
    let told = [
        "• task  finder\n",
        "▸ finder (general-purpose) started: looks for it\n",
        "  finder • glob  **/*.rs\n",
        "▸ finder (general-purpose) completed, 1 tool call, ",
    ];
    let mut rest = said.err.as_str();
    for line in told {
        let at = rest.find(line);
        let at = at.unwrap_or_else(|| panic!("{line:?} does not come next: {said:?}"));
        rest = &rest[at..];
    }
    assert!(!said.err.contains("> find the parser"), "{said:?}");
    model.finish();
}

#[test]
fn a_denial_names_the_agent() {
    let home = Home::new();
    let touch = json!({"command": "touch made", "description": "makes it"});
    let model = with_finder("bash", touch);
    let said = model.run(&home, &["go"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(
        said.err
            .contains("loop: agent finder: run `touch made` was denied"),
        "{said:?}"
    );
    assert!(said.err.contains("  finder   failed: "), "{said:?}");
    assert_eq!(said.out, "it is found\n", "{said:?}");
    model.finish();
}

#[cfg(unix)]
#[test]
fn a_person_is_told_which_agent_asks() {
    use crate::terminal::OnTerminal;

    let home = Home::new();
    let touch = json!({"command": "touch made", "description": "makes it"});
    let model = with_finder("bash", touch);
    let mut talk = OnTerminal::start(model.command(&home, &["go"]));
    talk.read_until("agent finder: run `touch made`");
    talk.read_until("[y/a/n] ");
    talk.types("y\n");
    talk.read_until("it is found");
    assert_eq!(talk.ends(), Some(0));
    assert!(home.path("made").exists());
    model.finish();
}

#[test]
fn an_agent_that_cannot_be_selected_is_refused_with_the_reason() {
    let home = Home::new();
    let agents = home.path(".github/agents");
    std::fs::create_dir_all(&agents).unwrap();
    let text = "---\ndescription: Does.\ntools: 5\n---\nHi.";
    std::fs::write(agents.join("broken.agent.md"), text).unwrap();
    let doctor = home.prints(&["doctor"]);
    let line = doctor.lines().find(|line| line.contains("broken.agent.md"));
    let problem = line.unwrap().split_once("files").unwrap().1.trim();
    let said = home.run(&["--agent", "broken", "run echo hello"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains(problem), "{problem}: {said:?}");
    assert!(problem.contains(", line "), "{problem}");
    for agent in ["explore", "general-purpose"] {
        let said = home.run(&["--agent", agent, "run echo hello"]);
        assert_eq!(said.code, 1, "{said:?}");
        let why = format!("the agent `{agent}` works for other agents only");
        assert!(said.err.contains(&why), "{said:?}");
        assert!(said.err.contains("build, plan"), "{said:?}");
    }
    for agent in ["build", "plan"] {
        home.prints(&["--agent", agent, "/agents"]);
    }
    let help = home.prints(&["--help"]);
    assert!(help.contains("`build` or `plan`"), "{help}");
}
