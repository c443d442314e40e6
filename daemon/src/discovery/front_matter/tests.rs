use std::path::Path;

use crate::discovery::agents::{AgentOrigin, parse};

/// The line that the problem of a file names.
fn line_told(matter: &str) -> (usize, String) {
    let text = format!("---\n{matter}\n---\nWork.\n");
    let problem = parse(Path::new("a.agent.md"), &text, AgentOrigin::User);
    let problem = problem.unwrap_err().to_string();
    let (_, rest) = problem.split_once("line ").unwrap();
    let (line, _) = rest.split_once(':').unwrap();
    (line.parse().unwrap(), problem)
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let mut wrong = Vec::new();
    for (line, matter) in [
        (2, "tools: 5\nname: a"),
        (3, "name: a\ntools: 5"),
        (3, "name: a\ndescription: [b"),
        (3, "name: a\ndescription: b: c"),
        (3, "name: a\ndescription: \"b"),
        (3, "name: a\nmodel: [1]"),
        (3, "name: a\nmaxTurns: many"),
        (3, "name: a\nmaxTurns: 0"),
        (3, "name: a\nmax-turns: -1"),
        (3, "name: a\nbackground: perhaps"),
        (3, "name: a\nisolation: container"),
        (3, "name: a\nname: b"),
        (3, "name: a\n\ttools: x"),
        (3, "name: a\nnot a member"),
        (4, "name: a\ndescription: b\nhooks: 7"),
        (4, "name: a\ndescription: b\nmode: sideways\ncolor: red"),
        (3, "name: a\ntools:\n  - x\n  - [y]"),
        (3, "name: a\n'tools': 5"),
        (3, "name: a\npermission-mode: sometimes"),
    ] {
        let (told, problem) = line_told(matter);
        if told != line {
            wrong.push(format!("line {line} of {matter:?}: {problem}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
