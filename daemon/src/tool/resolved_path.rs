//! Resolves a path from the model. Symbolic links are followed once, here, so that the permission
//! request names the file that will be used. Called by the file tools; opens nothing.

use std::io;
use std::path::{Path, PathBuf};

use loopd_proto::permission::PermissionRequest;

use loopd_kernel::policy::grant::Grant;

use super::closed::ClosedPlaces;
use super::git_folder::GitFolders;
use super::{AssessContext, Need, Outcome, texts};

/// The three names of one file or folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    /// As the model asked for it, made absolute; used in results.
    pub(super) asked: PathBuf,
    /// Free of symbolic links; used for opening.
    pub(super) real: PathBuf,
    /// The name in permission requests: inside the working directory the path below it as the model
    /// sees it, otherwise the real path.
    pub(super) shown: PathBuf,
    /// The names that rules use for it, if they are others.
    by_rules: Vec<String>,
    /// The folder in which git keeps a repository and in which it lies, if it does.
    repository: Option<String>,
}

/// Resolves a path as far as it exists, for a permission request. Tells nothing of the path: that is
/// for who may read it.
pub(super) fn asked_about(context: &AssessContext, path: &str) -> ResolvedPath {
    let asked = context.resolve(path);
    let resolved = asked.ancestors().find_map(|ancestor| {
        let real = ancestor.canonicalize().ok()?;
        let rest = asked.strip_prefix(ancestor).ok()?;
        // Joining an empty rest would add a trailing slash.
        Some(if rest.as_os_str().is_empty() {
            real
        } else {
            real.join(rest)
        })
    });
    let real = resolved.unwrap_or_else(|| asked.clone());
    named(context, asked, real)
}

/// Returns what a call needs that cannot work: why it cannot is told to who may read the path.
pub(super) fn need_to_explain(context: &AssessContext, path: &str) -> Need {
    let place = asked_about(context, path);
    place.read_need(context, place.intention("Read file"))
}

/// Returns why a call cannot work, if the grant covers the path that the reason tells of.
pub(super) fn explained(
    context: &AssessContext,
    grant: &Grant,
    path: &str,
    reason: Outcome,
) -> Outcome {
    let place = asked_about(context, path);
    let covers_write = matches!(
        grant.request(),
        Some(PermissionRequest::Write { file_name, other_files, .. })
            if std::iter::once(file_name).chain(other_files).any(|file| context.redaction.is_shown_as(&texts::path(&place.shown), file))
    );
    match place.check_read(context, grant) {
        Err(refused) if !covers_write => refused,
        Ok(()) | Err(_) => reason,
    }
}

/// Resolves a path that exists.
pub(super) fn existing(context: &AssessContext, path: &str) -> Result<ResolvedPath, Outcome> {
    let asked = context.resolve(path);
    match asked.canonicalize() {
        Ok(real) => Ok(named(context, asked, real)),
        Err(error) => Err(unreachable(&asked, &error)),
    }
}

/// Resolves a path that is to be created: the folders that exist are resolved, the rest is new.
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
    ResolvedPath {
        by_rules: ClosedPlaces::of(&context.guarded).names(&real),
        repository: GitFolders::default()
            .guarding(&real)
            .map(|folder| texts::path(&folder)),
        asked,
        real,
        shown,
    }
}

/// Returns whether the error means that nothing exists there, or that a file is in the place of a
/// folder.
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
    /// Describes what is about to be done, with the target if the path is a link.
    pub(super) fn intention(&self, action: &str) -> String {
        let asked = self.asked.display();
        if self.asked == self.shown {
            format!("{action}: {asked}")
        } else {
            format!("{action}: {asked} (a link to {})", self.shown.display())
        }
    }

    /// Returns the permission that reading needs. The session may read the files it stored itself.
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

    /// Returns whether a rule names this path, or a folder that it lies in.
    pub(super) fn is_named_by_rules(&self) -> bool {
        !self.by_rules.is_empty()
    }

    /// Returns the other names that a rule may use for this path.
    pub(super) fn other_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for name in [&self.asked, &self.real] {
            let name = texts::path(name);
            if name != texts::path(&self.shown) && !names.contains(&name) {
                names.push(name);
            }
        }
        for name in &self.by_rules {
            if *name != texts::path(&self.shown) && !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Returns the folder in which git keeps a repository and in which this path lies.
    pub(super) fn repository_folders(&self) -> Vec<String> {
        self.repository.iter().cloned().collect()
    }

    /// Returns whether the session stored this file itself, such as a long output.
    fn is_own(&self, context: &AssessContext) -> bool {
        let scratch = context.scratch.canonicalize();
        // A file that a rule names is not the session's own, whatever folder it is linked into.
        let is_named = !self.by_rules.is_empty();
        !is_named && scratch.is_ok_and(|scratch| self.real.starts_with(scratch))
    }

    /// Checks that the grant allows reading exactly this path.
    pub(super) fn check_read(&self, context: &AssessContext, grant: &Grant) -> Result<(), Outcome> {
        match grant.request() {
            None if self.is_own(context) => Ok(()),
            Some(PermissionRequest::Read { path, .. })
                if context
                    .redaction
                    .is_shown_as(&texts::path(&self.shown), path) =>
            {
                Ok(())
            }
            _ => Err(Outcome::failure(texts::not_granted(self.asked.display()))),
        }
    }

    /// Checks that the grant allows exactly this change to this path.
    pub(super) fn check_write(
        &self,
        context: &AssessContext,
        grant: &Grant,
        change: &str,
    ) -> Result<(), Outcome> {
        let redaction = &context.redaction;
        match grant.request() {
            Some(PermissionRequest::Write {
                file_name, diff, ..
            }) if redaction.is_shown_as(&texts::path(&self.shown), file_name)
                && redaction.is_shown_as(change, diff) =>
            {
                Ok(())
            }
            _ => Err(Outcome::failure(texts::not_granted(self.asked.display()))),
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests;
