//! The files that rules keep from being read. Their content is not copied either: a copy would show it
//! under another name.

use std::path::Path;

use loopd_kernel::policy::unread::UnreadFiles;
use loopd_kernel::policy::{self, GuardedPaths};
use loopd_proto::permission::Permissions;

use crate::tool::closed::ClosedPlaces;
use crate::tool::texts;

/// The rules of a session about reading.
#[derive(Debug, Clone, Default)]
pub struct ReadRules {
    files: UnreadFiles,
    guarded: GuardedPaths,
}

impl ReadRules {
    pub fn of(permissions: &Permissions) -> Self {
        Self {
            files: UnreadFiles::of(permissions),
            guarded: policy::guarded(permissions),
        }
    }

    /// Resolves the rules as their paths are on the disk now.
    pub(super) fn resolved(&self) -> Unread {
        let places = (!self.files.is_empty()).then(|| ClosedPlaces::of(&self.guarded));
        Unread {
            files: self.files.clone(),
            places,
        }
    }
}

/// The rules about reading, resolved once for one look at the workspace.
#[derive(Debug, Default)]
pub(super) struct Unread {
    files: UnreadFiles,
    /// `None` without rules.
    places: Option<ClosedPlaces>,
}

impl Unread {
    /// Returns whether a rule keeps this file from being read, under any of the names that rules know.
    pub(super) fn has(&self, real: &Path) -> bool {
        let Some(places) = &self.places else {
            return false;
        };
        let is_named = |name: &str| self.files.has(name);
        is_named(&texts::path(real)) || places.names(real).iter().any(|name| is_named(name))
    }

    /// Returns what tells two sets of rules apart.
    pub(super) fn rules(&self) -> &[String] {
        self.files.arguments()
    }
}
