//! Counts the lines that a change added and removed.

use std::collections::HashMap;

use similar::{Algorithm, ChangeTag, TextDiff};

use crate::tool::disk;

/// Up to this size of both texts the lines are compared in order.
const COMPARED: usize = 64 * 1024;

/// Returns how many lines were added and removed; 0 for what is not text.
pub(super) fn changed_lines(before: Option<&[u8]>, after: Option<&[u8]>) -> (u64, u64) {
    let text = |bytes: Option<&'_ [u8]>| -> Option<String> {
        let bytes = bytes.unwrap_or_default();
        if disk::is_binary(bytes) {
            return None;
        }
        String::from_utf8(bytes.to_vec()).ok()
    };
    let (Some(before), Some(after)) = (text(before), text(after)) else {
        return (0, 0);
    };
    if before.len() + after.len() > COMPARED {
        return roughly(&before, &after);
    }
    let (mut added, mut removed) = (0, 0);
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .diff_lines(&before, &after);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    (added, removed)
}

/// Counts the lines that only one of two long texts has, in whatever order they are.
fn roughly(before: &str, after: &str) -> (u64, u64) {
    let mut lines: HashMap<&str, i64> = HashMap::new();
    for line in before.lines() {
        *lines.entry(line).or_default() -= 1;
    }
    for line in after.lines() {
        *lines.entry(line).or_default() += 1;
    }
    let added = lines.values().filter(|count| **count > 0).sum::<i64>();
    let removed = lines.values().filter(|count| **count < 0).sum::<i64>();
    (added.unsigned_abs(), removed.unsigned_abs())
}
