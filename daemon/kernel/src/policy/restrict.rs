//! The permissions of an agent, which never exceed those of its parent.
//!
//! Only [`restrict_for_child`] derives an agent's permissions from its parent's.
//! `tests/it/leave.rs` checks with random rules and requests that no child is allowed what its
//! parent would be asked about or denied.

use loopd_proto::event::agent::Stance;
use loopd_proto::permission::{PermissionRule, Permissions};

use super::copies::RepositoryCopy;
use super::planning::Planning;

/// What a session may do without asking, and whether it may ask at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectivePermissions {
    pub permissions: Permissions,
    pub may_ask: bool,
    /// Whether it only looks and plans.
    pub planning: Planning,
    /// The copies of repositories in which rules about files hold as well. They count only with
    /// [`hold_in_copies`](super::copies::hold_in_copies).
    pub copies: Vec<RepositoryCopy>,
}

/// Where an agent works, in relation to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace<'a> {
    /// The agent works in its parent's directory, or in another one that the parent may or may not
    /// be allowed to use.
    Shared { parent: &'a str },
    /// The agent works in its own copy of its parent's directory.
    Copy { root: &'a str },
}

/// Returns the permissions of an agent.
pub fn restrict_for_child(
    parent: &EffectivePermissions,
    stance: Stance,
    workspace: Workspace<'_>,
) -> EffectivePermissions {
    let mut permissions = parent.permissions.clone();
    match workspace {
        Workspace::Shared { parent } => {
            permissions
                .primary_directory
                .get_or_insert_with(|| parent.to_owned());
        }
        Workspace::Copy { root } => permissions.primary_directory = Some(root.to_owned()),
    }
    match stance {
        Stance::Inherit | Stance::NeverAsk => {}
        Stance::Plan => keep_to_looking(&mut permissions),
    }
    let own = match stance {
        Stance::Plan => Planning::Agent,
        Stance::Inherit | Stance::NeverAsk => Planning::No,
    };
    EffectivePermissions {
        permissions,
        may_ask: parent.may_ask && stance != Stance::NeverAsk,
        planning: own.below(parent.planning),
        copies: parent.copies.clone(),
    }
}

/// Adds what a session above denies, wants a person to decide, or has from whoever manages it.
pub fn hold_restrictions(above: &Permissions, permissions: &mut Permissions) {
    let add = |rules: &mut Vec<PermissionRule>, more: &[PermissionRule]| {
        let new = more.iter().filter(|rule| !rules.contains(rule));
        let new: Vec<PermissionRule> = new.cloned().collect();
        rules.extend(new);
    };
    add(&mut permissions.denied, &above.denied);
    add(&mut permissions.ask, &above.ask);
    if let Some(managed) = &above.managed {
        let own = permissions.managed.take().unwrap_or_default();
        permissions.managed = Some(Box::new(own.and((**managed).clone())));
    }
}

/// Removes every permission to change something. Permissions to read stay as they were.
pub fn keep_to_looking(permissions: &mut Permissions) {
    if permissions.approves_all() {
        permissions.unrestricted_paths = true;
        permissions.unrestricted_urls = true;
        permissions.approve_all_reads = true;
    }
    permissions.approve_all = false;
    permissions
        .approved
        .retain(|rule| matches!(rule.kind.as_str(), "read" | "url" | "look"));
    permissions.denied.push(PermissionRule {
        kind: "write".to_owned(),
        argument: None,
    });
}
