//! Ways in: the process's own pipes, TCP on loopback, a socket of this user's. Each hands a stream
//! and what is known about its launch to the app; nothing here knows JSON.

pub mod local_socket;
pub mod stdio;
pub mod tcp;
