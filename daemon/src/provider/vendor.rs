//! The vendors: one folder each, with how a request is written and how a reply is read.

pub mod anthropic;
pub mod openai_chat;
pub mod openai_responses;
