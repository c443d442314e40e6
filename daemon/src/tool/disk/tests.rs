use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

#[cfg(target_os = "linux")]
mod swap;
use crate::tool::fixture::{Fixture, names};

#[test]
fn a_link_that_took_the_place_of_a_file_or_folder_is_not_followed() {
    let fixture = Fixture::new();
    let target = fixture.write("target/a.txt", "secret");
    symlink(&target, fixture.path("link.txt")).unwrap();
    symlink(fixture.path("target"), fixture.path("folder")).unwrap();
    for path in ["link.txt", "folder/a.txt"] {
        let opened = open(&fixture.path(path));
        assert!(matches!(opened, Err(DiskError::Changed)), "{path}");
        let created = create(&fixture.path("folder/new.txt"), b"x");
        assert!(matches!(created, Err(DiskError::Changed)), "{path}");
    }
    let stamp = read_text(&target).unwrap().stamp;
    let replaced = replace(&fixture.path("link.txt"), b"x", &stamp);
    assert!(matches!(replaced, Err(DiskError::Changed)));
    assert_eq!(fixture.read("target/a.txt"), "secret");
    assert_eq!(names(&fixture.path("target")), ["a.txt"]);
}

#[test]
fn a_named_pipe_is_refused_without_waiting() {
    let fixture = Fixture::new();
    let pipe = fixture.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert!(matches!(open(&pipe), Err(DiskError::Special)));
}

#[test]
fn a_file_that_changed_in_between_is_left_alone() {
    let fixture = Fixture::new();
    let path = fixture.write("a.txt", "one");
    let stamp = read_text(&path).unwrap().stamp;
    std::fs::write(&path, "two").unwrap();
    assert!(matches!(
        replace(&path, b"three", &stamp),
        Err(DiskError::Changed)
    ));
    assert_eq!(fixture.read("a.txt"), "two");
    assert_eq!(names(&fixture.context.cwd), ["a.txt"]);
}

#[test]
fn replacing_keeps_the_mode_and_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let path = fixture.write("run.sh", "one");
    for mode in [0o755, 0o600, 0o4711] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let stamp = read_text(&path).unwrap().stamp;
        replace(&path, format!("{mode}").as_bytes(), &stamp).unwrap();
        let metadata = path.metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o7777, mode);
        assert_eq!(fixture.read("run.sh"), format!("{mode}"));
    }
    assert_eq!(names(&fixture.context.cwd), ["run.sh"]);
}

#[test]
fn a_write_protected_file_stays_as_it_is() {
    let fixture = Fixture::new();
    let path = fixture.write("a.txt", "one");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    let stamp = read_text(&path).unwrap().stamp;
    assert!(matches!(
        replace(&path, b"two", &stamp),
        Err(DiskError::WriteProtected)
    ));
    assert_eq!(fixture.read("a.txt"), "one");
}

#[test]
fn creating_never_replaces() {
    let fixture = Fixture::new();
    let path = fixture.write("a.txt", "one");
    assert!(matches!(create(&path, b"two"), Err(DiskError::Exists)));
    assert_eq!(fixture.read("a.txt"), "one");
    create(&fixture.path("x/y/b.txt"), b"new").unwrap();
    assert_eq!(fixture.read("x/y/b.txt"), "new");
    assert_eq!(names(&fixture.path("x/y")), ["b.txt"]);
    assert_eq!(names(&fixture.context.cwd), ["a.txt", "x"]);
}

#[test]
fn only_text_of_bounded_size_is_read() {
    let fixture = Fixture::new();
    let binary = fixture.write("a.bin", b"\x7fELF\0\x01");
    assert!(matches!(read_text(&binary), Err(DiskError::Binary)));
    let latin = fixture.write("latin.txt", b"gr\xfc\xdfe");
    assert!(matches!(read_text(&latin), Err(DiskError::NotUtf8)));
    let large = fixture.path("large.txt");
    File::create(&large)
        .unwrap()
        .set_len(MAX_WHOLE_FILE + 1)
        .unwrap();
    assert!(matches!(read_text(&large), Err(DiskError::TooLarge { .. })));
    assert!(matches!(
        read_text(&fixture.context.cwd),
        Err(DiskError::Folder)
    ));
}

#[test]
fn a_path_is_opened_step_by_step_where_the_kernel_cannot_help() {
    let fixture = Fixture::new();
    let target = fixture.write("target/deep/a.txt", "secret");
    symlink(fixture.path("target"), fixture.path("folder")).unwrap();
    symlink(&target, fixture.path("link.txt")).unwrap();
    let flags = rustix::fs::OFlags::RDONLY;
    assert!(platform::open_step_by_step(&target, flags).is_ok());
    for path in ["link.txt", "folder/deep/a.txt"] {
        let opened = platform::open_step_by_step(&fixture.path(path), flags);
        assert!(
            matches!(opened, Err(DiskError::Changed)),
            "{path}: {opened:?}"
        );
    }
}
