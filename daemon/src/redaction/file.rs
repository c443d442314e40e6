//! Masks the large outputs of commands on their way to a file. `exec` writes the files while the
//! output arrives; `session` says which secrets there are.

use std::sync::Arc;

use loopd_exec::terminal::{OutputFilter, OutputFilters};
use parking_lot::Mutex;

use super::{Pieces, Redaction};

/// The secrets that the files of one session must not hold. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct FileMasks(Arc<Mutex<Redaction>>);

impl FileMasks {
    /// Sets the secrets for the outputs that begin from now on.
    pub fn set(&self, redaction: Redaction) {
        *self.0.lock() = redaction;
    }

    /// Returns the secrets of the moment.
    pub fn get(&self) -> Redaction {
        self.0.lock().clone()
    }
}

impl OutputFilters for FileMasks {
    fn begin(&self) -> Box<dyn OutputFilter> {
        Box::new(FileMask {
            masks: self.clone(),
            pieces: None,
            partial: Vec::new(),
        })
    }
}

/// Masks one output.
#[derive(Debug)]
struct FileMask {
    masks: FileMasks,
    /// Made when the first bytes are written, so that it knows the secrets of that moment.
    pieces: Option<Pieces>,
    /// The bytes of a character whose end has not come yet.
    partial: Vec<u8>,
}

impl FileMask {
    fn pieces(&mut self) -> &mut Pieces {
        let masks = &self.masks;
        self.pieces
            .get_or_insert_with(|| Pieces::new(masks.0.lock().clone()))
    }
}

impl OutputFilter for FileMask {
    fn next(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.pieces().is_idle() {
            return bytes.to_vec();
        }
        self.partial.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.partial) {
            Ok(text) => text.len(),
            // The last character is incomplete: its bytes wait for the next ones.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(_) => self.partial.len(),
        };
        let rest = self.partial.split_off(whole);
        let text =
            String::from_utf8_lossy(&std::mem::replace(&mut self.partial, rest)).into_owned();
        self.pieces().next(&text).into_bytes()
    }

    fn rest(&mut self) -> Vec<u8> {
        let mut rest = self.pieces.take().map(Pieces::rest).unwrap_or_default();
        rest.push_str(&String::from_utf8_lossy(&std::mem::take(&mut self.partial)));
        rest.into_bytes()
    }
}
