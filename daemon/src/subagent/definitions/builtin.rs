//! The built-in agents: Markdown files in the binary, parsed as those on disk are.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::discovery::agents::{AgentDefinition, AgentOrigin, parse};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("builtin/", $name)))),*]
    };
}

/// The files, in the order in which the agents are listed to models.
pub(super) const FILES: &[(&str, &str)] = files![
    "explore.md",
    "task.md",
    "general-purpose.md",
    "rubber-duck.md",
    "code-review.md",
    "research.md",
    "rem-agent.md",
    "build.md",
    "plan.md",
];

static ALL: LazyLock<Vec<Arc<AgentDefinition>>> = LazyLock::new(|| {
    let parsed = FILES
        .iter()
        .map(|(file, text)| parse(Path::new(file), text, AgentOrigin::BuiltIn));
    let usable = parsed.filter_map(|agent| {
        // A test parses all files, so no release has an invalid one.
        let logged = agent.inspect_err(|problem| tracing::error!(%problem, "a built-in agent"));
        logged.ok().map(Arc::new)
    });
    usable.collect()
});

pub(super) fn all() -> &'static [Arc<AgentDefinition>] {
    &ALL
}
