//! The hooks of agents' definitions: which of them run, and which guards an agent has to have.

use std::path::PathBuf;

use super::{ProjectTrust, Roster, RosterInput, is_same};
use crate::discovery::Problem;
use crate::discovery::agents::{AgentDefinition, AgentOrigin};
use crate::discovery::hooks::{
    GuardRecord, HookDefinition, HookOrigin, HookSource, LocalHttp, of_agent,
};
use crate::trust::{ACCEPT, AgentGuard, shell_word};

/// The hooks of one agent.
#[derive(Debug, Clone)]
pub struct AgentHooks {
    pub agent: String,
    pub hooks: Vec<HookDefinition>,
}

impl Roster {
    /// Returns the hooks of an agent, those that stand in for guards that are missing included.
    pub fn hooks_of(&self, name: &str) -> Vec<HookDefinition> {
        let Some(agent) = self.get(name) else {
            return Vec::new();
        };
        let mut hooks = self.hooks.iter();
        let hooks = hooks.find(|it| it.agent == agent.name);
        hooks.map(|it| it.hooks.clone()).unwrap_or_default()
    }

    /// Returns the hooks of all agents.
    pub fn hooks(&self) -> &[AgentHooks] {
        &self.hooks
    }

    /// Returns what is wrong with the hooks of agents; the other problems have it, too.
    pub fn hook_problems(&self) -> &[Problem] {
        &self.hook_problems
    }

    /// Returns the guards that the user's own agents have.
    pub fn own_guards(&self) -> &[GuardRecord] {
        &self.own_guards
    }

    /// Reads the hooks of all agents that were found.
    pub(super) fn read_hooks(&mut self, input: &RosterInput) {
        let cwd = input.projects.first();
        let cwd = cwd.map(|cwd| cwd.canonicalize().unwrap_or_else(|_| cwd.clone()));
        let (root, wanted) = match (&input.trust, &cwd) {
            (ProjectTrust::Content { root, content }, Some(cwd)) => {
                (Some(root), content.agent_guards(cwd, root))
            }
            _ => (input.projects.last(), Vec::new()),
        };
        let root = root.map(|root| root.canonicalize().unwrap_or_else(|_| root.clone()));
        let root: PathBuf = root.unwrap_or_default();
        for agent in &self.agents {
            let has_to_have = wanted.iter().filter(|it| it.is_for(agent));
            let has_to_have: Vec<&AgentGuard> = has_to_have.collect();
            let had = input.own_guards.iter().filter(|it| was_of(it, agent));
            let had: Vec<&GuardRecord> = had.collect();
            if agent.hooks.is_none() && has_to_have.is_empty() && had.is_empty() {
                continue;
            }
            let mut own = of_agent(agent, LocalHttp::Refused, &root);
            self.hook_problems.append(&mut own.problems);
            let mut hooks = own.hooks;
            if let (ProjectTrust::Content { content, .. }, AgentOrigin::Project) =
                (&input.trust, agent.origin)
            {
                let before = hooks.len();
                hooks.retain(|hook| {
                    let folder = hook.source.folder.as_ref();
                    hook.unusable.is_some()
                        || folder.is_none_or(|folder| content.covers(folder, &hook.hash))
                });
                if hooks.len() < before {
                    self.hook_problems.extend(changed(agent));
                }
            }
            for guard in has_to_have {
                if hooks.iter().any(|hook| hook.hash == guard.record.hash) {
                    continue;
                }
                self.hook_problems.push(guard.missed());
                let source = HookSource::of_folder(HookOrigin::Project, &guard.folder);
                hooks.extend(guard.record.stand_in(source));
            }
            if agent.origin == AgentOrigin::User {
                let own = hooks.iter().filter(|hook| !hook.missing);
                let own = own.filter_map(|hook| GuardRecord::of_own_agent(hook, &agent.name));
                self.own_guards.extend(own);
            }
            for guard in had {
                if hooks.iter().any(|hook| hook.hash == guard.hash) {
                    continue;
                }
                self.hook_problems.push(missed_by_own(guard, agent));
                hooks.extend(guard.stand_in(HookSource::own(HookOrigin::User)));
            }
            if !hooks.is_empty() {
                self.hooks.push(AgentHooks {
                    agent: agent.name.clone(),
                    hooks,
                });
            }
        }
        self.problems.extend(self.hook_problems.iter().cloned());
    }
}

/// Whether an agent of the user had this guard. Another definition of that name counts if the one that had
/// the guard is gone.
fn was_of(guard: &GuardRecord, agent: &AgentDefinition) -> bool {
    let name = guard.agent.as_deref().unwrap_or_default();
    let is_own = match agent.origin {
        AgentOrigin::User => true,
        AgentOrigin::Client => false,
        AgentOrigin::Project | AgentOrigin::Plugin | AgentOrigin::BuiltIn => !guard.file.exists(),
    };
    is_own && is_same(name, &agent.name)
}

/// Says that a guard of the user's own agent is missing.
fn missed_by_own(guard: &GuardRecord, agent: &AgentDefinition) -> Problem {
    let what = format!(
        "your guard {} of the agent `{}` was changed, moved, deleted or turned off since loopd last used it; \
         a person is asked about what it guards, until you say that this is how you want it: {ACCEPT}",
        guard.shown(),
        agent.name
    );
    Problem {
        line: Some(guard.line),
        ..Problem::new(&guard.file, what)
    }
}

fn changed(agent: &AgentDefinition) -> Option<Problem> {
    let what = format!(
        "hooks of the agent `{}` do not run: they, or files that they name, changed since the folder was \
         trusted; to look and to trust: loop trust",
        agent.name
    );
    Some(Problem::new(agent.path.as_deref()?, what))
}

impl AgentGuard {
    /// Whether an agent has to have this guard. A client defines its agents itself.
    fn is_for(&self, agent: &AgentDefinition) -> bool {
        agent.origin != AgentOrigin::Client && is_same(&self.agent, &agent.name)
    }

    /// Says that the guard is missing.
    fn missed(&self) -> Problem {
        let GuardRecord { file, line, .. } = &self.record;
        let what = format!(
            "the guard {} of the agent `{}` that this folder is trusted with was changed, moved, deleted \
             or turned off; what it guards is denied to the agent; to look and to trust the folder as it \
             is now: loop trust {}",
            self.record.shown(),
            self.agent,
            shell_word(&self.folder)
        );
        Problem {
            line: Some(*line),
            ..Problem::new(file, what)
        }
    }
}
