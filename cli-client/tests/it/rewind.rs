//! `loop rewind`: lists the points, goes back, and undoes that.

use loopd_tests::{Turn, call};
use serde_json::json;

use crate::home::Home;
use crate::model::Model;

fn model() -> Model {
    Model::answering(|request| {
        let results = request.last_results();
        let last = request.last_user_text();
        let write = |id: &str, name: &str| {
            let args = json!({"path": name, "file_text": "made\n"});
            Turn::any().calls([call(id, "create", args)])
        };
        match results.as_slice() {
            [] if last.contains("first") => write("one", "first.txt"),
            [] => write("two", "second.txt"),
            _ => Turn::any().says("made it"),
        }
    })
}

#[test]
fn a_session_goes_back_and_forth() {
    let home = Home::new();
    let model = model();
    model.prints(&home, &["--yolo", "make the first file"]);
    model.prints(&home, &["--yolo", "--continue", "make the second file"]);
    let listed = model.prints(&home, &["rewind"]);
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(
        lines[0].contains("2  1 file") && lines[0].contains("second"),
        "{listed}"
    );
    assert!(
        lines[1].contains("1  2 files") && lines[1].contains("first"),
        "{listed}"
    );

    let dry = model.prints(&home, &["rewind", "--to", "2", "--dry-run"]);
    assert!(
        dry.contains("remove") && dry.contains("second.txt"),
        "{dry}"
    );
    assert!(home.path("second.txt").exists());
    model.prints(&home, &["rewind", "--to", "2"]);
    assert!(!home.path("second.txt").exists() && home.path("first.txt").exists());
    let left = model.prints(&home, &["rewind"]);
    assert_eq!(left.lines().count(), 1, "{left}");
    model.prints(&home, &["rewind", "--undo"]);
    assert!(home.path("second.txt").exists());

    // What a person changed is not touched, unless that is wanted.
    std::fs::write(home.path("first.txt"), "mine\n").unwrap();
    let dry = model.run(&home, &["rewind", "--to", "1", "--dry-run"]);
    assert_eq!(dry.code, 1, "a dry run ends as the rewind would: {dry:?}");
    let dry = format!("{dry:?}");
    assert!(
        dry.contains("left alone") && dry.contains("this would touch nothing"),
        "{dry}"
    );
    let refused = model.run(&home, &["rewind", "--to", "1"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(home.path("second.txt").exists());
    model.prints(&home, &["rewind", "--to", "1", "--partly"]);
    assert!(!home.path("second.txt").exists());
    assert_eq!(
        std::fs::read_to_string(home.path("first.txt")).unwrap(),
        "mine\n"
    );
    model.finish();
}
