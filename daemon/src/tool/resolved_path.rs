//! Where a path given by the model really is: symbolic links are followed once, here, so that the
//! permission asked for names the file that will be touched. Called by the file tools; opens nothing.

use std::io;
use std::path::{Path, PathBuf};

use loopd_proto::permission::PermissionRequest;

use loopd_kernel::policy::grant::Grant;

use super::{AssessContext, Need, Outcome, texts};

/// One file or folder, named in the three ways that matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    /// As the model asked for it, made absolute; used in results.
    pub(super) asked: PathBuf,
    /// Free of symbolic links; used for opening.
    pub(super) real: PathBuf,
    /// What permission is asked for: inside the working directory as seen from there, otherwise real.
    pub(super) shown: PathBuf,
}

/// Finds something that exists.
pub(super) fn existing(context: &AssessContext, path: &str) -> Result<ResolvedPath, Outcome> {
    let asked = context.resolve(path);
    match asked.canonicalize() {
        Ok(real) => Ok(named(context, asked, real)),
        Err(error) => Err(unreachable(&asked, &error)),
    }
}

/// Finds where something would be made: the folders that exist are real, the rest is new.
pub(super) fn possible(context: &AssessContext, path: &str) -> Result<ResolvedPath, Outcome> {
    let asked = context.resolve(path);
    for ancestor in asked.ancestors() {
        match ancestor.canonicalize() {
            Ok(real) => {
                let rest = asked.strip_prefix(ancestor).unwrap_or(Path::new(""));
                // Joining an empty rest would add a trailing slash.
                let real = if rest.as_os_str().is_empty() {
                    real
                } else {
                    real.join(rest)
                };
                return Ok(named(context, asked, real));
            }
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(unreachable(&asked, &error)),
        }
    }
    Err(Outcome::failure(texts::missing_path(asked.display())))
}

fn named(context: &AssessContext, asked: PathBuf, real: PathBuf) -> ResolvedPath {
    let inside = context.cwd.canonicalize().ok().and_then(|cwd| {
        let rest = real.strip_prefix(cwd).ok()?;
        Some(context.resolve(rest))
    });
    let shown = inside.unwrap_or_else(|| real.clone());
    ResolvedPath { asked, real, shown }
}

/// Nothing is there, or cannot be because a file is where a folder would have to be.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn unreachable(asked: &Path, error: &io::Error) -> Outcome {
    Outcome::failure(if is_absent(error) {
        texts::missing_path(asked.display())
    } else {
        format!("Path {} cannot be reached: {error}.", asked.display())
    })
}

impl ResolvedPath {
    /// Says what is about to be done, naming the target where the path is a link.
    pub(super) fn intention(&self, action: &str) -> String {
        let asked = self.asked.display();
        if self.asked == self.shown {
            format!("{action}: {asked}")
        } else {
            format!("{action}: {asked} (a link to {})", self.shown.display())
        }
    }

    /// Says what reading this place needs; what the session put aside itself is its own.
    pub(super) fn read_need(&self, context: &AssessContext, intention: String) -> Need {
        if self.is_own(context) {
            return Need::Nothing;
        }
        Need::Permission(PermissionRequest::Read {
            managed_approval_required: None,
            tool_call_id: None,
            intention,
            path: texts::path(&self.shown),
            also_named: self.other_names(),
        })
    }

    /// The other names by which a rule may know this place.
    pub(super) fn other_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for name in [&self.asked, &self.real] {
            let name = texts::path(name);
            if name != texts::path(&self.shown) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Whether this is something that the session itself put aside, such as a long output.
    fn is_own(&self, context: &AssessContext) -> bool {
        let scratch = context.scratch.canonicalize();
        scratch.is_ok_and(|scratch| self.real.starts_with(scratch))
    }

    /// Checks that exactly this place may be read.
    pub(super) fn check_read(&self, context: &AssessContext, grant: &Grant) -> Result<(), Outcome> {
        match grant.request() {
            None if self.is_own(context) => Ok(()),
            Some(PermissionRequest::Read { path, .. }) if *path == texts::path(&self.shown) => {
                Ok(())
            }
            _ => Err(Outcome::failure(texts::not_granted(self.asked.display()))),
        }
    }

    /// Checks that exactly this change to this place may be made.
    pub(super) fn check_write(&self, grant: &Grant, change: &str) -> Result<(), Outcome> {
        match grant.request() {
            Some(PermissionRequest::Write {
                file_name, diff, ..
            }) if *file_name == texts::path(&self.shown) && diff == change => Ok(()),
            _ => Err(Outcome::failure(texts::not_granted(self.asked.display()))),
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
