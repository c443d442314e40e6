//! The Rust client of loopd. A skeleton so far: it names the protocol it will speak.

/// The version of the wire protocol this client speaks.
pub const PROTOCOL_VERSION: u32 = loopd_proto::PROTOCOL_VERSION;
