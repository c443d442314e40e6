//! Tables with one line per command, found by name. Nothing of them is kept in memory.

/// Returns the lines of a table: names, how to read them, and the listed words.
pub(super) fn lines(table: &'static str) -> impl Iterator<Item = Line> {
    table.lines().map(str::trim).filter_map(line)
}

/// Returns the lines whose first word is this name, or a form `a/b` that contains it.
pub(super) fn lines_about(table: &'static str, name: &str) -> impl Iterator<Item = Line> {
    table
        .lines()
        .filter(move |line| {
            let first = line.split([' ', ':']).next().unwrap_or_default();
            first.split('/').any(|own| own == name)
        })
        .filter_map(line)
}

fn line(text: &'static str) -> Option<Line> {
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    let (names, listed) = text
        .split_once(": ")
        .or_else(|| text.strip_suffix(':').map(|names| (names, "")))?;
    Some(Line {
        names,
        listed: listed.trim_start(),
    })
}

/// One line of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) names: &'static str,
    pub(super) listed: &'static str,
}

impl Line {
    pub(super) fn is_for(&self, name: &str) -> bool {
        self.names.split_ascii_whitespace().any(|own| own == name)
    }

    /// Returns the value of `key=value` among the names.
    pub(super) fn number(&self, key: &str) -> Option<usize> {
        let mut words = self.names.split_ascii_whitespace();
        words.find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    }
}

/// Finds a name in a list of words.
pub(super) fn contains(table: &'static str, name: &str) -> bool {
    table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(str::split_ascii_whitespace)
        .any(|own| own == name)
}
