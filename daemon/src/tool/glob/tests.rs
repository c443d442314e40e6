use serde_json::json;

use loopd_proto::permission::PermissionRequest;

use super::*;
use crate::tool::Status;
use crate::tool::fixture::Fixture;

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    for path in [
        "src/index.ts",
        "src/deep/a.tsx",
        "src/b.js",
        "README.md",
        "top.ts",
        "out/x.ts",
    ] {
        fixture.write(path, "");
    }
    fixture.write(".gitignore", "out\n");
    fixture
}

#[tokio::test]
async fn files_are_named_from_the_place_that_was_searched() {
    let fixture = fixture();
    let root = fixture.context.cwd.display().to_string();
    let table = [
        (json!({"pattern": "src/*.ts"}), "./src/index.ts".to_owned()),
        (
            json!({"pattern": "**/*.ts"}),
            "./src/index.ts\n./top.ts".to_owned(),
        ),
        (
            json!({"pattern": "./**/*.ts"}),
            "./src/index.ts\n./top.ts".to_owned(),
        ),
        (json!({"pattern": "*.ts"}), "./top.ts".to_owned()),
        (
            json!({"pattern": "**/*.{ts,tsx}", "path": "src"}),
            "src/deep/a.tsx\nsrc/index.ts".to_owned(),
        ),
        (
            json!({"pattern": "*.ts", "path": format!("{root}/src/")}),
            format!("{root}/src/index.ts"),
        ),
        (
            json!({"pattern": format!("{root}/src/**/*.tsx")}),
            format!("{root}/src/deep/a.tsx"),
        ),
        (
            json!({"pattern": format!("{root}/top.ts")}),
            format!("{root}/top.ts"),
        ),
        (
            json!({"pattern": "**/*.py"}),
            "No files matched the pattern.".to_owned(),
        ),
    ];
    for (args, expected) in table {
        let outcome = fixture.call(&Glob, args.clone()).await;
        assert_eq!(outcome, Outcome::success(expected), "{args}");
    }
}

#[tokio::test]
async fn permission_names_the_folder() {
    let fixture = fixture();
    let request = fixture
        .request(&Glob, &json!({"pattern": "*.ts", "path": "src"}))
        .await;
    let path = fixture.text("src");
    let expected = PermissionRequest::Read {
        managed_approval_required: None,
        tool_call_id: None,
        intention: format!("Search files: *.ts in {path}"),
        path,
        also_named: Vec::new(),
    };
    assert_eq!(request, expected);
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let fixture = fixture();
    let table = [
        (json!({"pattern": "[a"}), "The pattern is not valid"),
        (json!({"pattern": "../*"}), "leaves the folder"),
        (json!({"pattern": "*", "path": "gone"}), "does not exist"),
        (
            json!({"pattern": "*", "path": "README.md"}),
            "is not a folder",
        ),
    ];
    for (args, expected) in table {
        let text = fixture.refusal(&Glob, &args).await;
        assert!(text.contains(expected), "{args}: {text}");
    }
}

#[tokio::test]
async fn a_long_list_says_what_is_missing() {
    let fixture = Fixture::new();
    for number in 0..1005 {
        fixture.write(&format!("{number:04}"), "");
    }
    let outcome = fixture.call(&Glob, json!({"pattern": "*"})).await;
    assert_eq!(outcome.status, Status::Success);
    let note =
        "./0999\n[5 more lines were left out. Use a narrower pattern or a folder further down.]";
    assert!(outcome.text.ends_with(note), "{}", outcome.text);
}
