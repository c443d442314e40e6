use serde_json::json;

use super::*;
use crate::tool::fixture::{Fixture, granted, names};
use crate::tool::{DynTool, Status};

#[tokio::test]
async fn a_new_file_is_made_and_its_characters_counted() {
    let fixture = Fixture::new();
    let path = fixture.text("new_file.txt");
    let outcome = fixture
        .call(
            &Create,
            json!({"path": path, "file_text": "Created by test"}),
        )
        .await;
    assert_eq!(outcome.status, Status::Success);
    assert_eq!(
        outcome.text,
        format!("Created file {path} with 15 characters")
    );
    assert!(
        outcome
            .detail
            .unwrap()
            .ends_with("+Created by test\n\\ No newline at end of file\n")
    );
    assert_eq!(fixture.read("new_file.txt"), "Created by test");

    let outcome = fixture
        .call(
            &Create,
            json!({"path": "deep/er/ü.txt", "file_text": "Grüße\r\n"}),
        )
        .await;
    let expected = format!(
        "Created file {} with 7 characters",
        fixture.text("deep/er/ü.txt")
    );
    assert_eq!(outcome.text, expected);
    assert_eq!(fixture.read("deep/er/ü.txt"), "Grüße\r\n");
    assert_eq!(names(&fixture.path("deep/er")), ["ü.txt"]);
}

#[tokio::test]
async fn permission_is_asked_for_the_exact_content() {
    let fixture = Fixture::new();
    let args = json!({"path": "a.txt", "file_text": "one\n"});
    let request = fixture.request(&Create, &args).await;
    let path = fixture.text("a.txt");
    let name = path.trim_start_matches('/');
    assert_eq!(
        request,
        PermissionRequest::Write {
            managed_approval_required: None,
            tool_call_id: None,
            intention: "Create file".to_owned(),
            file_name: path.clone(),
            diff: format!(
                "\ndiff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+one\n"
            ),
            new_file_contents: Some("one\n".to_owned()),
            can_offer_session_approval: true,
            other_files: Vec::new(),
            also_named: Vec::new(),
            repository_folders: Vec::new(),
        }
    );
    let grant = granted(request);
    let other = json!({"path": "a.txt", "file_text": "two\n"});
    let outcome = DynTool::run(&Create, &grant, other, &fixture.context).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(names(&fixture.context.cwd).is_empty());
}

#[tokio::test]
async fn what_is_there_already_is_never_touched() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "old");
    std::fs::create_dir(fixture.path("folder")).unwrap();
    let table = [
        ("a.txt", "already exists"),
        ("folder", "is a folder"),
        ("folder/", "does not name a file"),
        ("", "does not name a file"),
        ("a.txt/b.txt", "is a file, not a folder"),
    ];
    for (path, expected) in table {
        let args = json!({"path": path, "file_text": "new"});
        let text = fixture.refusal(&Create, &args).await;
        assert!(text.contains(expected), "{path}: {text}");
    }
    assert_eq!(fixture.read("a.txt"), "old");
}

#[tokio::test]
async fn a_file_made_while_permission_was_asked_is_not_overwritten() {
    let fixture = Fixture::new();
    let args = json!({"path": "a.txt", "file_text": "mine"});
    let grant = granted(fixture.request(&Create, &args).await);
    fixture.write("a.txt", "theirs");
    let outcome = DynTool::run(&Create, &grant, args, &fixture.context).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(outcome.text.contains("already exists"), "{}", outcome.text);
    assert_eq!(fixture.read("a.txt"), "theirs");
}

#[cfg(unix)]
#[tokio::test]
async fn a_dangling_link_is_in_the_way() {
    let fixture = Fixture::new();
    std::os::unix::fs::symlink("/nowhere/at/all", fixture.path("link")).unwrap();
    let args = json!({"path": "link", "file_text": "x"});
    let text = fixture.refusal(&Create, &args).await;
    assert!(text.contains("already exists"), "{text}");
}
