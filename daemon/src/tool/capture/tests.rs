mod uncopied;
mod unread_files;

use std::sync::Arc;

use loopd_proto::id::{RewindId, ToolCallId};
use tempfile::TempDir;

use super::unread::Unread;
use super::*;

const BOUNDS: Bounds = Bounds {
    file: 1_000,
    session_bytes: 4_000,
    baseline_file: 500,
    baseline_bytes: 100_000,
    entries: 100,
};

struct Place {
    root: TempDir,
    captures: Captures,
    told: Arc<Mutex<Vec<String>>>,
}

impl Place {
    fn new(bounds: Bounds) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "home"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let captures = opened(&root, bounds, &told);
        Self {
            root,
            captures,
            told,
        }
    }

    /// Opens the captures again, as the next daemon does.
    fn reopen(&mut self, bounds: Bounds) {
        self.captures = opened(&self.root, bounds, &self.told);
    }

    fn path(&self, name: &str) -> PathBuf {
        let work = self.root.path().join("work").canonicalize().unwrap();
        work.join(name)
    }

    fn workspace(&self) -> Workspace {
        Workspace {
            cwd: self.path(""),
            user_home: None,
            unread: ReadRules::default(),
        }
    }

    /// A file tool writes a file.
    fn writes(&self, turn: u64, name: &str, text: &str) {
        self.captures.turn_began(Seq(turn));
        let path = self.path(name);
        let call = ToolCallId::from("call");
        let writing = self.captures.writing(&call, [path.as_path()]);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        writing.done();
    }

    fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }
}

fn opened(root: &TempDir, bounds: Bounds, told: &Arc<Mutex<Vec<String>>>) -> Captures {
    let home = root.path().join("home");
    let told = told.clone();
    let notify = Box::new(move |text| told.lock().push(text));
    Captures::new(&home.join("session-state/s"), &home, bounds, notify)
}

#[test]
fn a_write_that_did_not_happen_leaves_no_record() {
    let place = Place::new(BOUNDS);
    place.captures.turn_began(Seq(5));
    let path = place.path("a.txt");
    drop(place.captures.writing(&"call".into(), [path.as_path()]));
    assert_eq!(place.captures.turns().unwrap().turns.len(), 0);
}

#[test]
fn a_daemon_that_ended_while_a_tool_wrote_names_the_file_and_leaves_it_alone() {
    let mut place = Place::new(BOUNDS);
    std::fs::write(place.path("a.txt"), "before").unwrap();
    place.captures.turn_began(Seq(5));
    let path = place.path("a.txt");
    let writing = place.captures.writing(&"call".into(), [path.as_path()]);
    std::fs::write(&path, "half").unwrap();
    std::mem::forget(writing);
    place.reopen(BOUNDS);
    let preview = place.captures.preview(Seq(5)).unwrap();
    assert_eq!(preview.files, []);
    let reasons: Vec<SkipReason> = preview.skipped.iter().map(|it| it.reason).collect();
    assert_eq!(reasons, [SkipReason::NotCaptured(NotCaptured::Interrupted)]);
}

#[test]
fn a_record_that_a_crash_cut_off_does_not_spoil_the_next_one() {
    let mut place = Place::new(BOUNDS);
    place.writes(5, "a.txt", "a");
    let journal = place
        .root
        .path()
        .join("home/session-state/s/rewind/changes.jsonl");
    let mut text = std::fs::read(&journal).unwrap();
    text.extend_from_slice(b"{\"changed\":{\"turn\":6");
    std::fs::write(&journal, text).unwrap();
    place.reopen(BOUNDS);
    place.writes(7, "b.txt", "b");
    let turns: Vec<Seq> = place.captures.turns().unwrap().turns.into_keys().collect();
    assert_eq!(turns, [Seq(5), Seq(7)]);
}

#[test]
fn the_oldest_turns_are_dropped_first_and_people_are_told() {
    let place = Place::new(BOUNDS);
    for turn in 1..=10 {
        let text = format!("{turn}")
            .repeat(800)
            .chars()
            .take(900)
            .collect::<String>();
        place.writes(turn, &format!("file-{turn}"), &text);
    }
    let tracked = place.captures.turns().unwrap();
    assert!(tracked.begins > Seq(1), "{tracked:?}");
    assert!(!tracked.turns.contains_key(&Seq(1)));
    assert!(tracked.turns.contains_key(&Seq(10)));
    assert_eq!(place.told.lock().len(), 1, "they are told once");
    let objects = place
        .root
        .path()
        .join("home/session-state/s/rewind/objects");
    let bytes: u64 = std::fs::read_dir(objects)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(bytes <= BOUNDS.session_bytes, "{bytes}");
    // What is kept can be restored.
    let id = RewindId::from("r");
    place.captures.prepare_rewind(&id, Seq(10)).unwrap();
    place.captures.carry_out_rewind(&id, Seq(20)).unwrap();
    assert_eq!(place.text("file-10"), None);
    assert!(place.text("file-9").is_some());
}

#[test]
fn the_rest_of_a_rewind_is_done_whatever_was_done_before() {
    let files = ["a", "folder/b", "folder/deep/c"];
    // Each file is done, or not, before the crash.
    for done in 0..8_u32 {
        let mut place = Place::new(BOUNDS);
        std::fs::write(place.path("kept"), "one").unwrap();
        place.writes(5, "kept", "two");
        for file in files {
            place.writes(5, file, "new");
        }
        let id = RewindId::from("r");
        place.captures.prepare_rewind(&id, Seq(5)).unwrap();
        for (at, file) in files.iter().enumerate() {
            if done & (1 << at) != 0 {
                std::fs::remove_file(place.path(file)).unwrap();
            }
        }
        place.reopen(BOUNDS);
        let report = place.captures.carry_out_rewind(&id, Seq(9)).unwrap();
        assert_eq!(report.skipped, [], "{done}");
        assert_eq!(place.text("kept").as_deref(), Some("one"), "{done}");
        assert!(
            !place.path("a").exists() && !place.path("folder").exists(),
            "{done}"
        );
        // Once more: nothing is to do, and the report is the same.
        let again = place.captures.carry_out_rewind(&id, Seq(9)).unwrap();
        assert_eq!(again.restored.len(), 6, "with the folders: {again:?}");
    }
}

#[test]
fn a_failed_step_takes_back_the_steps_before_it() {
    let place = Place::new(BOUNDS);
    std::fs::write(place.path("a"), "one").unwrap();
    std::fs::write(place.path("b"), "first").unwrap();
    place.writes(5, "a", "two");
    place.writes(5, "b", "second");
    let id = RewindId::from("r");
    place.captures.prepare_rewind(&id, Seq(5)).unwrap();
    let objects = place
        .root
        .path()
        .join("home/session-state/s/rewind/objects");
    for entry in std::fs::read_dir(objects).unwrap() {
        let path = entry.unwrap().path();
        if std::fs::read(&path).unwrap() == b"first" {
            std::fs::write(&path, "damaged").unwrap();
        }
    }
    let failure = place.captures.carry_out_rewind(&id, Seq(9)).unwrap_err();
    assert!(failure.rolled_back, "{failure}");
    assert_eq!(place.text("a").as_deref(), Some("two"));
    assert_eq!(place.text("b").as_deref(), Some("second"));
}

#[tokio::test]
async fn commands_of_a_daemon_that_was_killed_are_compared_by_the_next_one() {
    let mut place = Place::new(BOUNDS);
    std::fs::write(place.path("a.txt"), "before").unwrap();
    place.captures.turn_began(Seq(5));
    place.captures.settle(place.workspace()).await;
    place.captures.command_starts(|| {}).await;
    let marker = place
        .root
        .path()
        .join("home/session-state/s/rewind/workspace/commands-ran");
    while !marker.exists() {
        tokio::task::yield_now().await;
    }
    std::fs::write(place.path("a.txt"), "after").unwrap();
    std::fs::write(place.path("new.txt"), "new").unwrap();
    place.reopen(BOUNDS);
    place.captures.settle(place.workspace()).await;
    let files: Vec<PathBuf> = place
        .captures
        .preview(Seq(5))
        .unwrap()
        .files
        .into_iter()
        .map(|it| it.path)
        .collect();
    assert_eq!(files, [place.path("a.txt"), place.path("new.txt")]);
}

#[tokio::test]
async fn a_change_right_after_the_copy_is_found_although_the_clock_is_coarse() {
    let place = Place::new(BOUNDS);
    for round in 0..20_u64 {
        let path = place.path("a.txt");
        std::fs::write(&path, format!("{round:04}")).unwrap();
        place.captures.turn_began(Seq(round + 1));
        place.captures.touched();
        place.captures.settle(place.workspace()).await;
        place.captures.turn_began(Seq(1_000 + round));
        place.captures.touched();
        // The same size and the same inode.
        std::fs::write(&path, format!("{:04}", round + 100)).unwrap();
        place.captures.settle(place.workspace()).await;
        let turns = place.captures.turns().unwrap().turns;
        assert!(turns.contains_key(&Seq(1_000 + round)), "round {round}");
    }
}

#[tokio::test]
async fn a_workspace_that_is_too_large_is_told_and_new_files_in_it_are_left_alone() {
    let place = Place::new(Bounds {
        entries: 3,
        ..BOUNDS
    });
    for name in ["a", "b", "c", "d", "e"] {
        std::fs::write(place.path(name), name).unwrap();
    }
    place.captures.turn_began(Seq(5));
    place.captures.settle(place.workspace()).await;
    place.captures.touched();
    std::fs::write(place.path("new"), "new").unwrap();
    place.captures.settle(place.workspace()).await;
    assert_eq!(place.captures.preview(Seq(5)).unwrap().files, []);
    assert_eq!(*place.told.lock(), [NOT_WHOLE]);
}

#[tokio::test]
async fn the_home_of_a_user_is_not_copied() {
    let place = Place::new(BOUNDS);
    let workspace = Workspace {
        user_home: Some(place.path("")),
        ..place.workspace()
    };
    place.captures.settle(workspace).await;
    assert_eq!(*place.told.lock(), [NOT_COPIED]);
    // What a command does there is not known, which is said of the folder.
    place.captures.turn_began(Seq(5));
    place.captures.touched();
    let workspace = Workspace {
        user_home: Some(place.path("")),
        ..place.workspace()
    };
    place.captures.settle(workspace).await;
    let why = SkipReason::NotCaptured(NotCaptured::NotCopied);
    assert_eq!(missed(&place, 5), [(place.path(""), why)]);
}

#[test]
fn the_worktree_of_a_sub_agent_stays_its_own() {
    let place = Place::new(BOUNDS);
    std::fs::create_dir(place.path("tree")).unwrap();
    let own = place.captures.without(place.path("tree"));
    let inside = place.path("tree/a");
    let outside = place.path("b");
    for path in [&inside, &outside] {
        let writing = own.writing(&"call".into(), [path.as_path()]);
        std::fs::write(path, "x").unwrap();
        writing.done();
    }
    let turns = place.captures.turns().unwrap().turns;
    let files: Vec<&PathBuf> = turns.values().flat_map(|turn| &turn.files).collect();
    assert_eq!(files, [&outside]);
}

#[tokio::test]
async fn who_wants_to_go_back_waits_for_a_comparison_that_is_under_way() {
    let place = Place::new(BOUNDS);
    let inner = place.captures.inner.clone().unwrap();
    place.captures.settle(place.workspace()).await;
    let comparing = inner.jobs.clone().acquire_owned().await.unwrap();
    let mut settling = Box::pin(place.captures.settle(place.workspace()));
    assert!(futures::poll!(&mut settling).is_pending());
    drop(comparing);
    settling.await;
}

/// Waits until the clock that stamps files has moved on.
fn tick(place: &Place) {
    let probe = place.root.path().join("probe");
    let stamp = || {
        std::fs::write(&probe, "x").unwrap();
        probe.metadata().unwrap().modified().unwrap()
    };
    let now = stamp();
    while stamp() == now {
        std::thread::yield_now();
    }
}

fn missed(place: &Place, turn: u64) -> Vec<(PathBuf, SkipReason)> {
    let preview = place.captures.preview(Seq(turn)).unwrap();
    let skipped = preview.skipped.into_iter();
    skipped.map(|it| (it.path, it.reason)).collect()
}

fn restored(place: &Place, turn: u64) -> Vec<PathBuf> {
    let preview = place.captures.preview(Seq(turn)).unwrap();
    preview.files.into_iter().map(|it| it.path).collect()
}

#[tokio::test(start_paused = true)]
async fn a_command_waits_for_the_copy_for_a_moment_only_and_ends_the_copying() {
    let place = Place::new(BOUNDS);
    let inner = place.captures.inner.clone().unwrap();
    let _copying = inner.jobs.clone().acquire_owned().await.unwrap();
    let began = tokio::time::Instant::now();
    let mut told = false;
    place.captures.command_starts(|| told = true).await;
    assert!(told);
    assert_eq!(began.elapsed().as_millis(), COPY_WAIT.as_millis());
    assert!(inner.overrun.load(Ordering::Acquire));
}

#[tokio::test]
async fn what_a_command_changes_before_it_is_copied_is_named_and_the_rest_is_copied_later() {
    let place = Place::new(BOUNDS);
    let inner = place.captures.inner.clone().unwrap();
    for name in ["changed", "kept"] {
        std::fs::write(place.path(name), "before").unwrap();
    }
    tick(&place);
    let begun = AtomicBool::new(true);
    let extent = inner
        .baseline
        .build(&place.path(""), &Unread::default(), &begun)
        .unwrap();
    assert_eq!((extent.entries, extent.cut), (0, true));
    place.captures.turn_began(Seq(5));
    place.captures.touched();
    std::fs::write(place.path("changed"), "after").unwrap();
    std::fs::write(place.path("made"), "made").unwrap();
    place.captures.settle(place.workspace()).await;
    let why = SkipReason::NotCaptured(NotCaptured::NotCopied);
    let expected = ["changed", "made"].map(|name| (place.path(name), why));
    assert_eq!(missed(&place, 5), expected);
    assert_eq!(restored(&place, 5), Vec::<PathBuf>::new());

    place.captures.turn_began(Seq(9));
    place.captures.touched();
    for name in ["changed", "kept"] {
        std::fs::write(place.path(name), "of the second command").unwrap();
    }
    std::fs::write(place.path("new"), "new").unwrap();
    place.captures.settle(place.workspace()).await;
    let expected = ["changed", "kept", "new"].map(|name| place.path(name));
    assert_eq!(restored(&place, 9), expected);
}

#[tokio::test]
async fn an_ignored_file_that_is_new_is_never_taken_for_the_work_of_a_command() {
    for round in 0..20 {
        let place = Place::new(BOUNDS);
        std::fs::create_dir(place.path("build")).unwrap();
        std::fs::write(place.path(".gitignore"), "build/\n").unwrap();
        std::fs::write(place.path("build/mine"), "mine").unwrap();
        place.captures.turn_began(Seq(5));
        place.captures.settle(place.workspace()).await;
        place.captures.touched();
        std::fs::remove_file(place.path(".gitignore")).unwrap();
        place.captures.settle(place.workspace()).await;
        let files = restored(&place, 5);
        assert_eq!(files, [place.path(".gitignore")], "round {round}");
    }
}

#[tokio::test]
async fn an_ignored_file_that_a_command_replaces_is_not_taken_for_a_new_one() {
    let place = Place::new(BOUNDS);
    std::fs::write(place.path(".gitignore"), "*.env\n").unwrap();
    std::fs::write(place.path("my.env"), "KEY=mine").unwrap();
    place.captures.turn_began(Seq(5));
    place.captures.settle(place.workspace()).await;
    place.captures.touched();
    std::fs::remove_file(place.path(".gitignore")).unwrap();
    std::fs::write(place.path("draft"), "KEY=theirs").unwrap();
    std::fs::rename(place.path("draft"), place.path("my.env")).unwrap();
    std::fs::write(place.path("new"), "new").unwrap();
    place.captures.settle(place.workspace()).await;
    let expected = [".gitignore", "new"].map(|name| place.path(name));
    assert_eq!(restored(&place, 5), expected);
    let why = SkipReason::NotCaptured(NotCaptured::Moved);
    assert_eq!(missed(&place, 5), [(place.path("my.env"), why)]);
}

#[test]
fn a_step_that_fails_takes_back_what_an_earlier_daemon_did() {
    let mut place = Place::new(BOUNDS);
    std::fs::write(place.path("a"), "one").unwrap();
    std::fs::write(place.path("b"), "first").unwrap();
    place.writes(5, "a", "two");
    place.writes(5, "b", "second");
    place.writes(5, "new", "made");
    let id = RewindId::from("r");
    place.captures.prepare_rewind(&id, Seq(5)).unwrap();
    // An earlier daemon came this far.
    std::fs::write(place.path("a"), "one").unwrap();
    std::fs::remove_file(place.path("new")).unwrap();
    let folder = place.root.path().join("home/session-state/s/rewind");
    for entry in std::fs::read_dir(folder.join("objects")).unwrap() {
        let path = entry.unwrap().path();
        if std::fs::read(&path).unwrap() == b"first" {
            std::fs::write(&path, "damaged").unwrap();
        }
    }
    place.reopen(BOUNDS);
    let failure = place.captures.carry_out_rewind(&id, Seq(9)).unwrap_err();
    assert!(failure.rolled_back, "{failure}");
    let texts = ["a", "b", "new"].map(|name| place.text(name).unwrap());
    assert_eq!(texts, ["two", "second", "made"]);
}

#[test]
fn what_a_killed_daemon_was_writing_does_not_stay() {
    let mut place = Place::new(BOUNDS);
    std::fs::write(place.path("a"), "one").unwrap();
    place.writes(5, "a", "two");
    let id = RewindId::from("r");
    place.captures.prepare_rewind(&id, Seq(5)).unwrap();
    std::fs::write(place.path(&restore::draft_name(&id)), "half").unwrap();
    place.reopen(BOUNDS);
    place.captures.carry_out_rewind(&id, Seq(9)).unwrap();
    let names: Vec<_> = std::fs::read_dir(place.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a"]);
    assert_eq!(place.text("a").as_deref(), Some("one"));
}

#[test]
fn a_rewind_that_cannot_be_recorded_says_that_it_cannot_be_undone() {
    let mut place = Place::new(BOUNDS);
    place.writes(5, "a", "two");
    let id = RewindId::from("r");
    place.captures.prepare_rewind(&id, Seq(5)).unwrap();
    place.reopen(BOUNDS);
    let journal = place
        .root
        .path()
        .join("home/session-state/s/rewind/changes.jsonl");
    std::fs::remove_file(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    let report = place.captures.carry_out_rewind(&id, Seq(9)).unwrap();
    assert_eq!(report.restored, [place.path("a")]);
    let told = place.told.lock();
    assert!(told[0].contains("could not be recorded"), "{told:?}");
}

#[tokio::test]
async fn in_a_workspace_that_is_not_whole_what_a_command_changed_is_named() {
    let place = Place::new(Bounds {
        entries: 3,
        ..BOUNDS
    });
    for name in ["a", "b", "c"] {
        std::fs::write(place.path(name), name).unwrap();
    }
    place.captures.turn_began(Seq(5));
    place.captures.settle(place.workspace()).await;
    place.captures.touched();
    for name in ["new-1", "new-2"] {
        std::fs::write(place.path(name), "new").unwrap();
    }
    place.captures.settle(place.workspace()).await;
    // Up to here the copy was whole: what came is new, as far as it was looked at.
    let made = restored(&place, 5).len();
    assert!((1..=2).contains(&made), "{made}");
    place.captures.turn_began(Seq(9));
    place.captures.touched();
    std::fs::remove_file(place.path("a")).unwrap();
    std::fs::remove_file(place.path("b")).unwrap();
    std::fs::write(place.path("later"), "later").unwrap();
    place.captures.settle(place.workspace()).await;
    assert!(!restored(&place, 9).contains(&place.path("later")));
    let why = SkipReason::NotCaptured(NotCaptured::NotCopied);
    let named = missed(&place, 9);
    assert!(named.contains(&(place.path("later"), why)), "{named:?}");
}

#[tokio::test]
async fn what_a_command_changes_while_the_workspace_is_compared_is_not_taken_for_outside_changes() {
    let place = Place::new(BOUNDS);
    let inner = place.captures.inner.clone().unwrap();
    std::fs::write(place.path("a"), "before").unwrap();
    place.captures.turn_began(Seq(5));
    place.captures.settle(place.workspace()).await;
    tick(&place);
    // A command has begun, and the comparison finds what it did so far.
    std::fs::write(place.path("a"), "after").unwrap();
    let begun = AtomicBool::new(true);
    let found = inner.baseline.compare(
        &inner.overlay,
        &inner.objects,
        &Unread::default(),
        false,
        &begun,
    );
    let found = found.unwrap().unwrap();
    let paths: Vec<PathBuf> = found.changes.into_iter().map(|it| it.path).collect();
    assert_eq!(paths, [place.path("a")]);
    // What it makes later is new.
    std::fs::write(place.path("made"), "made").unwrap();
    let found = inner.baseline.compare(
        &inner.overlay,
        &inner.objects,
        &Unread::default(),
        true,
        &begun,
    );
    let found = found.unwrap().unwrap();
    let paths: Vec<PathBuf> = found.changes.into_iter().map(|it| it.path).collect();
    assert_eq!((paths, found.missed), (vec![place.path("made")], vec![]));
    // Without a command it is what others did.
    std::fs::write(place.path("a"), "of a person").unwrap();
    let quiet = AtomicBool::new(false);
    let found = inner.baseline.compare(
        &inner.overlay,
        &inner.objects,
        &Unread::default(),
        false,
        &quiet,
    );
    assert!(found.unwrap().unwrap().changes.is_empty());
}
