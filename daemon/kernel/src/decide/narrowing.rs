//! A copy of a session keeps what narrows the rights of that session, wherever in its log the copy ends:
//! going back in a conversation lifts no guard.

use loopd_proto::event::Durable;
use loopd_proto::event::fact::PermissionsSet;
use loopd_proto::event::hook::{GuardFolders, VouchedFolder, VouchedHooks};
use loopd_proto::permission::Permissions;
use loopd_proto::session::Mode;

use super::settings::{change_mode, configure};
use crate::command::Decision;
use crate::state::State;

/// Adds what narrows the rights of `source` and is not in the copied part of its log.
pub(super) fn like(state: &State, source: &State) -> Decision {
    let mut decision = Decision::default();
    if let (None, Some(subagent)) = (&state.subagent, &source.subagent) {
        decision.store(Durable::SubagentIdentity(subagent.clone()));
    }
    let mut options = state.options.clone();
    if source.options.wants_file_hooks() && !options.wants_file_hooks() {
        options.enable_file_hooks = Some(true);
    }
    configure(state, &mut decision, options, state.cwd.clone());
    let missing = source.guards.missing_from(&state.guards);
    if !missing.is_empty() {
        let guards = state.guards.clone().and(&missing);
        decision.store(Durable::ClientGuard(guards.event()));
    }
    let folders = source.guard_folders.iter();
    let folders = folders.filter(|folder| !state.guard_folders.contains(folder));
    let folders: Vec<_> = folders.cloned().collect();
    if !folders.is_empty() {
        decision.store(Durable::GuardFolders(GuardFolders { folders }));
    }
    let vouched = vouched(&state.vouched_hooks, &source.vouched_hooks);
    if vouched != state.vouched_hooks {
        decision.store(Durable::VouchedHooks(VouchedHooks { folders: vouched }));
    }
    let permissions = narrower(state.permissions.clone(), &source.permissions);
    if permissions != state.permissions {
        decision.store(Durable::Permissions(PermissionsSet { permissions }));
    }
    if source.mode == Mode::Plan {
        change_mode(state, &mut decision, Mode::Plan);
    }
    decision
}

/// Returns the folders that apps vouch for: of one that both name, what the source has.
fn vouched(own: &[VouchedFolder], source: &[VouchedFolder]) -> Vec<VouchedFolder> {
    let mut all = own.to_vec();
    for folder in source {
        match all.iter_mut().find(|known| known.path == folder.path) {
            Some(known) => known.clone_from(folder),
            None => all.push(folder.clone()),
        }
    }
    all
}

/// Returns what both permissions allow.
fn narrower(mut own: Permissions, source: &Permissions) -> Permissions {
    own.approve_all &= source.approve_all;
    own.approve_all_reads &= source.approve_all_reads;
    own.unrestricted_paths &= source.unrestricted_paths;
    own.unrestricted_urls &= source.unrestricted_urls;
    own.approved.retain(|rule| source.approved.contains(rule));
    own.confirmed
        .retain(|request| source.confirmed.contains(request));
    own.directories
        .retain(|directory| source.directories.contains(directory));
    own.allowed_urls
        .retain(|url| source.allowed_urls.contains(url));
    for (own, source) in [
        (&mut own.denied, &source.denied),
        (&mut own.ask, &source.ask),
    ] {
        let more = source.iter().filter(|rule| !own.contains(rule));
        let more: Vec<_> = more.cloned().collect();
        own.extend(more);
    }
    own.managed = match (own.managed, source.managed.clone()) {
        (Some(own), Some(source)) => Some(Box::new(own.and(*source))),
        (own, source) => own.or(source),
    };
    own
}
