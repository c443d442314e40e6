//! The error codes of the wire, in one table.

/// The token of a connection is missing or wrong.
pub const AUTHENTICATION_FAILED: i32 = -32002;
/// A queue is full; the same call may work later.
pub const OVERLOADED: i32 = -32001;
/// The daemon's home was emptied, deleted or moved while the request was running. Whether the
/// request was carried out does not matter, because everything it could have changed is gone.
pub const HOME_EMPTIED: i32 = -32003;
/// What a session or the daemon keeps on disk could not be written or read. The message names the
/// place and the way out; the same call may work later.
pub const STORAGE: i32 = -32004;
/// The daemon takes no messages from this process. It says so without having read a request, so the
/// error has no id.
pub const CONNECTION_REFUSED: i32 = -32005;
/// A limit of the session or of the run ended what was asked for; more can be granted.
pub const LIMIT_REACHED: i32 = -32006;
pub const PARSE_ERROR: i32 = -32700;
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;
/// The request failed; the message says why.
pub const FAILED: i32 = -32603;
pub const REQUEST_CANCELLED: i32 = -32800;
