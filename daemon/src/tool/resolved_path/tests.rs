use std::os::unix::fs::symlink;

use super::*;
use crate::tool::fixture::{Fixture, granted};

#[test]
fn a_plain_path_is_shown_as_it_was_asked_for() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "");
    for given in ["a.txt", "./a.txt", "x/../a.txt", &fixture.text("a.txt")] {
        let place = existing(&fixture.context, given).unwrap();
        assert_eq!(place.asked, fixture.path("a.txt"));
        assert_eq!(place.shown, fixture.path("a.txt"));
        assert_eq!(
            place.intention("Read file"),
            format!("Read file: {}", fixture.text("a.txt"))
        );
    }
}

#[test]
fn a_link_out_of_the_folder_is_shown_with_its_target() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().canonicalize().unwrap().join("secret");
    std::fs::write(&secret, "").unwrap();
    symlink(&secret, fixture.path("innocent.txt")).unwrap();
    let place = existing(&fixture.context, "innocent.txt").unwrap();
    assert_eq!(place.shown, secret);
    let expected = format!(
        "Read file: {} (a link to {})",
        fixture.text("innocent.txt"),
        secret.display()
    );
    assert_eq!(place.intention("Read file"), expected);
}

#[test]
fn a_link_above_the_working_directory_changes_nothing() {
    let mut fixture = Fixture::new();
    fixture.write("a.txt", "");
    let link = fixture.context.cwd.with_file_name("link");
    symlink(&fixture.context.cwd, &link).unwrap();
    fixture.context.assess.cwd.clone_from(&link);
    let place = existing(&fixture.context, "a.txt").unwrap();
    assert_eq!(place.shown, link.join("a.txt"));
    assert_eq!(place.asked, place.shown);
}

#[test]
fn a_new_file_below_a_linked_folder_is_where_the_link_leads() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().canonicalize().unwrap();
    symlink(&target, fixture.path("folder")).unwrap();
    let place = possible(&fixture.context, "folder/new/a.txt").unwrap();
    assert_eq!(place.real, target.join("new/a.txt"));
    assert_eq!(place.shown, target.join("new/a.txt"));
}

#[test]
fn a_missing_path_is_named_in_full() {
    let fixture = Fixture::new();
    let missing = existing(&fixture.context, "gone.txt").unwrap_err();
    assert_eq!(
        missing.text,
        format!(
            "Path {} does not exist. Please provide a valid path.",
            fixture.text("gone.txt")
        )
    );
}

#[test]
fn a_grant_for_another_path_does_not_count() {
    let fixture = Fixture::new();
    fixture.write("a", "");
    fixture.write("b", "");
    let a = existing(&fixture.context, "a").unwrap();
    let b = existing(&fixture.context, "b").unwrap();
    let Need::Permission(request) = a.read_need(&fixture.context, String::new()) else {
        unreachable!("a file of the project is asked about");
    };
    let grant = granted(request);
    assert!(a.check_read(&fixture.context, &grant).is_ok());
    assert!(b.check_read(&fixture.context, &grant).is_err());
    assert!(a.check_read(&fixture.context, &granted(None)).is_err());
    assert!(a.check_write(&fixture.context, &grant, "").is_err());
}

#[test]
fn what_the_session_put_aside_is_its_own() {
    let fixture = Fixture::new();
    std::fs::create_dir(&fixture.context.scratch).unwrap();
    let saved = fixture.context.scratch.join("output.txt");
    std::fs::write(&saved, "").unwrap();
    let place = existing(&fixture.context, &saved.display().to_string()).unwrap();
    let need = place.read_need(&fixture.context, String::new());
    assert_eq!(need, Need::Nothing);
    let nothing = granted(None);
    assert!(place.check_read(&fixture.context, &nothing).is_ok());
    // A link out of the folder is not.
    std::os::unix::fs::symlink("/etc/passwd", fixture.context.scratch.join("link")).unwrap();
    let link = fixture.context.scratch.join("link").display().to_string();
    let place = existing(&fixture.context, &link).unwrap();
    assert!(place.check_read(&fixture.context, &nothing).is_err());
}
