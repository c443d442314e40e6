//! Finds the hooks of files when a session begins, goes on, or gets a prompt.

use std::path::Path;

use loopd_proto::event::hook::{GuardFolder, VouchedFolder};

use crate::discovery::hooks::HookPlaces;
use crate::discovery::settings_rules::RuleSearch;
use crate::hook::{HookLookup, HooksFound};
use crate::session::actor::Actor;
use crate::session::effects::Reporter;
use crate::trust;
use loopd_kernel::command::Command;

/// The type of warnings about files of hooks.
const FILE_WARNING: &str = "hook_file";

impl Actor {
    /// Returns a lookup of the hooks in files; `None` if there are none. A sub-agent has the hooks of
    /// its parents.
    pub(in crate::session) fn hook_lookup(&self) -> Option<HookLookup> {
        if self.subagents.is_child() {
            return None;
        }
        let launch = self.clients.launch()?;
        let options = &self.state.options;
        let cwd = Path::new(&self.state.cwd);
        let (env, home) = (launch.env(), &self.services.home);
        let root = || trust::project_root(cwd);
        let places = HookPlaces::of_session(options, env, home, cwd, launch.plugins(), root)
            .vouching(self.vouched_hooks(), env, root);
        let folders = self.folders_in_force();
        let places = places.holding(&folders, options);
        let cell = self.hooks.files.clone();
        let rules = self.rule_places(&places);
        // A session that begins also looks for guards that were there once.
        let discovers = options.wants_file_hooks() || rules.is_some();
        let may_lack = (!self.hooks.begun && discovers)
            || !places.held.is_empty()
            || !places.vouched.is_empty();
        let found = rules.as_ref().and_then(RuleSearch::find);
        let has_rules = found.is_some() || cell.rules().is_some();
        (places.has_files() || !cell.is_empty() || may_lack || has_rules).then(|| HookLookup {
            cell,
            store: self.services.store.clone(),
            places,
            rules,
            known: folders,
        })
    }

    /// Returns the folders of hooks that apps named, here or in a session above.
    pub(in crate::session) fn vouched_hooks(&self) -> Vec<VouchedFolder> {
        let mut vouched = self.state.vouched_hooks.clone();
        let above = self.hooks.above.vouched.iter();
        let above = above.filter(|folder| !self.state.vouched_hooks.contains(folder));
        vouched.extend(above.cloned());
        vouched
    }

    /// Returns the folders whose guards are in force, here or in a session above.
    fn folders_in_force(&self) -> Vec<GuardFolder> {
        let mut folders = self.state.guard_folders.clone();
        let above = self.hooks.above.folders.iter();
        let above = above.filter(|folder| !self.state.guard_folders.contains(folder));
        folders.extend(above.cloned());
        folders
    }

    /// Returns where permission rules are. They count where files are discovered, also if the hooks in
    /// files do not.
    fn rule_places(&self, places: &HookPlaces) -> Option<RuleSearch> {
        let options = &self.state.options;
        let hooks = options.wants_file_hooks();
        let cwd = Path::new(&self.state.cwd);
        let env = self.clients.launch()?.env();
        let search = |places: HookPlaces, tells_unreadable: bool| RuleSearch {
            places,
            env: env.clone(),
            cwd: cwd.to_owned(),
            tells_unreadable,
        };
        if hooks {
            return Some(search(places.clone(), false));
        }
        if options.enable_config_discovery != Some(true) {
            return None;
        }
        let places = HookPlaces::of(env, &self.services.home, cwd, &trust::project_root(cwd));
        let places = places.holding_rules(&self.folders_in_force());
        Some(search(places, true))
    }

    /// Looks for hooks when a client attaches before a prompt has looked: nothing that is at work, and
    /// no sub-agent that the client starts or lets go on, may run without them.
    pub(in crate::session) async fn look_for_hooks(&mut self) {
        if self.hooks.begun {
            return;
        }
        if let Some(agent_hooks) = self.selected_agent_hooks() {
            if let Some(lookup) = self.roster_lookup() {
                for warning in lookup.warnings().await {
                    self.report(warning).await;
                }
            }
            agent_hooks.take();
        }
        let Some(lookup) = self.hook_lookup() else {
            return;
        };
        let found = if self.state.is_busy() {
            lookup.run().await
        } else {
            // The next prompt tells what is wrong with files.
            lookup.load().await
        };
        for command in commands(found) {
            self.report(command).await;
        }
    }
}

/// Reports what a lookup came to to the mailbox of the session.
pub(in crate::session) async fn report_found(found: HooksFound, reporter: &Reporter) {
    for command in commands(found) {
        reporter.report(command).await;
    }
}

fn commands(found: HooksFound) -> impl Iterator<Item = Command> {
    let HooksFound { notices, folders } = found;
    let held = (!folders.is_empty()).then(|| Command::HoldGuardFolders(folders));
    let notices = notices.into_iter();
    let notices = notices.map(|notice| Command::file_warning(FILE_WARNING, notice));
    held.into_iter().chain(notices)
}
