//! Words that are written almost like others.

/// How many letters of the name of a member may be wrong.
const MOST_MISSPELT: usize = 2;
/// Shorter names are near to many words, so that only the same letters count.
const SHORTEST: usize = 8;

/// Shorter names are parts of many words.
const SHORTEST_PART: usize = 5;

/// Returns whether a name is written like another one, up to dashes, case and a few wrong letters.
pub fn is_nearly(written: &str, known: &str) -> bool {
    let (written, known) = (plain(written), plain(known));
    written == known || known.len() >= SHORTEST && difference(&written, &known) <= MOST_MISSPELT
}

/// Returns a name in lower case, without what separates its words.
pub fn plain(name: &str) -> String {
    let letters = name
        .chars()
        .filter(|letter| !matches!(letter, '-' | '_' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

/// Returns the known name that a name is a mistake for: the same letters, or one or two wrong ones.
pub fn meant<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain_written = plain(written);
    let rank = |name: &str| {
        let wrong = difference(&plain_written, &plain(name));
        let most = if name.len() < SHORTEST {
            1
        } else {
            MOST_MISSPELT
        };
        (wrong <= most).then_some(wrong)
    };
    let ranked = known
        .into_iter()
        .filter_map(|name| Some((rank(name)?, name)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, name)| name)
}

/// Returns the known name that a name was probably meant to be, if there is one: it is written almost like
/// it, or one of them has the other in it.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain_written = plain(written);
    let rank = |name: &str| {
        let name = plain(name);
        if name == plain_written {
            return Some((0, 0));
        }
        let longest = name.chars().count().max(plain_written.chars().count());
        let wrong = difference(&plain_written, &name);
        if wrong <= (longest / 4).max(1) {
            return Some((1, wrong));
        }
        let shorter = name.len().min(plain_written.len());
        let has = plain_written.contains(&name) || name.contains(&plain_written);
        (has && shorter >= SHORTEST_PART).then_some((2, wrong))
    };
    let ranked = known
        .into_iter()
        .filter_map(|name| Some((rank(name)?, name)));
    ranked.min_by_key(|(rank, _)| *rank).map(|(_, name)| name)
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
    use super::{difference, meant, nearest};

    #[test]
    fn a_name_that_is_written_almost_like_another_is_a_mistake() {
        let known = [
            "excludedTools",
            "hasSkillProvider",
            "tools",
            "model",
            "baseUrl",
        ];
        let cases = [
            ("excludedTool", Some("excludedTools")),
            ("excluded_tools", Some("excludedTools")),
            ("tool", Some("tools")),
            ("modle", Some("model")),
            ("baseURI", Some("baseUrl")),
            ("hasToolProvider", None),
            ("modelPolicy", None),
            ("excludedSkills", None),
        ];
        for (written, mistake) in cases {
            assert_eq!(meant(written, known), mistake, "{written}");
        }
    }

    #[test]
    fn the_nearest_name_is_one_that_may_have_been_meant() {
        let known = [
            "excludedTools",
            "availableTools",
            "model",
            "decision",
            "reason",
        ];
        let cases = [
            ("excludedTool", Some("excludedTools")),
            ("excluded_tools", Some("excludedTools")),
            ("ExcludedTools", Some("excludedTools")),
            ("exludedTools", Some("excludedTools")),
            ("permissionDecision", Some("decision")),
            ("modle", Some("model")),
            ("tools", Some("excludedTools")),
            ("colour", None),
            ("x", None),
        ];
        for (written, meant) in cases {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
    }

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
