//! Our own agents: Markdown files in the binary, read as those on disk are.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use crate::discovery::agents::{AgentDefinition, AgentOrigin, parse};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("builtin/", $name)))),*]
    };
}

/// The files, in the order in which models are told of them.
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
        // A test reads them all: what is wrong here never leaves the workshop.
        let told = agent.inspect_err(|problem| tracing::error!(%problem, "a built-in agent"));
        told.ok().map(Arc::new)
    });
    usable.collect()
});

/// Our agents.
pub(super) fn all() -> &'static [Arc<AgentDefinition>] {
    &ALL
}
