//! What a sub-agent has from its parent and what therefore nobody changes in its own session.

use loopd_proto::id::SessionId;
use loopd_proto::session::{Mode, SessionOptions};

use crate::command::{DecideEnv, Refusal};
use crate::policy::planning::Planning;
use crate::state::State;

/// Refuses a change in a sub-agent, where only what its parent has counts, also in one that rests: it
/// may work again, and must not have more than its parent then.
pub(in crate::decide) fn check(
    state: &State,
    what: &'static str,
    env: &DecideEnv<'_>,
) -> Result<(), Refusal> {
    if env.top.is_some() || state.subagent.is_some() {
        return Err(refusal(state, what, env));
    }
    Ok(())
}

/// Refuses a message that wants a sub-agent to work in another mode than its parent lets it.
pub(in crate::decide) fn keeps_mode(
    state: &State,
    wanted: Mode,
    env: &DecideEnv<'_>,
) -> Result<(), Refusal> {
    let now = match env.planning(state) {
        Planning::Parent => Mode::Plan,
        Planning::No | Planning::Mode | Planning::Agent => state.mode,
    };
    if wanted == now {
        return Ok(());
    }
    check(state, "mode", env)
}

/// Refuses other tools than those that the sub-agent was started with.
pub(in crate::decide) fn keeps_tools(
    state: &State,
    wanted: &SessionOptions,
    env: &DecideEnv<'_>,
) -> Result<(), Refusal> {
    let own = &state.options;
    let differs =
        |wanted: &Option<Vec<String>>, own: &Option<Vec<String>>| wanted.is_some() && wanted != own;
    let precedence = &wanted.tool_filter_precedence;
    let changes = differs(&wanted.available_tools, &own.available_tools)
        || differs(&wanted.excluded_tools, &own.excluded_tools)
        || (precedence.is_some() && *precedence != own.tool_filter_precedence);
    if state.subagent.is_some() && changes {
        return Err(refusal(state, "tools", env));
    }
    Ok(())
}

fn refusal(state: &State, what: &'static str, env: &DecideEnv<'_>) -> Refusal {
    let parent = state.subagent.as_ref().map(|own| &own.parent);
    let session: &SessionId = env.top.or(parent).unwrap_or(&state.id);
    Refusal::IsSubagent {
        what,
        session: session.clone(),
    }
}
