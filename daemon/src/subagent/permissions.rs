//! The permissions of a sub-agent, computed from those of its parent.

use loopd_proto::event::agent::Profile;
use loopd_proto::permission::PermissionRule;

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
    /// Returns the permissions of a sub-agent with this profile: never more than its parent's, but for
    /// the folder of its memory.
    pub fn for_child(&self, profile: &Profile) -> EffectivePermissions {
        let workspace = match &profile.worktree {
            Some(root) => Workspace::Copy { root },
            None => Workspace::Shared { parent: &self.cwd },
        };
        let mut effective = restrict_for_child(&self.effective, profile.stance, workspace);
        effective.copies.extend(RepositoryCopy::of_profile(profile));
        add_memory(&mut effective, profile);
        effective
    }
}

/// Lets an agent use the folder of its memory, which its definition asks for. The definitions of a
/// project do so only in a folder that is trusted. What is denied stays denied, and an agent that only
/// plans writes nothing.
fn add_memory(effective: &mut EffectivePermissions, profile: &Profile) {
    let Some(folder) = &profile.memory else {
        return;
    };
    let kinds: &[&str] = if effective.planning.is_on() {
        &["read"]
    } else {
        &["read", "write"]
    };
    let rules = kinds.iter().map(|kind| PermissionRule {
        kind: (*kind).to_owned(),
        argument: Some(folder.clone()),
    });
    effective.permissions.approved.extend(rules);
}
