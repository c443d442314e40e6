//! The tools by which a model works with agents: `task` starts one, the others read, write, list and
//! stop them. The room `subagent` does it; `words` says it to the model.

mod list;
mod read;
mod start;
mod stop;
mod words;
mod write;

pub(super) use list::List;
pub(super) use read::Read;
pub(super) use start::Start;
pub(super) use stop::Stop;
pub(super) use write::Write;

/// The tool that starts agents; its description lists those there are.
pub const TASK: &str = "task";
