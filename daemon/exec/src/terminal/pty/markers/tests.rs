use super::*;

/// The pieces found for chunks of `step` bytes, with adjacent output joined.
fn pieces(bytes: &[u8], step: usize) -> Vec<String> {
    let mut markers = MarkerScanner::new("abc");
    let mut pieces: Vec<String> = Vec::new();
    for chunk in bytes.chunks(step) {
        markers.scan(chunk, |piece| match piece {
            TerminalPiece::Output(output) => {
                let output = String::from_utf8_lossy(output);
                match pieces.last_mut() {
                    Some(last) if last.starts_with('=') => last.push_str(&output),
                    _ => pieces.push(format!("={output}")),
                }
            }
            other => pieces.push(format!("{other:?}")),
        });
    }
    let held = markers.finish();
    if !held.is_empty() {
        pieces.push(format!("held {}", held.len()));
    }
    pieces
}

#[test]
fn markers_are_found_however_the_bytes_are_cut() {
    let bytes = b"noise\x1b_abc;B\x1b\\one\x1b_ab two\x1b_abc;D\x1b\\late";
    for step in 1..=bytes.len() {
        assert_eq!(
            pieces(bytes, step),
            ["=noise", "Begin", "=one\x1b_ab two", "Done", "=late"],
            "in steps of {step}"
        );
    }
}

#[test]
fn incomplete_or_unknown_markers_are_output() {
    let bytes = b"\x1b_abd;D0\x1b\\ \x1b_abc;and so on without an end";
    for step in 1..=bytes.len() {
        let pieces = pieces(bytes, step);
        assert_eq!(pieces, ["=\x1b_abd;D0\x1b\\ and so on without an end"]);
    }
}

#[test]
fn only_the_exit_text_of_bash_is_removed() {
    let table: [(&[u8], &[&str]); 3] = [
        (b"a\x1b_abc;X\x1b\\exit\r\nb", &["=ab"]),
        (b"a\x1b_abc;X\x1b\\exotic", &["=aexotic"]),
        (b"exit\r\n", &["=exit\r\n"]),
    ];
    for (bytes, expected) in table {
        for step in 1..=bytes.len() {
            assert_eq!(pieces(bytes, step), expected, "in steps of {step}");
        }
    }
}
