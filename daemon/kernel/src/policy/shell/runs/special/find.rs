//! `find` and its actions.

use super::super::{Arguments, Certainty, Runs};
use super::one_unknown;
use crate::policy::shell::reader::Input;
use crate::policy::shell::word::{Count, Word};

impl Runs {
    pub(super) fn find(&mut self, arguments: &[Word], certainty: Certainty, depth: usize) {
        // A word that may become several words may contain an action.
        self.anything |= arguments
            .iter()
            .any(|word| word.may_be_several() && word.prefix().is_empty());
        let starts_plainly = arguments
            .iter()
            .take_while(|word| !word.may_be_option())
            .all(|word| !word.prefix().is_empty());
        let mut rest = arguments;
        while let Some((first, others)) = rest.split_first() {
            rest = others;
            match first.text() {
                Some("-delete") => {
                    let mut removal = vec![Word::literal("rm"), Word::literal("-rf")];
                    removal.push(Word::anything());
                    self.push(&removal, Certainty::Possible, Arguments::Data);
                }
                Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                    let end = others
                        .iter()
                        .position(|word| matches!(word.text(), Some(";" | "+")))
                        .unwrap_or(others.len());
                    let command = others.get(..end).unwrap_or_default();
                    let found = |word: &Word| {
                        if word.texts().any(|text| text.contains("{}")) {
                            found_by_find(word, starts_plainly)
                        } else {
                            word.clone()
                        }
                    };
                    let command: Vec<Word> = command.iter().map(found).collect();
                    self.words(&command, &Input::Unknown, certainty, depth + 1);
                    rest = others.get(end..).unwrap_or_default();
                }
                Some(_) | None => {}
            }
        }
    }
}

/// Returns what `{}` stands for: a path below the directories that `find` starts from.
fn found_by_find(word: &Word, starts_plainly: bool) -> Word {
    if word.text() == Some("{}") && starts_plainly {
        let mut path = Word::literal("./");
        path.push_any(Count::One);
        path
    } else {
        one_unknown()
    }
}
