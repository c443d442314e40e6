use super::*;

#[test]
fn the_columns_of_rows_and_heading_line_up() {
    let process = Process {
        id: "p".into(),
        pid: 4711,
        class: ProcessClass::Detached,
        session_id: None,
        command: "make\n\u{1b}[31mall".to_owned(),
        started_at: loopd_sdk::proto::time::Timestamp(0),
        state: ProcessState::LeftBehind,
        log_path: Some("/tmp/out.log".to_owned()),
    };
    let (heading, row) = (heading(), row(&process));
    for (title, value) in [
        ("CLASS", "detached"),
        ("STATE", "left behind"),
        ("COMMAND", "make "),
    ] {
        assert_eq!(heading.find(title), row.find(value), "{heading}{row}");
    }
    assert!(row.contains("    4711  detached"), "{row}");
    assert!(row.ends_with("(log: /tmp/out.log)"), "{row}");
    assert!(!row.contains('\u{1b}'), "{row}");
}
