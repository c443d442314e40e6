//! The error codes of the wire, in one table.

/// The token of a connection is missing or wrong.
pub const AUTHENTICATION_FAILED: i32 = -32002;
/// A queue is full; the same call may work later.
pub const OVERLOADED: i32 = -32001;
pub const PARSE_ERROR: i32 = -32700;
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;
/// What was asked failed; the message says why.
pub const FAILED: i32 = -32603;
pub const REQUEST_CANCELLED: i32 = -32800;
