//! What an agent may do, computed from what its parent may do.

use loopd_proto::event::agent::Profile;

use loopd_kernel::policy::restrict::{EffectivePermissions, Workspace, restrict_for_child};

/// What a parent may do, and where.
#[derive(Debug, Clone)]
pub struct ParentPermissions {
    pub effective: EffectivePermissions,
    /// The folder in which the parent works.
    pub cwd: String,
}

impl ParentPermissions {
    /// What an agent with this profile may do: never more than its parent.
    pub fn for_child(&self, profile: &Profile) -> EffectivePermissions {
        let workspace = match &profile.worktree {
            Some(root) => Workspace::Copy { root },
            None => Workspace::Shared { parent: &self.cwd },
        };
        restrict_for_child(&self.effective, profile.stance, workspace)
    }
}
