//! Changes of the permissions of a session.

use loopd_proto::event::Durable;
use loopd_proto::event::fact::PermissionsSet;
use loopd_proto::params::permission::ApprovalMode;
use loopd_proto::permission::Permissions;

use crate::command::{
    Answer, DecideEnv, Decision, PermissionChange, PermissionsPatch, Refusal, RuleRemoval,
};
use crate::state::State;

/// Applies the change to the current permissions.
pub(in crate::decide) fn change(
    state: &State,
    change: PermissionChange,
    env: &DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    if state.permissions.forbids_approve_all() && approves_all(&change) {
        return Err(Refusal::NoApproveAll);
    }
    let mut permissions = state.permissions.clone();
    make(&mut permissions, change);
    let everything = (permissions.approve_all || env.bypass) && !permissions.forbids_approve_all();
    let changed = permissions != state.permissions;
    let mut decision = Decision::answering(Answer::Permissions {
        changed,
        mode: if everything {
            ApprovalMode::AllowAll
        } else {
            ApprovalMode::Manual
        },
    });
    if changed {
        decision.store(Durable::Permissions(PermissionsSet { permissions }));
    }
    Ok(decision)
}

fn approves_all(change: &PermissionChange) -> bool {
    match change {
        PermissionChange::ApproveAll(all) => *all,
        PermissionChange::Configure(patch) => patch.approve_all == Some(true),
        PermissionChange::UnrestrictUrls(_)
        | PermissionChange::ModifyRules { .. }
        | PermissionChange::Approve(_)
        | PermissionChange::AddDirectory(_)
        | PermissionChange::SetPrimaryDirectory(_)
        | PermissionChange::Reset => false,
    }
}

fn make(permissions: &mut Permissions, change: PermissionChange) {
    match change {
        PermissionChange::ApproveAll(all) => permissions.approve_all = all,
        PermissionChange::UnrestrictUrls(all) => permissions.unrestricted_urls = all,
        PermissionChange::Configure(patch) => configure(permissions, *patch),
        PermissionChange::ModifyRules { remove, add } => {
            match remove {
                RuleRemoval::All => permissions.approved.clear(),
                RuleRemoval::These(rules) => {
                    permissions.approved.retain(|rule| !rules.contains(rule));
                }
            }
            add_new(&mut permissions.approved, add);
        }
        PermissionChange::Approve(rules) => add_new(&mut permissions.approved, rules),
        PermissionChange::AddDirectory(path) => add_new(&mut permissions.directories, [path]),
        PermissionChange::SetPrimaryDirectory(path) => permissions.primary_directory = Some(path),
        PermissionChange::Reset => {
            permissions.approve_all = false;
            permissions.approved.clear();
            permissions.allowed_urls.clear();
        }
    }
}

fn configure(permissions: &mut Permissions, patch: PermissionsPatch) {
    fn set<T>(setting: &mut T, new: Option<T>) {
        if let Some(new) = new {
            *setting = new;
        }
    }
    set(&mut permissions.approve_all, patch.approve_all);
    set(&mut permissions.approve_all_reads, patch.approve_all_reads);
    if let Some(rules) = patch.rules {
        permissions.approved = rules.approved;
        permissions.denied = rules.denied;
    }
    set(
        &mut permissions.unrestricted_paths,
        patch.unrestricted_paths,
    );
    set(&mut permissions.directories, patch.directories);
    add_new(&mut permissions.directories, patch.extra_directory);
    if patch.primary_directory.is_some() {
        permissions.primary_directory = patch.primary_directory;
    }
    set(&mut permissions.unrestricted_urls, patch.unrestricted_urls);
    set(&mut permissions.allowed_urls, patch.allowed_urls);
}

/// Adds the items that the list does not have yet.
pub(in crate::decide) fn add_new<T: PartialEq>(
    list: &mut Vec<T>,
    items: impl IntoIterator<Item = T>,
) {
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}
