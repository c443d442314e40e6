//! Carrying out what a model answers that was asked for notes.

use serde::Deserialize;

use super::notes::{self, Board, BoardScope};
use crate::redaction::Redaction;

/// The most notes that one answer adds.
const MOST_ADDED: usize = 20;

/// What the model answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Answer {
    add: Vec<Added>,
    prune: Vec<Pruned>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Added {
    scope: BoardScope,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pruned {
    scope: BoardScope,
    ids: Vec<u64>,
}

/// Carries out the answer, removals first. Returns what was done in words; what could not be done is
/// named there. An answer that cannot be read changes nothing.
pub(crate) fn consolidate(
    board: &Board,
    redaction: &Redaction,
    said: &str,
) -> Result<String, String> {
    let answer = read(said)?;
    let (mut added, mut removed, mut problems) = (0_usize, 0_usize, Vec::new());
    for pruned in &answer.prune {
        match board.prune(pruned.scope, &pruned.ids) {
            Ok(_) => removed += pruned.ids.len(),
            Err(error) => problems.push(error.to_string()),
        }
    }
    for note in answer.add.iter().take(MOST_ADDED) {
        let text = redaction.clean(&note.text);
        let fits = notes::fits(&text);
        let done = fits.and_then(|()| board.add(note.scope, &text).map_err(|it| it.to_string()));
        match done {
            Ok(_) => added += 1,
            Err(why) => problems.push(why),
        }
    }
    let more = answer.add.len().saturating_sub(MOST_ADDED);
    if more > 0 {
        problems.push(format!(
            "{more} notes beyond the {MOST_ADDED} that one session may add"
        ));
    }
    let mut text = format!(
        "Notes for later sessions were made of this one: {added} added, {removed} removed."
    );
    if !problems.is_empty() {
        text.push_str(" Not done: ");
        text.push_str(&problems.join(" "));
    }
    Ok(text)
}

/// Reads the JSON object in an answer, which may have words or a fence around it.
fn read(said: &str) -> Result<Answer, String> {
    let object = said
        .find('{')
        .zip(said.rfind('}'))
        .and_then(|(start, end)| said.get(start..=end));
    let object = object.ok_or("the answer of the model has no JSON object")?;
    serde_json::from_str(object)
        .map_err(|error| format!("the answer of the model cannot be read: {error}"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_carried_out_as_far_as_it_can_be() {
        let home = tempfile::tempdir().unwrap();
        let board = Board::new(home.path(), "/work".into());
        board.add(BoardScope::User, "old").unwrap();
        let said = "Here:\n```json\n{\"add\": [{\"scope\": \"project\", \"text\": \"builds with make\"}, \
                    {\"scope\": \"user\", \"text\": \" \"}], \"prune\": [{\"scope\": \"user\", \"ids\": [1]}, \
                    {\"scope\": \"user\", \"ids\": [9]}]}\n```";
        let done = consolidate(&board, &Redaction::default(), said).unwrap();
        assert!(done.contains("1 added, 1 removed"), "{done}");
        assert!(done.contains("[9]") && done.contains("is empty"), "{done}");
        let listed = board.list(None).unwrap();
        assert!(
            listed.contains("builds with make") && !listed.contains("old"),
            "{listed}"
        );
    }

    #[test]
    fn an_answer_that_cannot_be_read_changes_nothing() {
        let home = tempfile::tempdir().unwrap();
        let board = Board::new(home.path(), "/work".into());
        for said in [
            "nothing to note",
            "{\"add\": [{\"scope\": \"world\", \"text\": \"x\"}]}",
            "{\"more\": 1}",
        ] {
            assert!(
                consolidate(&board, &Redaction::default(), said).is_err(),
                "{said}"
            );
        }
        assert_eq!(board.shown().unwrap(), None);
        let nothing = consolidate(&board, &Redaction::default(), "{}").unwrap();
        assert!(nothing.contains("0 added, 0 removed"), "{nothing}");
    }
}
