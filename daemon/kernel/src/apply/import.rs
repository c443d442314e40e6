//! A log that was written in another home begins to count here.

use loopd_proto::event::import::Imported;
use loopd_proto::event::session::WorkContext;
use loopd_proto::session::Mode;

use super::runs;
use crate::state::State;

/// Leaves what the log says of the conversation and what narrows the session. What gave it rights in the
/// other home, and what names places there, ends: whoever wrote the file could have written anything.
pub(super) fn imported(state: &mut State, imported: &Imported) {
    state.options = std::mem::take(&mut state.options).portable();
    state.permissions = std::mem::take(&mut state.permissions).without_approvals();
    state.guard_folders.clear();
    state.skills.stay_elsewhere(state.seq);
    state.researches = None;
    // The messages that wait are sent where they were typed.
    state.queue.clear();
    state.steering.clear();
    runs::abandon_unfinished(state);
    if state.mode == Mode::Autopilot {
        state.mode = Mode::Interactive;
    }
    state.autopilot.abandon();
    state.cwd.clone_from(&imported.working_directory);
    state.context = WorkContext {
        cwd: imported.working_directory.clone(),
        ..WorkContext::default()
    };
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use crate::decide::tests::prelude::*;

    fn imported() -> serde_json::Value {
        json!({
            "fromSessionId": "there", "exportedAt": "2026-11-18T00:00:00.000Z", "exportedBy": "0.1.0",
            "workingDirectory": "/here",
        })
    }

    #[test]
    fn approvals_of_another_home_end_and_what_is_denied_stays_denied() {
        let rule = |kind: &str| json!({"kind": kind, "argument": null});
        let permissions = json!({
            "approveAll": true, "approved": [rule("shell")], "denied": [rule("url")], "ask": [rule("mcp")],
            "directories": ["/"], "unrestrictedPaths": true, "unrestrictedUrls": true,
            "managed": {"deny": [rule("write")], "ask": [], "allow": [[rule("shell")]], "noApproveAll": true},
        });
        let state = idle()
            .and(event(
                "loopd.permissions",
                json!({"permissions": permissions}),
            ))
            .and(event(
                "session.mode_changed",
                json!({"previousMode": "interactive", "newMode": "autopilot"}),
            ))
            .and(event("loopd.imported", imported()))
            .state();
        let kept = serde_json::to_value(&state.permissions).unwrap_or_default();
        assert_eq!(kept["approveAll"], false);
        assert_eq!(kept["approved"], json!([]));
        assert_eq!(kept["directories"], json!([]));
        assert_eq!(kept["denied"], json!([rule("url")]));
        assert_eq!(kept["ask"], json!([rule("mcp")]));
        assert_eq!(kept["managed"]["deny"], json!([rule("write")]));
        assert_eq!(kept["managed"]["allow"], json!([]));
        assert_eq!(kept["managed"]["noApproveAll"], true);
        assert_eq!(kept["unrestrictedPaths"], false);
        assert_eq!(kept["unrestrictedUrls"], false);
        assert_eq!(state.mode, loopd_proto::session::Mode::Interactive);
        assert_eq!(
            (state.cwd.as_str(), state.context.cwd.as_str()),
            ("/here", "/here")
        );
    }

    #[test]
    fn a_skill_of_another_home_opens_no_folder_here_also_after_a_rewind() {
        use loopd_proto::event::Durable;
        use loopd_proto::event::skill::SkillTrigger;
        let mut skill = tidy(SkillTrigger::AgentInvoked, None);
        skill.path = "/etc/SKILL.md".to_owned();
        let given = idle()
            .and(Durable::SkillInvoked(skill.clone()))
            .and(event("loopd.imported", imported()));
        let mut state = given.state();
        assert_eq!(state.active_skills().count(), 1);
        assert_eq!(state.skill_folders().count(), 0);
        let loaded = state.skills.loaded().to_vec();
        state.skills.put_back(loaded);
        assert_eq!(state.skill_folders().count(), 0);
        // One that is loaded here does.
        let given = given.and(Durable::SkillInvoked(skill));
        assert_eq!(given.state().skill_folders().count(), 1);
    }
}
