use tempfile::TempDir;

use super::*;

fn entry(id: &str) -> LedgerEntry {
    LedgerEntry {
        id: ProcessId::from(id),
        class: Class::Session,
        session: Some(SessionId::from("s")),
        label: "make \0 it".to_owned(),
        started: Timestamp(5),
        log: None,
        boot: "boot".to_owned(),
        command: Some(ProcessIdentity { pid: 7, start: 8 }),
        keeper: None,
    }
}

#[test]
fn unreadable_files_are_moved_aside() {
    let home = TempDir::new().unwrap();
    let ledger = Ledger::of(home.path());
    assert_eq!(ledger.read(), []);
    ledger.prepare().unwrap();
    let good = entry("good");
    write(&ledger.path(&good.id), &good).unwrap();
    write(&ledger.path(&ProcessId::from("else")), &entry("other")).unwrap();
    let half = home.path().join("processes/half.json");
    fs::write(&half, "{\"id\":\"ha").unwrap();
    fs::write(home.path().join("processes/note.txt"), "x").unwrap();
    assert_eq!(ledger.read(), std::slice::from_ref(&good));
    assert!(!half.exists());
    assert!(home.path().join("processes/unreadable/half.json").exists());
    assert!(home.path().join("processes/unreadable/else.json").exists());
    ledger.remove(&good.id);
    ledger.remove(&good.id);
    assert_eq!(ledger.read(), []);
}

#[test]
fn an_exit_is_read_as_it_was_written() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("out.log");
    assert_eq!(read_exit(&log), None);
    for exit in [Exit::Code(0), Exit::Code(3), Exit::Signal(9), Exit::Unknown] {
        write_beside(&exit_file(&log), &exit_text(exit)).unwrap();
        assert_eq!(read_exit(&log), Some(exit));
    }
}
