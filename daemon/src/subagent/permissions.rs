//! The permissions of a sub-agent, computed from those of its parent.

use loopd_proto::event::agent::Profile;

use loopd_kernel::policy::copies::RepositoryCopy;
use loopd_kernel::policy::restrict::{EffectivePermissions, Workspace, restrict_for_child};

/// The permissions of a parent, and its working directory.
#[derive(Debug, Clone)]
pub struct ParentPermissions {
    pub effective: EffectivePermissions,
    /// The working directory of the parent.
    pub cwd: String,
}

impl ParentPermissions {
    /// Returns the permissions of a sub-agent with this profile: never more than its parent's.
    pub fn for_child(&self, profile: &Profile) -> EffectivePermissions {
        let workspace = match &profile.worktree {
            Some(root) => Workspace::Copy { root },
            None => Workspace::Shared { parent: &self.cwd },
        };
        let mut effective = restrict_for_child(&self.effective, profile.stance, workspace);
        effective.copies.extend(RepositoryCopy::of_profile(profile));
        effective
    }
}
