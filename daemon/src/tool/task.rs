//! The tools by which a model works with sub-agents: `task` starts one, the others read, message,
//! list and stop them. The module `subagent` does the work; `words` holds the texts for the model.

mod list;
mod read;
mod start;
mod stop;
mod words;
mod write;

pub(super) use list::List;
pub(super) use read::Read;
pub(super) use start::Start;
pub use start::result;
pub(super) use stop::Stop;
pub(super) use words::launched;
pub(super) use write::Write;

/// The name of the tool that starts sub-agents. Its description lists the agents that exist.
pub const TASK: &str = "task";
