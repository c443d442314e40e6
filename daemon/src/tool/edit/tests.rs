use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::*;
use crate::tool::fixture::{Fixture, granted, names};
use crate::tool::{DynTool, Status};

fn args(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_str": old, "new_str": new})
}

#[tokio::test]
async fn one_piece_is_replaced() {
    let fixture = Fixture::new();
    fixture.write("edit_me.txt", "Hello World\nGoodbye World\n");
    let path = fixture.text("edit_me.txt");
    let outcome = fixture
        .call(&Edit, args(&path, "Hello World", "Hi Universe"))
        .await;
    assert_eq!(outcome.status, Status::Success);
    assert_eq!(outcome.text, format!("File {path} updated with changes."));
    let diff = outcome.detail.unwrap();
    assert!(
        diff.ends_with("@@ -1,2 +1,2 @@\n-Hello World\n+Hi Universe\n Goodbye World\n"),
        "{diff}"
    );
    assert_eq!(fixture.read("edit_me.txt"), "Hi Universe\nGoodbye World\n");
    assert_eq!(names(&fixture.context.cwd), ["edit_me.txt"]);
}

#[tokio::test]
async fn endings_final_newline_and_mode_stay() {
    let fixture = Fixture::new();
    let path = fixture.write("run.sh", "#!/bin/sh\r\necho ä\r\nexit");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let outcome = fixture
        .call(&Edit, args("run.sh", "ä\nexit", "ö\nexit 1"))
        .await;
    assert_eq!(outcome.status, Status::Success, "{}", outcome.text);
    assert_eq!(fixture.read("run.sh"), "#!/bin/sh\r\necho ö\r\nexit 1");
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[tokio::test]
async fn text_is_deleted_where_nothing_new_is_given() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one two");
    fixture
        .call(&Edit, json!({"path": "a.txt", "old_str": " two"}))
        .await;
    assert_eq!(fixture.read("a.txt"), "one");
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_anybody_is_asked() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "x\ny\nx\n");
    fixture.write("b.bin", b"a\0b");
    fixture.write("c.txt", b"\xff\xfea");
    let large = std::fs::File::create(fixture.path("large")).unwrap();
    large.set_len(disk::MAX_WHOLE_FILE + 1).unwrap();
    let table = [
        (
            "gone.txt",
            "x",
            "y",
            "does not exist. Please provide a valid path.",
        ),
        (".", "x", "y", "it is a folder"),
        ("a.txt", "z", "y", "No match for old_str"),
        ("a.txt", "x", "z", "occurs more than once in"),
        ("a.txt", "x", "z", "(first on lines 1, 3)"),
        ("a.txt", "y", "y", "are the same"),
        ("a.txt", "", "y", "old_str is empty"),
        ("b.bin", "a", "y", "binary data"),
        ("c.txt", "a", "y", "not valid UTF-8"),
        ("large", "a", "y", "more than 10485760 bytes"),
    ];
    for (path, old, new, expected) in table {
        let text = fixture.refusal(&Edit, &args(path, old, new)).await;
        assert!(text.contains(expected), "{path} {old:?}: {text}");
    }
}

#[tokio::test]
async fn an_edit_that_nobody_saw_is_not_made() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\ntwo\n");
    let edit = args("a.txt", "two", "2");
    let grant = granted(fixture.request(&Edit, &edit).await);
    fixture.write("a.txt", "zero\ntwo\n");
    let outcome = DynTool::run(&Edit, &grant, edit, &fixture.context).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(
        outcome.text.contains("changed in the meantime"),
        "{}",
        outcome.text
    );
    assert_eq!(fixture.read("a.txt"), "zero\ntwo\n");
}

#[tokio::test]
async fn a_link_is_edited_at_its_target_and_permission_names_that() {
    let fixture = Fixture::new();
    let target = fixture.write("real/a.txt", "one");
    symlink(&target, fixture.path("link.txt")).unwrap();
    let edit = args("link.txt", "one", "two");
    let PermissionRequest::Write { file_name, .. } = fixture.request(&Edit, &edit).await else {
        unreachable!("an edit asks to write");
    };
    assert_eq!(file_name, target.display().to_string());
    fixture.call(&Edit, edit).await;
    assert_eq!(fixture.read("real/a.txt"), "two");
    assert!(fixture.path("link.txt").is_symlink());
}

#[tokio::test]
async fn several_edits_are_made_in_order_and_at_once() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\ntwo\nthree\nthree\n");
    let edits = json!([
        {"old_str": "one", "new_str": "1"},
        {"old_str": "1\ntwo", "new_str": "2"},
        {"old_str": "three", "new_str": "3", "replace_all": true},
    ]);
    let outcome = fixture
        .call(&Edit, json!({"path": "a.txt", "edits": edits}))
        .await;
    assert_eq!(outcome.status, Status::Success, "{}", outcome.text);
    assert_eq!(fixture.read("a.txt"), "2\n3\n3\n");
    let diff = outcome.detail.unwrap();
    assert!(diff.contains("-one\n-two\n"), "{diff}");
    assert_eq!(diff.matches("diff --git").count(), 1);
}

#[tokio::test]
async fn one_edit_that_fails_leaves_everything_as_it_is() {
    let fixture = Fixture::new();
    let before = "one\ntwo\ntwo\n\tthree\n";
    fixture.write("a.txt", before);
    let good = json!({"old_str": "one", "new_str": "1"});
    let table = [
        (
            json!([good, {"old_str": "two", "new_str": "2"}]),
            "Edit 2 of 2: old_str occurs more than once",
        ),
        (
            json!([good, {"old_str": "two", "new_str": "2"}]),
            "(first on lines 2, 3), 2 times in all",
        ),
        (
            json!([good, {"old_str": "  three", "new_str": "3"}]),
            "line 4 is \"\\tthree\" and old_str has \"  three\"",
        ),
        (
            json!([good, {"old_str": "one\ntwo", "new_str": "3"}]),
            "overlaps what an edit before it replaced",
        ),
        (
            json!([good, {"old_str": "1", "new_str": "one"}]),
            "undo each other",
        ),
        (json!([]), "Nothing to edit"),
    ];
    for (edits, expected) in table {
        let args = json!({"path": "a.txt", "edits": edits});
        let text = fixture.refusal(&Edit, &args).await;
        assert!(text.contains(expected), "{edits}: {text}");
        assert_eq!(fixture.read("a.txt"), before);
    }
    let both = json!({"path": "a.txt", "old_str": "one", "edits": [good]});
    let text = fixture.refusal(&Edit, &both).await;
    assert!(text.contains("not both"), "{text}");
}

#[tokio::test]
async fn every_occurrence_is_replaced_on_request() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "x y x\r\nx\r\n");
    let args = json!({"path": "a.txt", "old_str": "x", "new_str": "z", "replace_all": true});
    fixture.call(&Edit, args).await;
    assert_eq!(fixture.read("a.txt"), "z y z\r\nz\r\n");
}
