//! Files of agents that can be used only in part, or not at all, are shown by `loop doctor`, and the
//! model that a file names answers.

use loopd_tests::Turn;

use crate::home::Home;
use crate::model::Model;

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

#[test]
fn a_file_that_cannot_restrict_its_agent_is_not_used_and_no_other_agent_answers() {
    let home = with_agents(&[
        ("one.md", "tool: [view]"),
        ("two.md", "dissalowed-tools: [bash]"),
        ("three.md", "disallowedTools: [bsh]"),
        ("explore.md", "tools: [\"*\", \"!bash\"]"),
    ]);
    let doctor = home.run(&["doctor"]).out;
    for (name, what) in [
        ("one", "`tool` is unknown and would restrict the agent"),
        ("two", "write `disallowedTools` if that is meant"),
        (
            "three",
            "`bsh` is to be taken away and is no tool; if it means `bash`",
        ),
        ("explore", "takes tools out with `!bash`"),
    ] {
        assert!(doctor.contains(what), "{name}: {doctor}");
        let said = home.run(&["--agent", name, "run echo one"]);
        assert_eq!(said.code, 1, "{name}: {said:?}");
        assert!(said.err.contains(what), "{name}: {said:?}");
    }
}

#[test]
fn an_effort_that_nobody_knows_is_told_and_one_that_is_known_is_sent() {
    let home = with_agents(&[("deep.md", "effort: high"), ("odd.md", "effort: hugely")]);
    let doctor = home.run(&["doctor"]).out;
    assert!(doctor.contains("`effort: hugely` is unknown"), "{doctor}");
    let model = Model::answering(|_| Turn::any().says("done"));
    model.prints(&home, &["--agent", "odd", "go"]);
    assert_eq!(model.last_effort(), None);
    model.prints(&home, &["--agent", "deep", "go"]);
    assert_eq!(model.last_effort().as_deref(), Some("high"));
    model.finish();
}
