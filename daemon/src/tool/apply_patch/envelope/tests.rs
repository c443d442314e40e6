use super::super::patch;
use super::*;

fn parse_text(text: &str) -> Result<Vec<FilePatch>, String> {
    patch::parse(text).map_err(|error| error.to_string())
}

fn hunk(patch_line: usize, anchors: &[&str], lines: &[Line]) -> Hunk {
    Hunk {
        patch_line,
        anchors: anchors.iter().map(|anchor| (*anchor).to_owned()).collect(),
        lines: lines.to_vec(),
        ..Hunk::default()
    }
}

#[test]
fn all_sections_are_read() {
    let text = "*** Begin Patch\n*** Add File: new.txt\n+one\n+\n*** Delete File: old.txt\n\
        *** Update File: a.txt\n*** Move to: b.txt\n@@ fn main()\n keep\n-gone\n+here\n\
        @@\n-x\n*** End of File\n*** End Patch\n";
    let keep = |text: &str| Line::Keep(text.to_owned());
    let remove = |text: &str| Line::Remove(text.to_owned());
    let add = |text: &str| Line::Add(text.to_owned());
    let mut last = hunk(12, &[], &[remove("x")]);
    last.at_end = true;
    let expected = vec![
        FilePatch {
            path: "new.txt".to_owned(),
            action: Action::Add {
                contents: "one\n\n".to_owned(),
            },
        },
        FilePatch {
            path: "old.txt".to_owned(),
            action: Action::Delete,
        },
        FilePatch {
            path: "a.txt".to_owned(),
            action: Action::Update {
                move_to: Some("b.txt".to_owned()),
                hunks: vec![
                    hunk(
                        8,
                        &["fn main()"],
                        &[keep("keep"), remove("gone"), add("here")],
                    ),
                    last,
                ],
            },
        },
    ];
    assert_eq!(parse_text(text), Ok(expected));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let table = [
        ("", "changes no file"),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        ("hello", "neither a unified diff nor"),
        (
            "*** Begin Patch\n*** Delete File: a",
            "*** End Patch is missing",
        ),
        (
            "*** Begin Patch\nhello\n*** End Patch",
            "line 2: expected *** Add File",
        ),
        (
            "*** Begin Patch\n*** Delete File: \n*** End Patch",
            "line 2: the path is missing",
        ),
        (
            "*** Begin Patch\n*** Add File: a\nx\n*** End Patch",
            "line 3: every line of an added",
        ),
        (
            "*** Begin Patch\n*** Update File: a\nx\n*** End Patch",
            "line 3: a line of a hunk",
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** End Patch",
            "line 2: the update has no changes",
        ),
    ];
    for (text, expected) in table {
        let error = parse_text(text).err().unwrap_or_default();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}
