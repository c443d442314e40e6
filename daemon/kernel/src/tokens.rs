//! Counts the tokens of a text, so that a conversation can be kept within the window of its model.
//!
//! Every vendor divides text in its own way, and most do not say how. This is byte pair encoding
//! with the first 65,535 tokens of the vocabulary `o200k`, which OpenAI published with `tiktoken` under
//! the MIT licence. The whole vocabulary would take several times the space and count a few per cent
//! less. What remains of the difference to the model in use is measured: providers report the tokens
//! of every request, and `context_size` compares them with what is counted here.
//!
//! The vocabulary and the table for it are read-only data of the program. Nothing is loaded or made
//! at run time.

mod pieces;
mod slot;

use pieces::pieces;
use slot::{SLOTS, slot};

/// The tokens in the order of their rank, each after a byte with its length.
static VOCABULARY: &[u8] = include_bytes!("tokens/vocabulary.bin");

/// The slots of the lookup table, four bytes each; see `build.rs`.
static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/token_slots.bin"));

/// The most bytes that are merged at once. A longer piece is cut, so that the time for a text grows
/// only with its length.
const LONGEST_MERGE: usize = 64;

/// How many bytes at each end of a very long text are counted.
const SAMPLE: usize = 64 * 1024;

/// A rank that no token has.
const NO_RANK: u32 = u32::MAX;

/// Counts the tokens of a text. Of a very long one the beginning and the end are counted, and the rest is
/// taken to be like them: a session must not stand still for it.
pub fn count(text: &str) -> u64 {
    if text.len() <= 2 * SAMPLE {
        return whole(text);
    }
    let is_cut = |at: &usize| text.is_char_boundary(*at);
    let (head, tail) = (
        (0..=SAMPLE).rev().find(is_cut).unwrap_or(0),
        (text.len() - SAMPLE..=text.len())
            .find(is_cut)
            .unwrap_or(text.len()),
    );
    let first = text.get(..head).unwrap_or_default();
    let last = text.get(tail..).unwrap_or_default();
    let seen = (first.len() + last.len()) as u64;
    let counted = whole(first) + whole(last);
    counted.saturating_mul(text.len() as u64) / seen.max(1)
}

fn whole(text: &str) -> u64 {
    pieces(text).map(|piece| of_piece(piece.as_bytes())).sum()
}

fn of_piece(piece: &[u8]) -> u64 {
    if piece.len() < 2 || rank(piece) != NO_RANK {
        return 1;
    }
    piece.chunks(LONGEST_MERGE).map(merged).sum()
}

/// Merges neighbours as long as a token consists of both, the lowest rank first. Returns how many
/// parts are left.
#[expect(
    clippy::indexing_slicing,
    reason = "positions are below the number of parts, and that is at most the length of the arrays"
)]
fn merged(bytes: &[u8]) -> u64 {
    // Where each part begins, and the rank of the token that it makes with the next part.
    let mut starts = [0_usize; LONGEST_MERGE + 1];
    let mut ranks = [NO_RANK; LONGEST_MERGE + 1];
    let mut parts = bytes.len();
    for (at, start) in starts.iter_mut().enumerate() {
        *start = at;
    }
    for (at, pair) in bytes.windows(2).enumerate() {
        ranks[at] = rank(pair);
    }
    loop {
        let pairs = parts.saturating_sub(1);
        let lowest = ranks[..pairs].iter().enumerate().min_by_key(|(_, it)| **it);
        let Some((at, _)) = lowest.filter(|(_, rank)| **rank != NO_RANK) else {
            return parts as u64;
        };
        starts.copy_within(at + 2..=parts, at + 1);
        ranks.copy_within(at + 1..parts, at);
        parts -= 1;
        let rank_at = |at: usize| {
            if at + 2 <= parts {
                rank(&bytes[starts[at]..starts[at + 2]])
            } else {
                NO_RANK
            }
        };
        ranks[at] = rank_at(at);
        if at > 0 {
            ranks[at - 1] = rank_at(at - 1);
        }
    }
}

/// Returns the rank of a token: its place in the vocabulary.
fn rank(bytes: &[u8]) -> u32 {
    let mut slot = slot(bytes);
    loop {
        let entry = TABLE.get(slot * 4..slot * 4 + 4);
        let entry = entry.and_then(|it| it.try_into().ok());
        // The table is never full, so that the search ends at a free slot.
        let Some(at) = entry.map_or(0, u32::from_le_bytes).checked_sub(1) else {
            return NO_RANK;
        };
        let known = VOCABULARY.get(at as usize..).and_then(<[u8]>::split_first);
        if known.is_some_and(|(length, rest)| {
            usize::from(*length) == bytes.len() && rest.starts_with(bytes)
        }) {
            return at;
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests;
