//! What a decision of the kernel knows beside the state of the session.

use super::SessionError;
use super::actor::Actor;
use super::subagents::as_child::ParentLink;
use crate::discovery::hooks::HookKind;
use loopd_kernel::command::{Command, DecideEnv, Decision};
use loopd_kernel::decide::decide;
use loopd_kernel::hook::HookNeeds;

impl Actor {
    pub(super) fn decide(&self, command: Command) -> Result<Decision, SessionError> {
        let clock = &self.services.clock;
        let mut ids = || clock.id();
        let home = self.services.home.to_string_lossy();
        let settings = self.hooks.files.rules();
        let mut env = DecideEnv {
            settings: settings.as_deref(),
            now: clock.now(),
            attended: self.is_attended(),
            bypass: self.clients.launch().is_some_and(|launch| launch.yolo),
            home: &home,
            tool_origin: &|name| {
                let tool = self.toolset().resolve(name);
                tool.map(|tool| tool.origin())
            },
            ends_turn: &|name| {
                let tool = self.toolset().resolve(name);
                tool.is_some_and(|tool| tool.ends_turn())
            },
            mcp_tool: &|name| self.toolset().mcp_tool(name),
            inherited: &|| {
                let subagent = self.state.subagent.as_ref();
                subagent.map(|_| self.effective_permissions().permissions)
            },
            can_switch_model: self.clients.can_switch_model(),
            planning: self.planning(),
            plan_file: &|| self.services.plan_file(&self.state.id),
            runs_command: &|name| self.clients.runs_command(name),
            top: self.subagents.parent().map(ParentLink::top),
            fallback_models: &self.services.config.fallback_models,
            provider_waits: self.services.config.waits.for_turns(),
            fleet_workers: self.services.config.agents.max_concurrent,
            fleet_todos: self.services.config.agents.max_fleet_todos,
            most_wakes: self.services.config.agents.max_wakes,
            makes_titles: self.services.config.titles.model.is_some(),
            hooks: HookNeeds {
                guard: &|call| self.has_hooks(HookKind::PreToolUse, Some(&call.name)),
                permission: &|call| self.has_hooks(HookKind::PermissionRequest, Some(&call.name)),
                prompts: &|| self.see_prompts(),
                stop: self.has_hooks(self.stop_kind(), None),
                most_stop_blocks: self.services.config.hooks.stop_blocks,
                answering: &|| self.answering_hooks(),
            },
            next_request: &|| self.request_facts(),
            ids: &mut ids,
        };
        Ok(decide(&self.state, command, &mut env)?)
    }
}
