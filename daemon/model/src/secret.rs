//! Keys and tokens as a type that cannot be printed by accident, and their removal from text.
//!
//! `endpoint` holds them and writes them into headers; everything that quotes a provider's words
//! passes them through a [`Redactor`] first. Nothing here stores or fetches a secret.

use std::fmt;
use std::sync::Arc;

/// What stands in the place of a secret.
const MASK: &str = "***";
/// Shorter values would blank ordinary words.
const SHORTEST_SECRET: usize = 6;
/// How the tokens of well-known vendors begin.
const TOKEN_PREFIXES: [&str; 9] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "xai-",
    "AIza",
];
/// How long a word with such a beginning must be to count as a token.
const SHORTEST_TOKEN: usize = 12;

/// A value that must not appear in logs, events or errors: no Display, no Serialize, masked Debug.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// Gives the value away, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Replaces known secrets, and words that look like keys, in text from outside.
#[derive(Debug, Clone, Default)]
pub(super) struct Redactor {
    known: Vec<Secret>,
}

impl Redactor {
    /// Adds a value that must never be shown.
    pub(super) fn add(&mut self, secret: Secret) {
        if secret.expose().len() >= SHORTEST_SECRET && !self.known.contains(&secret) {
            self.known.push(secret);
            // A secret that contains another one must go first, or its rest would stay.
            self.known
                .sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        }
    }

    /// Returns the text with every secret masked.
    pub(super) fn clean(&self, text: &str) -> String {
        let mut cleaned = text.to_owned();
        for secret in &self.known {
            cleaned = cleaned.replace(secret.expose(), MASK);
        }
        mask_tokens(&cleaned)
    }
}

fn mask_tokens(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for piece in text.split_inclusive(|letter: char| !is_token_letter(letter)) {
        let word = piece.trim_end_matches(|letter: char| !is_token_letter(letter));
        if word.len() >= SHORTEST_TOKEN
            && TOKEN_PREFIXES.iter().any(|prefix| word.starts_with(prefix))
        {
            masked.push_str(MASK);
            masked.push_str(piece.get(word.len()..).unwrap_or_default());
        } else {
            masked.push_str(piece);
        }
    }
    masked
}

fn is_token_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')
}

/// The machine has no random numbers to give.
#[derive(Debug, thiserror::Error)]
#[error("the system gave no random numbers: {0}")]
pub struct NoRandomness(getrandom::Error);

/// 256 random bits, written in hexadecimal.
pub fn random_hex() -> Result<String, NoRandomness> {
    use std::fmt::Write as _;
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    let mut text = String::with_capacity(64);
    for byte in bytes {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
