//! An attacker who swaps a folder for a link while the tools work: whatever the timing, nothing
//! outside the working directory is read, listed, changed or made.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use loopd_proto::permission::{PermissionRequest, PermissionRule, Permissions};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use crate::tool::catalog::Catalog;
use crate::tool::fixture::{Fixture, names};
use crate::tool::{Need, Outcome, Status};
use loopd_kernel::policy::grant::Grant;

const SECRET: &str = "the secret outside";
const ROUNDS: u32 = 300;

/// What the session does: rules for everything inside, and nobody to ask.
async fn call(fixture: &Fixture, catalog: &Catalog, tool: &str, args: Value) -> Option<Outcome> {
    let rule = |kind: &str| PermissionRule {
        kind: kind.to_owned(),
        argument: None,
    };
    let permissions = Permissions {
        approved: vec![rule("read"), rule("write")],
        ..Permissions::default()
    };
    let cwd = fixture.context.cwd.display().to_string();
    let tool = catalog.get(tool).unwrap();
    let request: PermissionRequest = match tool.need(&args, &fixture.context).await {
        Need::Permission(request) => request,
        other @ (Need::Nothing
        | Need::PermissionForShell(_)
        | Need::Answer(_)
        | Need::Approval(_)) => {
            unreachable!("file tools ask, not {other:?}")
        }
        Need::Refused(outcome) => return Some(outcome),
    };
    let grant = Grant::by_rules(&permissions, cwd.as_str(), Some(request)).ok()?;
    Some(tool.run(&grant, args, &fixture.context).await)
}

/// Swaps two names as fast as it can until it is told to stop.
fn swap(left: &Path, right: &Path, stop: &AtomicBool, swaps: &AtomicU64) {
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE).unwrap();
        swaps.fetch_add(1, Ordering::Relaxed);
        // Gives the tools a moment in which the world stands still, of changing length.
        for _ in 0..(swaps.load(Ordering::Relaxed) % 64) * 50 {
            std::hint::spin_loop();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_swapped_for_a_link_leads_nowhere() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    for name in ["f.txt", "outside-only.txt"] {
        std::fs::write(outside.path().join(name), SECRET).unwrap();
    }
    fixture.write("d/f.txt", "inside 0\n");
    std::os::unix::fs::symlink(outside.path(), fixture.path("link")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swaps = Arc::new(AtomicU64::new(0));
    let attacker = {
        let (left, right) = (fixture.path("d"), fixture.path("link"));
        let (stop, swaps) = (stop.clone(), swaps.clone());
        std::thread::spawn(move || swap(&left, &right, &stop, &swaps))
    };
    let catalog = Catalog::new();
    let (mut read, mut written) = (0, 0);
    for round in 0..ROUNDS {
        let patch = format!("*** Begin Patch\n*** Add File: d/p{round}.txt\n+new\n*** End Patch\n");
        let calls = [
            ("view", json!({"path": "d/f.txt"})),
            ("view", json!({"path": "d"})),
            (
                "grep",
                json!({"pattern": "e", "path": "d", "output_mode": "content"}),
            ),
            (
                "grep",
                json!({"pattern": "e", "path": ".", "output_mode": "content"}),
            ),
            ("glob", json!({"pattern": "**/*outside*"})),
            (
                "edit",
                json!({"path": "d/f.txt", "old_str": "inside", "new_str": "inside "}),
            ),
            (
                "edit",
                json!({"path": "d/f.txt", "old_str": "secret", "new_str": "changed"}),
            ),
            (
                "create",
                json!({"path": format!("d/c{round}.txt"), "file_text": "new"}),
            ),
            (
                "create",
                json!({"path": format!("d/x/y{round}/c.txt"), "file_text": "new"}),
            ),
            ("apply_patch", json!({"patch": patch})),
        ];
        for (tool, args) in calls {
            let Some(outcome) = call(&fixture, &catalog, tool, args).await else {
                continue;
            };
            let texts = format!("{} {:?}", outcome.text, outcome.detail);
            assert!(!texts.contains("the secret"), "{tool}: {texts}");
            assert!(!texts.contains("outside-only"), "{tool}: {texts}");
            match (tool, outcome.status) {
                (_, Status::Failure | Status::ShellGone | Status::Interrupted) => {}
                ("view" | "grep" | "glob", Status::Success) => read += 1,
                (_, Status::Success) => written += 1,
            }
        }
    }
    stop.store(true, Ordering::Relaxed);
    attacker.join().unwrap();
    assert_eq!(names(outside.path()), ["f.txt", "outside-only.txt"]);
    for name in ["f.txt", "outside-only.txt"] {
        let text = std::fs::read_to_string(outside.path().join(name)).unwrap();
        assert_eq!(text, SECRET);
    }
    // The test is worth something only if both sides had their turns.
    let swaps = swaps.load(Ordering::Relaxed);
    assert!(swaps > 1000, "only {swaps} swaps");
    assert!(
        read > 50 && written > 25,
        "{read} reads and {written} writes got through"
    );
}
