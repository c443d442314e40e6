//! Folders of hooks that an app named, and what it vouches for in them. They are part of the session until
//! an app names others.

use loopd_proto::event::Durable;
use loopd_proto::event::hook::{VouchedFolder, VouchedHooks};
use loopd_proto::event::session::Warning;

use crate::command::Decision;
use crate::state::State;
use crate::texts;

/// Records what an app vouches for, if that is something else than before. People are told of guards that
/// do not guard any more because of that.
pub(super) fn vouch(state: &State, now: Option<Vec<VouchedFolder>>, decision: &mut Decision) {
    let Some(now) = now.filter(|now| *now != state.vouched_hooks) else {
        return;
    };
    let is_left = |before: &&VouchedFolder| {
        let mut now = now.iter();
        let same = now.find(|folder| folder.path == before.path);
        before.guards.iter().any(|guard| {
            let mut kept = same.iter().flat_map(|folder| &folder.guards);
            !kept.any(|kept| kept.hash == guard.hash)
        })
    };
    let left = state.vouched_hooks.iter().filter(is_left);
    let left: Vec<&str> = left.map(|folder| folder.path.as_str()).collect();
    if !left.is_empty() {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: "guards_changed".to_owned(),
            message: texts::vouched_guards_left(&left),
            url: None,
        }));
    }
    decision.store(Durable::VouchedHooks(VouchedHooks { folders: now }));
}

#[cfg(test)]
mod tests {
    use loopd_proto::event::hook::VouchedGuard;
    use loopd_proto::params::options::OptionsPatch;
    use serde_json::json;

    use super::*;
    use crate::command::Command;
    use crate::decide::tests::prelude::*;

    fn folder(path: &str, guards: &[&str]) -> VouchedFolder {
        VouchedFolder {
            path: path.to_owned(),
            hooks: guards.iter().map(|hash| (*hash).to_owned()).collect(),
            guards: guards.iter().map(|hash| guard(hash)).collect(),
        }
    }

    fn guard(hash: &str) -> VouchedGuard {
        VouchedGuard {
            hash: hash.to_owned(),
            event: "preToolUse".to_owned(),
            matcher: String::new(),
            condition: None,
            file: "/h/a.json".to_owned(),
            line: 1,
            command: "exit 2".to_owned(),
        }
    }

    fn named(folders: Option<Vec<VouchedFolder>>) -> Command {
        Command::UpdateOptions(Box::new(OptionsPatch {
            vouched_hooks: folders,
            ..OptionsPatch::default()
        }))
    }

    fn vouching(folders: &[VouchedFolder]) -> Given {
        idle().and(event("loopd.vouched_hooks", json!({ "folders": folders })))
    }

    #[test]
    fn what_an_app_vouches_for_is_recorded_once() {
        let given = vouching(&[folder("/h", &["one"])]);
        check(
            &given,
            || named(Some(vec![folder("/h", &["one"])])),
            "answer no\nnow idle",
        );
        check(&given, || named(None), "answer no\nnow idle");
    }

    #[test]
    fn people_are_told_of_guards_that_an_app_replaces() {
        check(
            &vouching(&[folder("/h", &["one"]), folder("/i", &["two"])]),
            || named(Some(vec![folder("/h", &["one", "new"])])),
            r#"
            answer yes
            store session.warning warningType=guards_changed message="The hooks of /i that guarded this session were changed, or are not named…"
            store loopd.vouched_hooks folders=[{"path":"/h","hooks":["one","new"],"guards":[{"hash":"one","event":"preToolUse","file":"/h/a.json","line":1,"command":"exit 2"},{"hash":"new","event":"preToolUse","file":"/h/a.json","line":1,"command":"exit 2"}]}]
            now idle
            "#,
        );
    }
}
