//! An image or a document that a provider refuses is left out of the conversation, so that it does not
//! end the session: it would be in every request from then on.

use loopd_proto::event::Durable;
use loopd_proto::event::room::FilesRefused;
use loopd_proto::event::session::Warning;
use loopd_proto::id::Seq;

use crate::command::{Decision, Effect, ModelFailure};
use crate::history::{Entry, Stored};
use crate::state::{State, Turn};
use crate::texts;

/// The type of the warning that files are left out.
const WARNING: &str = "attachment_refused";

/// The statuses by which providers refuse what is in a request.
const REFUSED: [u16; 4] = [400, 413, 415, 422];

/// What providers write of images and documents, in lower case.
const WORDS: [&str; 7] = [
    "image",
    "picture",
    "vision",
    "multimodal",
    "media",
    "document",
    "pdf",
];

/// Leaves out what the provider refuses and calls the model again. Returns whether it does. Each time the
/// conversation has fewer files, so that this ends.
pub(super) fn leave_out(
    state: &State,
    turn: &Turn,
    failure: &ModelFailure,
    decision: &mut Decision,
) -> bool {
    let is_refusal = failure.status.is_some_and(|it| REFUSED.contains(&it));
    if !is_refusal || failure.kind != "query" {
        return false;
    }
    let at = refused(state, &failure.message);
    if at.is_empty() {
        return false;
    }
    decision
        .store(Durable::FilesRefused(FilesRefused { at }))
        .store(Durable::SessionWarning(Warning {
            warning_type: WARNING.to_owned(),
            message: texts::room::files_left_out(&failure.message),
            url: None,
        }))
        .run(Effect::CallModel(turn.key.clone()));
    true
}

/// Returns the positions of the files that are refused, most likely: those that no answer has followed
/// yet, even if the provider does not name them; all others only if it does.
fn refused(state: &State, message: &str) -> Vec<Seq> {
    let entries = state.history.stored();
    let is_answer = |stored: &Stored| matches!(stored.entry, Entry::Assistant(_));
    // Files that a tool found come after the answer that called it.
    let unread = entries.iter().rposition(is_answer).unwrap_or(0);
    let new = with_files(entries.get(unread..).unwrap_or_default());
    let message = message.to_lowercase();
    let are_named = WORDS.iter().any(|word| message.contains(word));
    if new.is_empty() && are_named {
        return with_files(entries);
    }
    new
}

fn with_files(entries: &[Stored]) -> Vec<Seq> {
    let entries = entries.iter().filter(|stored| stored.entry.has_file());
    let mut found: Vec<Seq> = entries.map(|stored| stored.seq).collect();
    found.dedup();
    found
}
