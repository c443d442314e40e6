//! Files of agents that can be used only in part, or not at all, are shown by `loop doctor`, and the
//! model that a file names answers.

use crate::home::Home;

fn with_agents(files: &[(&str, &str)]) -> Home {
    let home = Home::new();
    let folder = home.path(".github/agents");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, front) in files {
        let text = format!("---\ndescription: x\n{front}\n---\nWork.\n");
        std::fs::write(folder.join(name), text).unwrap();
    }
    home
}

#[test]
fn doctor_names_what_is_wrong_with_files_of_agents() {
    let home = with_agents(&[
        ("tools.md", "tools: [view, Read, mcp__x, nosuchtool]"),
        ("model.md", "model: nosuchmodel"),
        ("key.md", "frobnicate: 1"),
        ("same1.md", "name: same"),
        ("same2.md", "name: same"),
    ]);
    let link = home.path(".github/agents/dangling.md");
    std::os::unix::fs::symlink("/nonexistent", link).unwrap();
    let said = home.run(&["doctor"]).out;
    for expected in [
        "`nosuchtool` is no built-in tool",
        "wants the model `nosuchmodel`",
        "`frobnicate` is unknown",
        "has the same name, `same`",
        "is a link to a file that does not exist",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!said.contains("`Read`"), "{said}");
}

#[test]
fn a_run_warns_of_such_files_and_still_uses_the_agent() {
    let home = with_agents(&[
        ("key.md", "frobnicate: 1"),
        ("tools.md", "tools: [bash, nosuchtool]"),
    ]);
    let said = home.run(&["--agent", "key", "run echo one"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("one"), "{said:?}");
    assert!(said.err.contains("`frobnicate` is unknown"), "{said:?}");
    assert!(said.err.contains("`nosuchtool` is no built-in"), "{said:?}");
}

#[test]
fn an_agent_whose_model_nothing_serves_is_an_error_unless_a_model_is_named() {
    let home = with_agents(&[("poet.md", "model: gpt-5")]);
    let said = home.run(&["--agent", "poet", "run echo one"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("gpt-5"), "{said:?}");
    let args = ["--agent", "poet", "--model", "offline", "run echo one"];
    assert!(home.prints(&args).contains("one"));
}
