//! Changes several files together. The new contents are first written under temporary names, so that
//! missing space or permissions show before any file changes; then the files are renamed. A step
//! that still fails undoes the steps before it. Called by `apply_patch`; knows no patch.

use std::path::PathBuf;

use super::{DiskError, Stamp, platform};

/// One file to change.
#[derive(Debug)]
pub(in crate::tool) enum Step {
    Create {
        real: PathBuf,
        contents: Vec<u8>,
        /// The file whose mode and owner the new one takes.
        like: Option<PathBuf>,
    },
    Replace {
        real: PathBuf,
        contents: Vec<u8>,
        seen: Stamp,
    },
    Remove {
        real: PathBuf,
        seen: Stamp,
    },
}

impl Step {
    /// Returns the path that the step changes.
    pub(in crate::tool) fn path(&self) -> PathBuf {
        match self {
            Self::Create { real, .. } | Self::Replace { real, .. } | Self::Remove { real, .. } => {
                real.clone()
            }
        }
    }
}

/// Why a batch was not done.
#[derive(Debug)]
pub(in crate::tool) struct NotDone {
    /// Which step failed.
    pub(in crate::tool) step: usize,
    pub(in crate::tool) error: DiskError,
    /// Steps that could not be undone; empty means that every file is as it was.
    pub(in crate::tool) not_undone: Vec<usize>,
}

/// Makes all changes or none.
pub(in crate::tool) fn carry_out(steps: Vec<Step>) -> Result<(), NotDone> {
    let failed = |step: usize| {
        move |error| NotDone {
            step,
            error,
            not_undone: Vec::new(),
        }
    };
    let mut staged = Vec::with_capacity(steps.len());
    for (index, step) in steps.into_iter().enumerate() {
        staged.push(platform::Staged::prepare(step).map_err(failed(index))?);
    }
    for index in 0..staged.len() {
        let Some(step) = staged.get_mut(index) else {
            break;
        };
        if let Err(error) = step.change() {
            return Err(NotDone {
                step: index,
                error,
                not_undone: undo(staged),
            });
        }
    }
    for step in staged {
        step.keep();
    }
    Ok(())
}

/// Undoes the changes, the last one first.
fn undo(staged: Vec<platform::Staged>) -> Vec<usize> {
    let mut not_undone = Vec::new();
    for (index, mut step) in staged.into_iter().enumerate().rev() {
        if let Err(error) = step.undo() {
            tracing::error!(%error, "a change to a file could not be undone");
            not_undone.push(index);
        }
    }
    not_undone
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
