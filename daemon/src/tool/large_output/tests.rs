use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::tool::fixture::names;

#[tokio::test]
async fn a_short_text_stays() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    let text = "x".repeat(51_200);
    let limits = OutputLimits::default();
    assert_eq!(bound(text.clone(), &scratch, limits).await, text);
    assert!(!scratch.exists());
}

#[tokio::test]
async fn a_long_text_is_saved_and_announced() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("a/scratch");
    let text = "x".repeat(100_000);
    let limits = OutputLimits::default();
    let notice = bound(text.clone(), &scratch, limits).await;
    let saved = names(&scratch);
    let [name] = saved.as_slice() else {
        unreachable!("one file is saved: {saved:?}");
    };
    let path = scratch.join(name);
    let expected = format!(
        "Output too large to read at once (97.7 KB). Saved to: {}\n\
         Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for specific sections), or jq (for JSON) to examine portions of the output.\n\
         \n\
         Preview (first 500 chars):\n\
         {}",
        path.display(),
        "x".repeat(500)
    );
    assert_eq!(notice, expected);
    assert_eq!(
        saved_notice(100_000, &path.display().to_string(), &text, limits),
        expected
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&scratch), 0o700);
}

#[test]
fn names_have_a_time_a_stem_and_a_random_end() {
    let name = file_name();
    let (time, rest) = name.split_once("-copilot-tool-output-").unwrap();
    assert!(
        time.chars().all(|character| character.is_ascii_digit()),
        "{name}"
    );
    let random = rest.strip_suffix(".txt").unwrap();
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    assert!(!random.is_empty() && random.chars().all(is_plain), "{name}");
    assert_ne!(file_name(), name);
}

#[tokio::test]
async fn a_text_that_cannot_be_saved_is_still_cut() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("file");
    std::fs::write(&scratch, "").unwrap();
    let limits = OutputLimits {
        max_bytes: 10,
        preview_chars: 3,
    };
    let notice = bound("äöüß".repeat(5), &scratch, limits).await;
    assert!(notice.starts_with("Output too large to read at once (40 B), and saving it failed: "));
    assert!(
        notice.ends_with("Preview (first 3 chars):\näöü"),
        "{notice}"
    );
}

#[test]
fn previews_are_cut_at_characters() {
    assert_eq!(first_chars("äöü", 2), "äö");
    assert_eq!(first_chars("äöü", 9), "äöü");
}
