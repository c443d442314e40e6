//! Commands that delete files before these are copied.

use super::*;

/// Folders of ten files each.
fn filled(place: &Place, folders: &[&str]) {
    for folder in folders {
        std::fs::create_dir_all(place.path(folder)).unwrap();
        for number in 0..10 {
            std::fs::write(place.path(&format!("{folder}/{number}")), "before").unwrap();
        }
    }
    tick(place);
}

fn lost(place: &Place, names: &[&str]) -> Vec<(PathBuf, SkipReason)> {
    let why = SkipReason::NotCaptured(NotCaptured::DeletedUncopied);
    names.iter().map(|name| (place.path(name), why)).collect()
}

/// The copy ends before its first entry, because a command begins.
fn command_begins_at_once(place: &Place) {
    let inner = place.captures.inner.clone().unwrap();
    let begun = AtomicBool::new(true);
    let extent = inner
        .baseline
        .build(&place.path(""), &Unread::default(), &begun)
        .unwrap();
    assert!(extent.cut);
    place.captures.turn_began(Seq(5));
    place.captures.touched();
}

#[tokio::test]
async fn folders_that_were_not_copied_are_named_if_a_command_deletes_in_them() {
    let place = Place::new(BOUNDS);
    filled(&place, &["gone", "in", "in/deep", "kept", "made"]);
    command_begins_at_once(&place);
    std::fs::remove_dir_all(place.path("gone")).unwrap();
    std::fs::remove_file(place.path("in/deep/3")).unwrap();
    std::fs::create_dir(place.path("new")).unwrap();
    place.captures.settle(place.workspace()).await;
    assert_eq!(missed(&place, 5), lost(&place, &["gone", "in/deep"]));

    // All is copied now, and what the next command deletes comes back.
    place.captures.turn_began(Seq(9));
    place.captures.touched();
    std::fs::remove_dir_all(place.path("in")).unwrap();
    place.captures.settle(place.workspace()).await;
    assert_eq!(missed(&place, 9), []);
    assert_eq!(restored(&place, 9).len(), 19);
}

#[tokio::test]
async fn a_folder_that_was_copied_in_part_is_named_and_what_was_copied_comes_back() {
    let place = Place::new(Bounds {
        entries: 6,
        ..BOUNDS
    });
    filled(&place, &["d"]);
    place.captures.turn_began(Seq(5));
    place.captures.settle(place.workspace()).await;
    place.captures.touched();
    std::fs::remove_dir_all(place.path("d")).unwrap();
    place.captures.settle(place.workspace()).await;
    assert_eq!(missed(&place, 5), lost(&place, &["d"]));
    let rewind = RewindId::from("r");
    place.captures.prepare_rewind(&rewind, Seq(5)).unwrap();
    let done = place.captures.carry_out_rewind(&rewind, Seq(7)).unwrap();
    assert_eq!(done.restored.len(), 5);
    assert_eq!(done.skipped.len(), 1);
    assert_eq!(std::fs::read_dir(place.path("d")).unwrap().count(), 5);
}

#[tokio::test]
async fn a_command_that_deletes_all_before_the_copying_comes_to_it_is_not_missed() {
    let place = Place::new(BOUNDS);
    // Nothing is left to copy when the command is noticed.
    command_begins_at_once(&place);
    std::fs::write(place.path("made"), "made").unwrap();
    place.captures.settle(place.workspace()).await;
    let why = SkipReason::NotCaptured(NotCaptured::NotCopied);
    assert_eq!(missed(&place, 5), [(place.path("made"), why)]);
}

#[tokio::test]
async fn many_places_are_not_all_named() {
    let place = Place::new(Bounds {
        entries: 10_000,
        ..BOUNDS
    });
    for number in 0..300 {
        std::fs::create_dir(place.path(&format!("d{number}"))).unwrap();
    }
    tick(&place);
    command_begins_at_once(&place);
    for number in 0..300 {
        std::fs::remove_dir(place.path(&format!("d{number}"))).unwrap();
    }
    place.captures.settle(place.workspace()).await;
    let named = missed(&place, 5);
    assert_eq!(named.len(), 201);
    assert!(named.contains(&lost(&place, &[""])[0]), "{named:?}");
}
