use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::*;
use crate::tool::fixture::{Fixture, granted, names};
use crate::tool::{DynTool, Status};

fn args(sections: &str) -> Value {
    json!({"patch": format!("*** Begin Patch\n{sections}\n*** End Patch\n")})
}

#[tokio::test]
async fn one_patch_adds_updates_moves_and_deletes() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\ntwo\n");
    fixture.write("gone.txt", "x\n");
    let script = fixture.write("run.sh", "#!/bin/sh\r\nexit\r\n");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let call = args(
        "*** Update File: a.txt\n@@\n-two\n+2\n*** Add File: x/new.txt\n+new\n\
         *** Delete File: gone.txt\n*** Update File: run.sh\n*** Move to: bin/run.sh\n@@\n-exit\n+exit 1",
    );
    let PermissionRequest::Write {
        file_name,
        other_files,
        diff,
        intention,
        ..
    } = fixture.request(&ApplyPatch, &call).await
    else {
        unreachable!("a patch asks to write");
    };
    assert_eq!(file_name, fixture.text("a.txt"));
    let others = ["x/new.txt", "gone.txt", "bin/run.sh", "run.sh"];
    assert_eq!(other_files, others.map(|name| fixture.text(name)));
    assert!(intention.contains("5 files"), "{intention}");
    for expected in [
        "-two\n+2\n",
        "new file mode 100644\n--- /dev/null",
        "deleted file mode 100644\n",
        "+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        "rename to ",
        "+exit 1\r\n",
    ] {
        assert!(diff.contains(expected), "{expected:?} in {diff}");
    }
    let outcome = fixture.call(&ApplyPatch, call).await;
    assert_eq!(outcome.status, Status::Success, "{}", outcome.text);
    assert!(
        outcome
            .text
            .starts_with("Patch applied to 4 files:\nupdated "),
        "{}",
        outcome.text
    );
    assert_eq!(outcome.detail.unwrap(), diff);
    assert_eq!(fixture.read("a.txt"), "one\n2\n");
    assert_eq!(fixture.read("x/new.txt"), "new\n");
    assert_eq!(fixture.read("bin/run.sh"), "#!/bin/sh\r\nexit 1\r\n");
    let mode = fixture
        .path("bin/run.sh")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    assert_eq!(names(&fixture.context.cwd), ["a.txt", "bin", "x"]);
}

#[tokio::test]
async fn the_diff_of_a_patch_is_a_patch() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\ntwo\nthree\n");
    let call = args("*** Update File: a.txt\n@@\n-two\n+2");
    let diff = fixture.call(&ApplyPatch, call).await.detail.unwrap();
    fixture.write("a.txt", "one\ntwo\nthree\n");
    // Printed names are relative to the root, as git prints them for files outside a repository.
    let diff = diff.replace(fixture.text("a.txt").trim_start_matches('/'), "a.txt");
    let outcome = fixture.call(&ApplyPatch, json!({"patch": diff})).await;
    assert_eq!(outcome.status, Status::Success, "{}", outcome.text);
    assert_eq!(fixture.read("a.txt"), "one\n2\nthree\n");
}

#[tokio::test]
async fn what_cannot_work_is_refused_and_nothing_changes() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "x\ny\nx\n");
    fixture.write("b.bin", b"a\0b");
    symlink(fixture.path("a.txt"), fixture.path("link")).unwrap();
    let good = "*** Add File: new.txt\n+new\n";
    let table = [
        (
            "*** Update File: gone.txt\n@@\n-x",
            "gone.txt does not exist",
        ),
        (
            "*** Update File: a.txt\n@@\n-x\n+z",
            "a.txt: hunk 1 of 1 (line 5 of the patch) fits in 2 places (lines 1, 3)",
        ),
        (
            "*** Update File: a.txt\n@@\n-q\n+z",
            "its old lines are not in the file",
        ),
        (
            "*** Update File: b.bin\n@@\n-a",
            "b.bin cannot be changed: it holds binary data",
        ),
        ("*** Add File: a.txt\n+x", "a.txt already exists"),
        ("*** Add File: a.txt/b\n+x", "is a file, not a folder"),
        (
            "*** Update File: a.txt\n*** Move to: b.bin",
            "b.bin already exists",
        ),
        ("*** Delete File: link", "is a symbolic link"),
        (
            "*** Add File: new.txt\n+x",
            "it names new.txt more than once",
        ),
        ("*** Delete File: .", "it is a folder"),
        (
            "*** Update File: a.txt\n@@\n x\n y",
            "would not change a.txt",
        ),
        ("nonsense", "every line of an added file"),
    ];
    for (section, expected) in table {
        let text = fixture
            .refusal(&ApplyPatch, &args(&format!("{good}{section}")))
            .await;
        assert!(text.contains(expected), "{section:?}: {text}");
        assert!(text.contains("Nothing was changed"), "{text}");
        assert_eq!(names(&fixture.context.cwd), ["a.txt", "b.bin", "link"]);
    }
    assert_eq!(fixture.read("a.txt"), "x\ny\nx\n");
}

#[tokio::test]
async fn a_patch_that_nobody_saw_is_not_applied() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\ntwo\n");
    let call = args("*** Add File: b.txt\n+b\n*** Update File: a.txt\n@@\n-two\n+2");
    let grant = granted(fixture.request(&ApplyPatch, &call).await);
    fixture.write("a.txt", "zero\ntwo\n");
    let outcome = DynTool::run(&ApplyPatch, &grant, call, &fixture.context).await;
    assert_eq!(outcome.status, Status::Failure);
    assert!(
        outcome.text.contains("changed in the meantime"),
        "{}",
        outcome.text
    );
    assert_eq!(names(&fixture.context.cwd), ["a.txt"]);
}

#[tokio::test]
async fn a_link_is_updated_at_its_target_and_permission_names_that() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().canonicalize().unwrap().join("t.txt");
    std::fs::write(&target, "one\n").unwrap();
    symlink(&target, fixture.path("link.txt")).unwrap();
    let call = args("*** Update File: link.txt\n@@\n-one\n+two");
    let PermissionRequest::Write {
        file_name,
        also_named,
        ..
    } = fixture.request(&ApplyPatch, &call).await
    else {
        unreachable!("a patch asks to write");
    };
    assert_eq!(file_name, target.display().to_string());
    assert_eq!(also_named, [fixture.text("link.txt")]);
    fixture.call(&ApplyPatch, call).await;
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "two\n");
    assert!(fixture.path("link.txt").is_symlink());
}
