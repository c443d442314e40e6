//! `loop doctor` for programs.

use crate::home::Home;

#[test]
fn doctor_writes_json_when_it_is_asked_to() {
    let home = Home::new();
    let said = home.run(&["--json", "doctor"]);
    let lines: Vec<serde_json::Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let checks: Vec<&str> = lines
        .iter()
        .map(|line| line["check"].as_str().unwrap())
        .collect();
    assert!(
        checks.contains(&"home") && checks.contains(&"git"),
        "{said:?}"
    );
    assert!(
        lines.iter().all(|line| line["text"].is_string()),
        "{said:?}"
    );
}
