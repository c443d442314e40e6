use super::*;

/// Everything that is said, in pieces of every size, with output joined.
fn said(bytes: &[u8], step: usize) -> Vec<String> {
    let mut markers = Markers::new("abc");
    let mut said: Vec<String> = Vec::new();
    for chunk in bytes.chunks(step) {
        markers.scan(chunk, |piece| match piece {
            Piece::Output(output) => {
                let output = String::from_utf8_lossy(output);
                match said.last_mut() {
                    Some(last) if last.starts_with('=') => last.push_str(&output),
                    _ => said.push(format!("={output}")),
                }
            }
            other => said.push(format!("{other:?}")),
        });
    }
    let held = markers.finish();
    if !held.is_empty() {
        said.push(format!("held {}", held.len()));
    }
    said
}

#[test]
fn markers_are_found_however_the_bytes_are_cut() {
    let bytes = b"noise\x1b_abc;B\x1b\\one\x1b_ab two\x1b_abc;D130\x1b\\late";
    for step in 1..=bytes.len() {
        assert_eq!(
            said(bytes, step),
            ["=noise", "Begin", "=one\x1b_ab two", "Done(130)", "=late"],
            "in steps of {step}"
        );
    }
}

#[test]
fn what_is_no_marker_is_output() {
    let bytes = b"\x1b_abd;D0\x1b\\ \x1b_abc;and so on without an end";
    for step in 1..=bytes.len() {
        let said = said(bytes, step);
        assert_eq!(said, ["=\x1b_abd;D0\x1b\\ and so on without an end"]);
    }
}

#[test]
fn the_farewell_of_bash_is_taken_out_and_nothing_else() {
    let table: [(&[u8], &[&str]); 3] = [
        (b"a\x1b_abc;X\x1b\\exit\r\nb", &["=ab"]),
        (b"a\x1b_abc;X\x1b\\exotic", &["=aexotic"]),
        (b"exit\r\n", &["=exit\r\n"]),
    ];
    for (bytes, expected) in table {
        for step in 1..=bytes.len() {
            assert_eq!(said(bytes, step), expected, "in steps of {step}");
        }
    }
}
