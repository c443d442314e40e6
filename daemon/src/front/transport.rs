//! Where connections come from: the local socket of this user, and TCP on loopback. Each hands a
//! stream and its launch to the server; no transport knows JSON.

pub mod local_socket;
#[cfg(unix)]
mod peer;
pub mod tcp;
