//! The names under which models see the tools of servers: `server-tool`, of letters, digits, `_` and
//! `-`, at most 64 of them. Two tools never have the same name, and a tool keeps its name as long as
//! the tools before it keep theirs.

use std::collections::HashSet;

use ring::digest::{SHA256, digest};

/// The longest name that all vendors take.
pub const LONGEST_NAME: usize = 64;
/// How many digits tell a shortened or altered name from others.
const DIGITS: usize = 6;

/// Gives names to tools, in order.
#[derive(Debug, Default)]
pub struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// Makes names that differ from these.
    pub fn beside<'a>(taken: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            taken: taken.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Returns the name of a tool.
    pub fn name(&mut self, server: &str, tool: &str) -> String {
        let plain = plain(server, tool);
        let mut name = if plain.len() <= LONGEST_NAME {
            plain.clone()
        } else {
            marked(&plain, server, tool, 0)
        };
        let mut tries = 0;
        while self.taken.contains(&name) {
            tries += 1;
            name = marked(&plain, server, tool, tries);
        }
        self.taken.insert(name.clone());
        name
    }
}

/// Returns the name of a tool if it is neither too long nor taken.
pub fn plain(server: &str, tool: &str) -> String {
    format!("{server}-{tool}").chars().map(allowed).collect()
}

fn allowed(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-') {
        letter
    } else {
        '_'
    }
}

/// Returns the beginning of a name with digits that depend on the whole names.
fn marked(plain: &str, server: &str, tool: &str, tries: u32) -> String {
    let whole = format!("{server}\n{tool}\n{tries}");
    let hash = digest(&SHA256, whole.as_bytes());
    let halves = hash.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = halves.filter_map(|half| char::from_digit(u32::from(half), 16));
    let digits: String = digits.take(DIGITS).collect();
    let kept: String = plain.chars().take(LONGEST_NAME - DIGITS - 1).collect();
    format!("{kept}_{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_server_and_tool() {
        let mut names = Names::default();
        assert_eq!(names.name("env-echo", "get_env"), "env-echo-get_env");
        assert_eq!(names.name("a.b/c", "read file"), "a_b_c-read_file");
        assert_eq!(names.name("büro", "öffne"), "b_ro-_ffne");
    }

    #[test]
    fn a_long_name_is_cut_and_stays_the_same() {
        let tool = "t".repeat(100);
        let first = Names::default().name("server", &tool);
        assert_eq!(first.len(), LONGEST_NAME);
        assert_eq!(first, Names::default().name("server", &tool));
        assert!(first.starts_with("server-ttt"));
        let other = Names::default().name("server", &format!("{tool}x"));
        assert_ne!(first, other);
    }

    #[test]
    fn names_that_collide_are_told_apart_the_same_way_each_time() {
        let named = || {
            let mut names = Names::beside(["a-b_d"]);
            ["a", "a-b", "a.b", "a"]
                .into_iter()
                .zip(["b-c", "c", "c", "b_d"])
                .map(|(server, tool)| names.name(server, tool))
                .collect::<Vec<_>>()
        };
        let all = named();
        assert_eq!(all, named());
        assert_eq!(all.first().map(String::as_str), Some("a-b-c"));
        assert_ne!(all.get(1).map(String::as_str), Some("a-b-c"));
        assert_eq!(all.get(2).map(String::as_str), Some("a_b-c"));
        assert_ne!(all.get(3).map(String::as_str), Some("a-b_d"));
        let different: HashSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|name| name.len() <= LONGEST_NAME));
    }
}
