//! `loop context`: what takes how much, what was left out, and a compaction that is prevented.

use loopd_tests::Turn;

use crate::home::Home;
use crate::model::Model;

fn model(summaries: bool) -> Model {
    Model::answering(move |request| {
        let asked = request.last_user_text();
        if !asked.starts_with("Please create a detailed summary") {
            return Turn::any().says(&format!("well, {}", "a town by the sea ".repeat(60)));
        }
        if summaries {
            Turn::any().says("<overview>towns</overview>")
        } else {
            Turn::any().fails(400, "no summaries today")
        }
    })
}

#[test]
fn the_context_is_shown_with_what_was_left_out() {
    let home = Home::new();
    let model = model(true);
    model.prints(&home, &["tell me of towns"]);
    let shown = model.prints(&home, &["context"]);
    for part in [
        "░",
        " tokens, scripted",
        "System prompt",
        "Largest messages",
    ] {
        assert!(shown.contains(part), "{part} is not in {shown}");
    }
    let nothing = model.run(&home, &["context", "--dropped"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""), "{nothing:?}");
    assert!(nothing.err.contains("nothing was left out"), "{nothing:?}");
    model.prints(&home, &["--continue", "-p", "/compact"]);
    model.prints(&home, &["--continue", "and of villages"]);
    let dropped = model.run(&home, &["context", "--dropped"]);
    let lines: Vec<&str> = dropped.out.lines().collect();
    assert_eq!(lines.len(), 2, "{dropped:?}");
    assert!(lines[0].contains("user    tell me of towns"), "{dropped:?}");
    assert!(lines[1].contains("model   well, a town"), "{dropped:?}");
    assert!(dropped.err.contains("these 2 messages"), "{dropped:?}");
    let json = model.prints(&home, &["context", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["compactions"]["count"], 1, "{json}");
    model.finish();
}

#[test]
fn a_compaction_that_fails_ends_with_1() {
    let home = Home::new();
    let model = model(false);
    model.prints(&home, &["tell me of towns"]);
    let said = model.run(&home, &["--continue", "-p", "/compact"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("was not compacted"), "{said:?}");
    assert!(said.err.contains("no summaries today"), "{said:?}");
    model.finish();
}
