use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::tool::disk::read_text;
use crate::tool::fixture::{Fixture, names};

fn seen(fixture: &Fixture, name: &str) -> Stamp {
    read_text(&fixture.path(name)).unwrap().stamp
}

fn create(fixture: &Fixture, name: &str) -> Step {
    Step::Create {
        real: fixture.path(name),
        contents: b"new".to_vec(),
        like: None,
    }
}

fn replace(fixture: &Fixture, name: &str) -> Step {
    Step::Replace {
        real: fixture.path(name),
        contents: b"new".to_vec(),
        seen: seen(fixture, name),
    }
}

fn remove(fixture: &Fixture, name: &str) -> Step {
    Step::Remove {
        real: fixture.path(name),
        seen: seen(fixture, name),
    }
}

#[test]
fn all_changes_are_made_and_nothing_is_left_behind() {
    let fixture = Fixture::new();
    fixture.write("a", "old");
    let path = fixture.write("b", "old");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
    let steps = vec![
        replace(&fixture, "a"),
        remove(&fixture, "b"),
        Step::Create {
            real: fixture.path("x/c"),
            contents: b"moved".to_vec(),
            like: Some(path.clone()),
        },
    ];
    carry_out(steps).unwrap();
    assert_eq!(
        (fixture.read("a"), fixture.read("x/c")),
        ("new".to_owned(), "moved".to_owned())
    );
    assert_eq!(names(&fixture.context.cwd), ["a", "x"]);
    assert_eq!(names(&fixture.path("x")), ["c"]);
    let mode = fixture.path("x/c").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
}

#[test]
fn a_step_that_fails_undoes_the_ones_before_it() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.write(name, "old");
    }
    // The last step fails only when its turn has come: the name is taken.
    let steps = vec![
        replace(&fixture, "a"),
        remove(&fixture, "b"),
        create(&fixture, "d"),
        create(&fixture, "c"),
    ];
    let not_done = carry_out(steps).unwrap_err();
    assert_eq!(not_done.step, 3);
    assert!(matches!(not_done.error, DiskError::Exists));
    assert!(not_done.not_undone.is_empty());
    for name in ["a", "b", "c"] {
        assert_eq!(fixture.read(name), "old");
    }
    assert_eq!(names(&fixture.context.cwd), ["a", "b", "c"]);
}

#[test]
fn nothing_begins_where_a_file_changed_or_is_a_link_now() {
    let fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.write(name, "old");
    }
    let steps = vec![
        create(&fixture, "d"),
        replace(&fixture, "a"),
        remove(&fixture, "b"),
    ];
    fixture.write("b", "older");
    assert!(matches!(
        carry_out(steps).unwrap_err().error,
        DiskError::Changed
    ));
    let steps = vec![create(&fixture, "d"), remove(&fixture, "c")];
    std::fs::remove_file(fixture.path("c")).unwrap();
    symlink(fixture.path("a"), fixture.path("c")).unwrap();
    assert!(matches!(
        carry_out(steps).unwrap_err().error,
        DiskError::Changed
    ));
    assert_eq!(fixture.read("a"), "old");
    assert_eq!(names(&fixture.context.cwd), ["a", "b", "c"]);
}

#[test]
fn a_protected_file_stops_the_batch_before_it_begins() {
    let fixture = Fixture::new();
    fixture.write("a", "old");
    let path = fixture.write("b", "old");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    let not_done = carry_out(vec![replace(&fixture, "a"), replace(&fixture, "b")]).unwrap_err();
    assert!(matches!(not_done.error, DiskError::WriteProtected));
    assert_eq!(fixture.read("a"), "old");
    assert_eq!(names(&fixture.context.cwd), ["a", "b"]);
}
