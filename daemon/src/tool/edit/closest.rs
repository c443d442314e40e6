//! Finds the text that an edit probably meant when its own text is not in the file, and says what
//! differs. Called by `edit` and `apply_patch`. Pure: returns advice and changes nothing.

/// How many characters of a line are quoted.
const QUOTED: usize = 160;

/// How much of a line is compared.
const COMPARED: usize = 400;

/// The minimum similarity, in percent, of a line that is shown.
const ALIKE: usize = 50;

/// Says in one or two sentences where the closest text is; empty if none is close.
///
/// `given` names where the missing text came from.
pub(in crate::tool) fn advice(text: &str, old: &str, given: &str) -> Option<String> {
    let file: Vec<&str> = text.lines().collect();
    let wanted: Vec<&str> = old.lines().collect();
    if let Some(start) = window(&file, &wanted, |line| line.trim_end().to_owned()) {
        return Some(differs(
            &file,
            &wanted,
            start,
            given,
            "only in spaces at line ends",
        ));
    }
    if let Some(start) = window(&file, &wanted, squeezed) {
        return Some(differs(
            &file,
            &wanted,
            start,
            given,
            "only in spaces or tabs",
        ));
    }
    if let Some(bare) = without_numbers(&wanted) {
        let bare: Vec<&str> = bare.iter().map(String::as_str).collect();
        if let Some(start) = window(&file, &bare, squeezed) {
            return Some(format!(
                "{given} contains the line numbers that view prints; without them it is on line {}.",
                start + 1
            ));
        }
    }
    if let Some(start) = window(&file, &wanted, |line| line.trim().to_lowercase()) {
        return Some(differs(
            &file,
            &wanted,
            start,
            given,
            "only in upper and lower case",
        ));
    }
    nearest(&file, &wanted, given)
}

/// Finds the first run of lines that is the same after a change to every line.
fn window(file: &[&str], wanted: &[&str], change: impl Fn(&str) -> String) -> Option<usize> {
    let wanted: Vec<String> = wanted.iter().map(|line| change(line)).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let file: Vec<String> = file.iter().map(|line| change(line)).collect();
    file.windows(wanted.len()).position(|lines| lines == wanted)
}

/// The words of a line with one space between them.
fn squeezed(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ")
}

/// The lines without the `12. ` before them, if every line has one.
fn without_numbers(lines: &[&str]) -> Option<Vec<String>> {
    lines
        .iter()
        .map(|line| {
            let rest = line
                .trim_start()
                .trim_start_matches(|c: char| c.is_ascii_digit());
            let is_numbered = rest.len() < line.trim_start().len();
            let rest = rest.strip_prefix('.')?;
            is_numbered.then(|| rest.strip_prefix(' ').unwrap_or(rest).to_owned())
        })
        .collect()
}

/// Names the first line that differs between the text and the file.
fn differs(file: &[&str], wanted: &[&str], start: usize, given: &str, how: &str) -> String {
    let pairs = file.iter().skip(start).zip(wanted).enumerate();
    let first = pairs
        .map(|(offset, (there, asked))| (start + offset + 1, *there, *asked))
        .find(|(_, there, asked)| there != asked);
    match first {
        Some((number, there, asked)) => format!(
            "The text on line {} differs from {given} {how}: line {number} is {} and {given} has {}.",
            start + 1,
            quoted(there),
            quoted(asked)
        ),
        None => format!(
            "The text on line {} is the same up to its line ends.",
            start + 1
        ),
    }
}

/// Finds the line that is most similar to the first line that is not blank.
fn nearest(file: &[&str], wanted: &[&str], given: &str) -> Option<String> {
    let (offset, first) = wanted
        .iter()
        .enumerate()
        .find(|(_, line)| line.trim().len() > 2)?;
    let (start, score) = file
        .iter()
        .enumerate()
        .map(|(index, line)| (index, likeness(line.trim(), first.trim())))
        // Of several equally similar lines, the first.
        .max_by_key(|(index, score)| (*score, std::cmp::Reverse(*index)))?;
    if score < ALIKE {
        return None;
    }
    let pairs = file
        .iter()
        .skip(start)
        .map(Some)
        .chain(std::iter::repeat(None))
        .zip(wanted.iter().skip(offset))
        .enumerate();
    let (number, there, asked) = pairs
        .map(|(step, (there, asked))| (start + step + 1, there, *asked))
        .find(|(_, there, asked)| there.is_none_or(|there| there != asked))?;
    Some(match there {
        Some(there) => format!(
            "The closest text begins on line {}; it differs on line {number}, which is {} where {given} has {}.",
            start + 1,
            quoted(there),
            quoted(asked)
        ),
        None => format!(
            "The closest text begins on line {}, but the file ends where {given} goes on with {}.",
            start + 1,
            quoted(asked)
        ),
    })
}

/// How much of two lines is the same from their ends, in percent of the longer one.
fn likeness(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(COMPARED).collect();
    let right: Vec<char> = right.chars().take(COMPARED).collect();
    let longer = left.len().max(right.len());
    if longer == 0 {
        return 0;
    }
    let same = |pair: &(&char, &char)| pair.0 == pair.1;
    let before = left.iter().zip(&right).take_while(same).count();
    let room = left.len().min(right.len()) - before;
    let after = left.iter().rev().zip(right.iter().rev());
    let after = after.take(room).take_while(same).count();
    (before + after) * 100 / longer
}

/// Returns a line with its invisible characters escaped, shortened if it is long.
fn quoted(line: &str) -> String {
    let start: String = line.chars().take(QUOTED).collect();
    let more = if start.len() < line.len() { "…" } else { "" };
    format!("{start:?}{more}")
}

#[cfg(test)]
mod tests;
