//! Colours the lines of a diff.

use loopd_sdk::proto::visible::for_person;

use super::styled::{Colour, Line, Look};

/// Returns whether a text is a diff.
pub(super) fn is_diff(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("@@ ")) || text.starts_with("diff --git ")
}

/// Colours one line.
pub(super) fn line(text: &str) -> Line {
    let look = if text.starts_with("+++") || text.starts_with("---") || text.starts_with("diff ") {
        Look::BOLD
    } else if text.starts_with("@@") {
        Look::of(Colour::Cyan)
    } else if text.starts_with('+') {
        Look::of(Colour::Green)
    } else if text.starts_with('-') {
        Look::of(Colour::Red)
    } else {
        Look::PLAIN
    };
    Line::of(look, text).verbatim()
}

/// Colours a whole diff.
pub(super) fn lines(diff: &str) -> Vec<Line> {
    let diff = for_person(diff);
    diff.trim_end()
        .lines()
        .map(|text| line(text).indented("  ", "  "))
        .collect()
}
