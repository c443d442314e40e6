//! Guards of files that cannot be used.

use std::path::{Path, PathBuf};

use crate::discovery::content_hash::ContentHash;

use super::definition::{DEFAULT_TIMEOUT, HookAction, HookDefinition, HookPlace, HookSource};
use super::kind::{HookKind, PayloadForm};
use super::matcher::HookMatcher;

/// A guard that was meant and cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusableGuard {
    pub(super) kind: HookKind,
    pub(super) form: PayloadForm,
    /// What it is for; empty for every call.
    pub(super) matcher: String,
    pub(super) line: usize,
    pub(super) why: String,
}

impl UnusableGuard {
    /// What a file may have guarded that cannot be read.
    pub(super) fn of_any_call(why: String) -> Self {
        Self {
            kind: HookKind::PreToolUse,
            form: PayloadForm::Native,
            matcher: String::new(),
            line: 1,
            why,
        }
    }

    /// Returns the guard that stands in for it: it denies what that one may be asked about.
    pub(super) fn stand_in(self, file: &Path, source: &HookSource) -> HookDefinition {
        HookDefinition {
            kind: self.kind,
            form: self.form,
            matcher: HookMatcher::read(&self.matcher, self.form).unwrap_or(HookMatcher::Every),
            condition: None,
            action: HookAction::Script {
                script: String::new(),
                place: HookPlace::default(),
            },
            timeout: DEFAULT_TIMEOUT,
            on_failure: None,
            in_background: false,
            once: false,
            status_message: None,
            source: source.clone(),
            file: file.to_owned(),
            line: self.line,
            hash: ContentHash::of([b"unusable".as_slice(), self.why.as_bytes()]),
            said: ContentHash::default(),
            named_files: Vec::new(),
            own_paths: Vec::new(),
            root: PathBuf::new(),
            off: None,
            missing: false,
            unusable: Some(self.why),
            is_new: false,
        }
    }
}
