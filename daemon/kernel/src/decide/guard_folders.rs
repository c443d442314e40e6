//! Folders whose guards are in force: hooks that guard, and rules that deny or ask. They stay in force
//! for the session, wherever it works.

use std::path::Path;

use loopd_proto::event::Durable;
use loopd_proto::event::hook::{GuardFolder, GuardFolders};
use loopd_proto::event::session::Warning;

use crate::command::{Decision, Refusal};
use crate::state::State;
use crate::texts;

/// With so many folders a session does not move any more.
const MOST_FOLDERS: usize = 64;

/// Records the folders whose guards came into force.
pub(super) fn hold(state: &State, mut folders: Vec<GuardFolder>) -> Decision {
    folders.retain(|folder| !state.guard_folders.contains(folder));
    let mut decision = Decision::default();
    if !folders.is_empty() {
        decision.store(Durable::GuardFolders(GuardFolders { folders }));
    }
    decision
}

/// Refuses a move that could bring the guards of too many folders together.
pub(super) fn check_move(state: &State, cwd: Option<&String>) -> Result<(), Refusal> {
    let moves = cwd.is_some_and(|cwd| *cwd != state.cwd);
    if moves && state.guard_folders.len() >= MOST_FOLDERS {
        return Err(Refusal::TooManyGuards {
            limit: MOST_FOLDERS,
        });
    }
    Ok(())
}

/// Tells people which guards stay in force although the session moves to a directory that is not theirs.
pub(super) fn tell_kept(state: &State, cwd: &str, decision: &mut Decision) {
    if cwd == state.cwd {
        return;
    }
    let folders = state.guard_folders.iter().map(|folder| &folder.path);
    let left = folders.filter(|folder| !Path::new(cwd).starts_with(folder));
    let left: Vec<&str> = left.map(String::as_str).collect();
    if !left.is_empty() {
        decision.store(Durable::SessionWarning(Warning {
            warning_type: "guards_kept".to_owned(),
            message: texts::guards_kept(&left, cwd),
            url: None,
        }));
    }
}

#[cfg(test)]
#[expect(clippy::panic, reason = "a failed step fails the test")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::command::{Command, Step};
    use crate::decide::tests::prelude::*;

    fn folder(path: &str) -> GuardFolder {
        GuardFolder {
            path: path.to_owned(),
            root: path.to_owned(),
            plugin: false,
        }
    }

    fn held(paths: &[&str]) -> Given {
        let folders: Vec<_> = paths.iter().map(|path| folder(path)).collect();
        idle().and(event("loopd.guard_folders", json!({ "folders": folders })))
    }

    #[test]
    fn the_log_remembers_each_folder_once() {
        let hold = |paths: &[&str]| paths.iter().map(|path| folder(path)).collect();
        let state = held(&["/work"]).state();
        assert!(super::hold(&state, hold(&["/work"])).steps.is_empty());
        let decision = super::hold(&state, hold(&["/work", "/other"]));
        let [Step::Store(Durable::GuardFolders(stored))] = decision.steps.as_slice() else {
            panic!("{:?}", decision.steps);
        };
        assert_eq!(stored.folders, [folder("/other")]);
    }

    #[test]
    fn people_are_told_of_the_guards_that_a_move_leaves() {
        check(
            &held(&["/work", "/work/deep"]),
            || Command::SetWorkingDirectory("/work/other".to_owned()),
            r#"
            answer yes
            store session.warning warningType=guards_kept message="The session works in /work/other now. The guards of /work/deep stay in f…"
            store loopd.configured options={"model":"gpt","workingDirectory":"/work/other"} workingDirectory=/work/other
            store session.context_changed cwd=/work/other
            now idle
            "#,
        );
    }

    #[test]
    fn a_session_with_the_guards_of_too_many_folders_stays_where_it_is() {
        let paths: Vec<String> = (0..MOST_FOLDERS).map(|at| format!("/{at}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let state = held(&paths).state();
        assert!(check_move(&state, Some(&state.cwd)).is_ok());
        assert!(check_move(&state, None).is_ok());
        assert!(check_move(&state, Some(&"/other".to_owned())).is_err());
        let fewer = held(paths.get(1..).unwrap_or_default()).state();
        assert!(check_move(&fewer, Some(&"/other".to_owned())).is_ok());
    }
}
