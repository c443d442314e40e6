//! Does the work of a turn: makes messages ready, calls the model, runs tools.
//!
//! Called by the session's effects; gets everything as values and reports with a command. Decides
//! nothing and never touches the state.

pub mod argument_limit;
mod attachments;
pub mod instructions;
pub mod model_call;
pub mod prepare;
pub mod prompt;
pub mod route;
pub mod side_call;
mod skills;
mod strip_images;
pub mod tool_call;
