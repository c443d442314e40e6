//! What a person has to decide, whatever approvals and hooks allow: what rules of settings ask about,
//! what a deny rule may forbid and cannot decide before it runs, and what an app decided for its users.

use loopd_proto::permission::{
    AskReason, AskedBecause, ConfirmedRequest, PermissionRequest, PermissionRule, Permissions,
};

use super::managed::against;
use super::{Verdict, Whereabouts, judge_by_rules, protected};

/// How many rules are named as the reason of a question, and how many are looked at for that.
const MOST_NAMED: usize = 3;
const MOST_COMPARED: usize = 100;

/// Combines the verdict of all other rules with those of settings that ask. What a person approved for
/// the session is not asked about again, and nothing else is covered by that.
pub(super) fn weigh(
    verdict: Verdict,
    permissions: &Permissions,
    at: Whereabouts<'_>,
    request: &PermissionRequest,
) -> Verdict {
    let is_denied = matches!(verdict, Verdict::Deny(_));
    if permissions.ask.is_empty()
        || is_denied
        || against(&permissions.ask, at.cwd, request) == Verdict::Allow
    {
        return verdict;
    }
    let is_approved = is_confirmed(permissions, request)
        && !protected::is_written(permissions, at, request)
        && !may_be_denied(permissions, at, request)
        && !is_managed(permissions, at, request);
    if is_approved {
        Verdict::Allow
    } else {
        Verdict::Ask
    }
}

fn is_confirmed(permissions: &Permissions, request: &PermissionRequest) -> bool {
    let confirmed = ConfirmedRequest::of(request);
    confirmed.is_some_and(|request| permissions.confirmed.contains(&request))
}

/// Whether a person has to decide about a request that is asked about.
pub(crate) fn wants_a_person(
    permissions: &Permissions,
    at: Whereabouts<'_>,
    request: &PermissionRequest,
) -> bool {
    because(permissions, at, request).is_some()
}

/// Returns why a person has to decide about a request that is asked about; `None` if approving
/// everything would cover it.
pub(crate) fn because(
    permissions: &Permissions,
    at: Whereabouts<'_>,
    request: &PermissionRequest,
) -> Option<AskedBecause> {
    let reason = |reason, rules, session_approval| {
        Some(AskedBecause {
            reason,
            rules,
            hook_message: None,
            session_approval,
        })
    };
    if may_be_denied(permissions, at, request) {
        let denied = deny_rules(permissions);
        let rules = hitting(denied.iter().copied(), at, request);
        return reason(AskReason::MayBeDenied, rules, false);
    }
    if is_managed(permissions, at, request) {
        let managed = permissions.managed.iter();
        let rules = managed.flat_map(|managed| &managed.ask);
        let rules = hitting(rules, at, request);
        return reason(AskReason::Managed, rules, false);
    }
    let rules = hitting(permissions.ask.iter(), at, request);
    if rules.is_empty() && against(&permissions.ask, at.cwd, request) == Verdict::Allow {
        return None;
    }
    let is_once =
        protected::is_written(permissions, at, request) || ConfirmedRequest::of(request).is_none();
    reason(AskReason::AskRule, rules, !is_once)
}

fn deny_rules(permissions: &Permissions) -> Vec<&PermissionRule> {
    let managed = permissions.managed.iter();
    let managed = managed.flat_map(|managed| &managed.deny);
    permissions.denied.iter().chain(managed).collect()
}

/// Whether a deny rule may forbid the request, which is not known before it runs.
fn may_be_denied(
    permissions: &Permissions,
    at: Whereabouts<'_>,
    request: &PermissionRequest,
) -> bool {
    let denied: Vec<PermissionRule> = deny_rules(permissions).into_iter().cloned().collect();
    !denied.is_empty() && against(&denied, at.cwd, request) == Verdict::Ask
}

/// Whether the rules of an app are the reason for a question.
fn is_managed(permissions: &Permissions, at: Whereabouts<'_>, request: &PermissionRequest) -> bool {
    let Some(managed) = &permissions.managed else {
        return false;
    };
    against(&managed.ask, at.cwd, request) != Verdict::Allow
        || judge_by_rules(permissions, at, request) == Verdict::Allow
            && super::managed::judge(managed, permissions, at, request) == Verdict::Ask
}

/// Returns the rules that are about a request, or some of them.
fn hitting<'r>(
    rules: impl Iterator<Item = &'r PermissionRule>,
    at: Whereabouts<'_>,
    request: &PermissionRequest,
) -> Vec<PermissionRule> {
    let hits = |rule: &&PermissionRule| {
        against(std::slice::from_ref(*rule), at.cwd, request) != Verdict::Allow
    };
    let rules = rules.take(MOST_COMPARED).filter(hits);
    rules.take(MOST_NAMED).cloned().collect()
}
