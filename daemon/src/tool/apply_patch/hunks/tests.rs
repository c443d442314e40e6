use std::path::Path;

use proptest::prelude::*;

use super::super::patch::{self, Action};
use super::*;
use crate::tool::diff::{self, Change};

fn apply_text(text: &str, hunks: &str) -> Result<String, String> {
    let patch = if hunks.starts_with("@@ -") {
        format!("--- a/f\n+++ b/f\n{hunks}")
    } else {
        format!("*** Begin Patch\n*** Update File: f\n{hunks}\n*** End Patch")
    };
    let files = patch::parse(&patch).map_err(|error| error.to_string())?;
    match files.first().map(|file| &file.action) {
        Some(Action::Update { hunks, .. }) => apply(text, hunks),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn hunks_change_what_they_say_and_nothing_else() {
    let table = [
        (
            "a\nb\nc\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
            "a\nB\nc\n",
        ),
        // Wrong numbers do not matter where the place is clear.
        (
            "a\nb\nc\n",
            "@@ -9,3 +9,3 @@\n a\n-b\n+B\n c\n",
            "a\nB\nc\n",
        ),
        // Right numbers choose between equal places, also after lines were added above.
        ("x\nx\nx\n", "@@ -2 +2 @@\n-x\n+y\n", "x\ny\nx\n"),
        (
            "a\nx\nx\n",
            "@@ -1 +1,3 @@\n a\n+1\n+2\n@@ -3 +5 @@\n-x\n+y\n",
            "a\n1\n2\nx\ny\n",
        ),
        ("a\nb\n", "@@ -1,0 +2 @@\n+new\n", "a\nnew\nb\n"),
        ("a\nb\n", "@@\n-a\n+1\n@@\n-b\n+2", "1\n2\n"),
        ("f\nx\ng\nx\n", "@@ g\n-x\n+y", "f\nx\ng\ny\n"),
        ("f\nx\ng\nx\n", "@@ g\n+y", "f\nx\ng\ny\nx\n"),
        ("x\nx\n", "@@\n-x\n+y\n*** End of File", "x\ny\n"),
        ("a\n", "+b", "a\nb\n"),
        ("a\r\nb\r\n", "@@\n a\n-b\n+c\n+d", "a\r\nc\r\nd\r\n"),
        ("a\nb", "@@\n-b\n+c", "a\nc"),
        (
            "a\nb",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n",
            "a\nb\n",
        ),
        (
            "a\nb\n",
            "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n",
            "a\nb",
        ),
        ("a\n", "@@\n-a", ""),
        ("", "+a", "a\n"),
    ];
    for (text, hunks, expected) in table {
        assert_eq!(
            apply_text(text, hunks),
            Ok(expected.to_owned()),
            "{text:?} {hunks:?}"
        );
    }
}

#[test]
fn a_hunk_that_does_not_fit_is_explained() {
    let table = [
        ("x\ny\nx\n", "@@\n-x\n+z", "fits in 2 places (lines 1, 3)"),
        (
            "a\n\tb\n",
            "@@\n-    b\n+c",
            "line 2 is \"\\tb\" and the hunk has \"    b\"",
        ),
        (
            "a\nb\n",
            "@@\n-b\n+c\n@@\n-a\n+d",
            "fits only on line 1, before the hunk",
        ),
        (
            "a\nb\n",
            "@@ zzz\n-b\n+c",
            "names the line \"zzz\", which is not there",
        ),
        (
            "a\nb\n",
            "@@\n-a\n+c\n*** End of File",
            "its lines are not the last ones",
        ),
        (
            "a\n",
            "@@ -7,0 +8 @@\n+b\n",
            "adds after line 7, but the file has 1 lines",
        ),
        (
            "a\n",
            "@@\n-q\n+r\n@@\n-a",
            "hunk 1 of 2 (line 3 of the patch) does not fit",
        ),
    ];
    for (text, hunks, expected) in table {
        let error = apply_text(text, hunks).err().unwrap_or_default();
        assert!(error.contains(expected), "{text:?} {hunks:?}: {error}");
    }
}

/// A text of few different lines, so that places repeat, with or without an end of line.
fn some_text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["", "a", "b", " c", "-d", "+e", "--- f", "@@ g"]);
    (prop::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, ends)| {
        let mut text = lines.join("\n");
        if ends && !text.is_empty() {
            text.push('\n');
        }
        text
    })
}

proptest! {
    #[test]
    fn the_diff_of_two_texts_turns_one_into_the_other(old in some_text(), new in some_text()) {
        let change = Change::Edit { old: &old, new: &new };
        let printed = diff::git_style(Path::new("f"), change);
        if old != new {
            let files = patch::parse(&printed).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let applied = match files.first().map(|file| &file.action) {
                Some(Action::Update { hunks, .. }) => apply(&old, hunks),
                other => Err(format!("{other:?}")),
            };
            prop_assert_eq!(applied, Ok(new), "{}", printed);
        }
    }
}
