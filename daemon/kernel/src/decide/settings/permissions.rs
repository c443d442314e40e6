//! Changes of the permissions of a session.

use loopd_proto::event::Durable;
use loopd_proto::event::fact::{PermissionsSet, RulesChanged};
use loopd_proto::params::permission::ApprovalMode;
use loopd_proto::permission::{PermissionRule, Permissions};

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
    if let Some((remove, add)) = rules(&change) {
        return change_rules(state, remove, add, env);
    }
    let mut permissions = state.permissions.clone();
    make(&mut permissions, change);
    check_count(permissions.approved.len().max(permissions.denied.len()))?;
    let changed = permissions != state.permissions;
    let mut decision = answer(&permissions, changed, env);
    if changed {
        decision.store(Durable::Permissions(PermissionsSet { permissions }));
    }
    Ok(decision)
}

fn answer(permissions: &Permissions, changed: bool, env: &DecideEnv<'_>) -> Decision {
    let everything = (permissions.approve_all || env.bypass) && !permissions.forbids_approve_all();
    Decision::answering(Answer::Permissions {
        changed,
        mode: if everything {
            ApprovalMode::AllowAll
        } else {
            ApprovalMode::Manual
        },
    })
}

/// Returns what a change of rules removes and adds, if it changes nothing else.
fn rules(change: &PermissionChange) -> Option<(RuleRemoval, &[PermissionRule])> {
    match change {
        PermissionChange::ModifyRules { remove, add } => Some((remove.clone(), add)),
        PermissionChange::Approve(add) => Some((RuleRemoval::These(Vec::new()), add)),
        PermissionChange::ApproveAll(_)
        | PermissionChange::Configure(_)
        | PermissionChange::Deny(_)
        | PermissionChange::UnrestrictUrls(_)
        | PermissionChange::AddDirectory(_)
        | PermissionChange::SetPrimaryDirectory(_)
        | PermissionChange::Reset => None,
    }
}

/// Stores what changes of the rules, and not the rules, of which there may be many.
fn change_rules(
    state: &State,
    remove: RuleRemoval,
    add: &[PermissionRule],
    env: &DecideEnv<'_>,
) -> Result<Decision, Refusal> {
    let known = &state.permissions.approved;
    let mut change = RulesChanged::default();
    match remove {
        RuleRemoval::All => change.removed_all = Some(true).filter(|_| !known.is_empty()),
        RuleRemoval::These(mut rules) => {
            rules.retain(|rule| known.contains(rule));
            change.removed = rules;
        }
    }
    for rule in add {
        let stays =
            change.removed_all.is_none() && known.contains(rule) && !change.removed.contains(rule);
        if !stays && !change.added.contains(rule) {
            change.added.push(rule.clone());
        }
    }
    let left = if change.removed_all.is_some() {
        0
    } else {
        known.len().saturating_sub(change.removed.len())
    };
    check_count(left + change.added.len())?;
    let changed = change != RulesChanged::default();
    let mut decision = answer(&state.permissions, changed, env);
    if changed {
        decision.store(Durable::RulesChanged(change));
    }
    Ok(decision)
}

/// The most rules of a session.
const MOST_RULES: usize = 10_000;

fn check_count(rules: usize) -> Result<(), Refusal> {
    if rules > MOST_RULES {
        return Err(Refusal::TooManyRules { limit: MOST_RULES });
    }
    Ok(())
}

fn approves_all(change: &PermissionChange) -> bool {
    match change {
        PermissionChange::ApproveAll(all) => *all,
        PermissionChange::Configure(patch) => patch.approve_all == Some(true),
        PermissionChange::UnrestrictUrls(_)
        | PermissionChange::ModifyRules { .. }
        | PermissionChange::Approve(_)
        | PermissionChange::Deny(_)
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
        // `change_rules` stores these.
        PermissionChange::ModifyRules { .. } | PermissionChange::Approve(_) => {}
        PermissionChange::Deny(rules) => add_new(&mut permissions.denied, rules),
        PermissionChange::AddDirectory(path) => add_new(&mut permissions.directories, [path]),
        PermissionChange::SetPrimaryDirectory(path) => permissions.primary_directory = Some(path),
        PermissionChange::Reset => {
            permissions.approve_all = false;
            permissions.approved.clear();
            permissions.confirmed.clear();
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
