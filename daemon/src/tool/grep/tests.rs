use serde_json::{Value, json};

use loopd_proto::permission::PermissionRequest;

use super::*;
use crate::tool::fixture::Fixture;

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("data.txt", "apple\nbanana\napricot\ncherry\n");
    fixture.write("src/a.rs", "fn one() {}\nfn two() {\n    apple();\n}\n");
    fixture.write("src/b.py", "APPLE = 1\r\nend\r\n");
    fixture.write("target/x.rs", "apple\n");
    fixture.write("image.bin", b"apple\0apple\n");
    fixture.write(".gitignore", "target\n");
    fixture
}

async fn check(fixture: &Fixture, args: Value, expected: &str) {
    let outcome = fixture.call(&Grep, args.clone()).await;
    assert_eq!(outcome, Outcome::success(expected), "{args}");
}

#[tokio::test]
async fn matching_lines_are_printed_as_ripgrep_does() {
    let fixture = fixture();
    let path = fixture.text("data.txt");
    check(
        &fixture,
        json!({"pattern": "^ap", "path": path, "output_mode": "content", "-n": true}),
        &format!("{path}:1:apple\n{path}:3:apricot"),
    )
    .await;
    check(
        &fixture,
        json!({"query": "banana", "output_mode": "content"}),
        "./data.txt:banana",
    )
    .await;
}

#[tokio::test]
async fn each_mode_answers_its_own_question() {
    let fixture = fixture();
    check(
        &fixture,
        json!({"pattern": "apple"}),
        "./data.txt\n./src/a.rs",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "apple", "-i": true, "output_mode": "files_with_matches"}),
        "./data.txt\n./src/a.rs\n./src/b.py",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "a", "output_mode": "count"}),
        "./.gitignore:1\n./data.txt:3\n./src/a.rs:1",
    )
    .await;
    check(&fixture, json!({"pattern": "nowhere"}), "No matches found.").await;
}

#[tokio::test]
async fn files_are_chosen_by_path_glob_and_type() {
    let fixture = fixture();
    check(
        &fixture,
        json!({"pattern": "apple", "path": "src"}),
        "src/a.rs",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "apple", "glob": "*.txt"}),
        "./data.txt",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "apple", "glob": "!*.txt"}),
        "./src/a.rs",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "apple", "type": "rust"}),
        "./src/a.rs",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "apple", "path": "target"}),
        "target/x.rs",
    )
    .await;
}

#[tokio::test]
async fn lines_around_matches_are_marked_and_groups_parted() {
    let fixture = Fixture::new();
    fixture.write("a", "1\nx\n3\n4\n5\n6\nx\n");
    fixture.write("b", "0\nx\n");
    check(
        &fixture,
        json!({"pattern": "x", "output_mode": "content", "-n": true, "-C": 1}),
        "./a-1-1\n./a:2:x\n./a-3-3\n--\n./a-6-6\n./a:7:x\n--\n./b-1-0\n./b:2:x",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "x", "path": "a", "output_mode": "content", "-A": 1}),
        "a:x\na-3\n--\na:x",
    )
    .await;
}

#[tokio::test]
async fn patterns_may_span_lines_only_when_asked_to() {
    let fixture = fixture();
    check(
        &fixture,
        json!({"pattern": "two.*apple", "multiline": true, "output_mode": "content", "-n": true}),
        "./src/a.rs:2:fn two() {\n./src/a.rs:3:    apple();",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "two.*apple"}),
        "No matches found.",
    )
    .await;
    check(
        &fixture,
        json!({"pattern": "end$", "output_mode": "content"}),
        "./src/b.py:end",
    )
    .await;
}

#[tokio::test]
async fn a_limit_says_how_much_is_missing() {
    let fixture = fixture();
    check(
        &fixture,
        json!({"pattern": "a", "path": "data.txt", "output_mode": "content", "head_limit": 2}),
        "data.txt:apple\ndata.txt:banana\n[1 more lines were left out. Narrow the search or raise head_limit.]",
    )
    .await;
}

#[tokio::test]
async fn long_lines_are_cut() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "x".repeat(3000));
    let expected = format!(
        "./a.txt:{}... [line cut, 3000 bytes in all]",
        "x".repeat(500)
    );
    check(
        &fixture,
        json!({"pattern": "x", "output_mode": "content"}),
        &expected,
    )
    .await;
}

#[tokio::test]
async fn a_file_that_cannot_be_searched_is_told() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "x\n");
    let large = "y".repeat(17 * 1024 * 1024);
    fixture.write("b.txt", &large);
    let outcome = fixture.call(&Grep, json!({"pattern": "x"})).await;
    let start = "./a.txt\n[One file could not be searched: ./b.txt: ";
    assert!(outcome.text.starts_with(start), "{}", outcome.text);
}

#[tokio::test]
async fn permission_names_pattern_and_place() {
    let fixture = fixture();
    let request = fixture.request(&Grep, &json!({"pattern": "x.y"})).await;
    let path = fixture.context.cwd.display().to_string();
    let expected = PermissionRequest::Read {
        managed_approval_required: None,
        tool_call_id: None,
        intention: format!("Search files: x.y in {path}"),
        path,
        also_named: Vec::new(),
    };
    assert_eq!(request, expected);
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let fixture = fixture();
    let table = [
        (json!({"pattern": "a("}), "The pattern is not valid"),
        (json!({"pattern": "a\\nb"}), "set multiline"),
        (json!({"pattern": "a", "path": "gone"}), "does not exist"),
        (
            json!({"pattern": "a", "glob": "[x"}),
            "The glob is not valid",
        ),
        (
            json!({"pattern": "a", "type": "klingon"}),
            "Use glob instead, for example `*.klingon`",
        ),
        (
            json!({"pattern": "a", "output_mode": "x"}),
            "output_mode: unknown value `x`",
        ),
    ];
    for (args, expected) in table {
        let text = fixture.refusal(&Grep, &args).await;
        assert!(text.contains(expected), "{args}: {text}");
    }
}
