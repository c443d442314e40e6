//! How large the requests of a session are, and how much its model takes.

use std::sync::Arc;

use loopd_proto::event::fact::CountedTokens;

use super::actor::Actor;
use super::view::View;
use crate::services::Services;
use crate::turn::route::Route;
use loopd_kernel::command::RequestFacts;
use loopd_kernel::context_size::RequestSize;
use loopd_kernel::context_window::{ContextWindow, RoomRules};
use loopd_kernel::model::ToolSpec;
use loopd_kernel::state::State;

/// The size of the context that is assumed for a model that does not state one.
const USUAL_CONTEXT: u64 = 128_000;

/// The next request of a session: its size and its bounds.
#[derive(Debug, Clone)]
pub struct ContextAccount {
    pub model: String,
    pub window: ContextWindow,
    pub rules: RoomRules,
    pub size: RequestSize,
    /// What of the system message are instructions of users and projects.
    pub instructions: u64,
    /// The definitions of the tools, in tokens of the model like all other numbers.
    pub tools: Vec<(String, u64)>,
    /// What of them are those of MCP servers.
    pub mcp_tools: u64,
    /// How many tokens of the model one of our own is.
    pub factor: f64,
}

/// Returns what a model takes, as far as that is known without a request.
pub(super) fn window(route: &Route, model: &str) -> ContextWindow {
    let known = route.known_model(model);
    let limit = known.as_ref().and_then(|known| known.max_context_tokens);
    ContextWindow {
        limit: limit.unwrap_or(USUAL_CONTEXT),
        output: known.and_then(|known| known.max_output_tokens),
    }
}

/// Counts a request of the session with these tools.
fn counted(state: &State, tools: &[Arc<ToolSpec>], services: &Services) -> CountedTokens {
    let system = state.system.as_deref();
    CountedTokens {
        system: system.map_or(0, |system| services.tokens.of_text(system)),
        tools: tools.iter().map(|tool| services.tokens.of_tool(tool)).sum(),
        conversation: state.conversation_tokens(),
    }
}

impl Actor {
    /// Returns the size of the next request of the session and what its model takes.
    pub(super) fn request_facts(&self) -> RequestFacts {
        let (model, window) = self.model_window();
        let size = &self.state.context_size;
        let counted = match size.last_counted() {
            // The system message and the tools are those of the last request, nearly always.
            Some(last) => CountedTokens {
                conversation: self.state.conversation_tokens(),
                ..last
            },
            None => self.counted(&self.toolset().specs()),
        };
        RequestFacts {
            window,
            rules: RoomRules::of(self.state.options.infinite_sessions.as_ref()),
            size: size.of_request(&model, counted),
            factor: size.factor(&model),
            overflowed: self.state.has_overflowed(window.prompt_limit()),
            model,
        }
    }

    /// Returns the model in force and what it takes.
    fn model_window(&self) -> (String, ContextWindow) {
        let model = self.state.model_in_force().unwrap_or_default().to_owned();
        let known = self.window.as_ref().filter(|(of, _)| *of == model);
        let window = match known {
            Some((_, window)) => *window,
            None => window(&self.route(), &model),
        };
        (model, window)
    }

    /// Returns how many tokens the model in force takes.
    pub(super) fn context_limit(&self) -> u64 {
        self.model_window().1.limit
    }

    /// Counts the next request of the session.
    pub(super) fn counted(&self, tools: &[Arc<ToolSpec>]) -> CountedTokens {
        counted(&self.state, tools, &self.services)
    }
}

impl View<'_> {
    /// Returns the size of the next request; `None` if the session has no system message yet. `model`
    /// is another model than the session's, if one is named.
    pub fn account(&self, services: &Services, model: Option<&str>) -> Option<ContextAccount> {
        let system = self.state.system.as_deref()?;
        let own = self.state.model_in_force();
        let model = model.or(own).unwrap_or_default().to_owned();
        let tools = (self.tools)();
        let counted = counted(self.state, &tools, services);
        let size = self.state.context_size.of_request(&model, counted);
        let of_system = share(size.system, counted.system);
        let of_tools = share(size.tools, counted.tools);
        let instructions = loopd_kernel::context_parts::instructions(system);
        let tools = tools
            .iter()
            .map(|tool| (tool.name.clone(), of_tools(services.tokens.of_tool(tool))));
        let tools: Vec<(String, u64)> = tools.collect();
        let of_servers = (self.mcp_tools)();
        let of_servers = tools.iter().filter(|(name, _)| of_servers.contains(name));
        let mcp_tools = of_servers.map(|(_, tokens)| tokens).sum();
        Some(ContextAccount {
            window: window(&(self.route)(), &model),
            rules: RoomRules::of(self.state.options.infinite_sessions.as_ref()),
            instructions: instructions.map_or(0, |text| of_system(services.tokens.of_text(text))),
            tools,
            mcp_tools,
            factor: self.state.context_size.factor(&model),
            size,
            model,
        })
    }
}

/// Returns how much of a part is that share of it, of which so much was counted.
fn share(size: u64, counted: u64) -> impl Fn(u64) -> u64 {
    move |tokens| match counted {
        0 => 0,
        counted => tokens * size / counted,
    }
}
