//! How a session makes sub-agents, and how it is one: spawning, what is handed down, the tree.

pub(super) mod parent;
pub(super) mod roster_refresh;
pub(super) mod spawn;
pub mod tree;
