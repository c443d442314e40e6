//! Words that are written almost like others.

/// How many letters of the name of a member may be wrong.
const MOST_MISSPELT: usize = 2;
/// Shorter names are near to many words, so that only the same letters count.
const SHORTEST: usize = 8;

/// Returns whether a name is written like another one, up to dashes, case and a few wrong letters.
pub(super) fn is_nearly(written: &str, known: &str) -> bool {
    let (written, known) = (plain(written), plain(known));
    written == known || known.len() >= SHORTEST && difference(&written, &known) <= MOST_MISSPELT
}

/// Returns a name in lower case, without what separates its words.
pub(super) fn plain(name: &str) -> String {
    let letters = name
        .chars()
        .filter(|letter| !matches!(letter, '-' | '_' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

/// Counts how many letters have to be changed, added, left out or swapped with the next one.
pub fn difference(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    let mut above: Vec<usize> = Vec::new();
    let mut before = None;
    for (index, letter) in one.chars().enumerate() {
        let mut next = vec![index + 1];
        for (at, known) in other.iter().enumerate() {
            let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let same = usize::from(letter != *known);
            let mut best = (get(&row, at) + same)
                .min(get(&row, at + 1) + 1)
                .min(get(&next, at) + 1);
            let earlier = at.checked_sub(1).and_then(|at| other.get(at));
            if before == Some(*known) && earlier == Some(&letter) {
                best = best.min(get(&above, at - 1) + 1);
            }
            next.push(best);
        }
        above = std::mem::replace(&mut row, next);
        before = Some(letter);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn differences_are_counted_by_letters() {
        let cases = [
            ("help", "help", 0),
            ("halp", "help", 1),
            ("hepl", "help", 1),
            ("hel", "help", 1),
            ("helpp", "help", 1),
            ("", "help", 4),
            ("tasks", "todos", 3),
        ];
        for (one, other, expected) in cases {
            assert_eq!(difference(one, other), expected, "{one} {other}");
        }
    }
}
