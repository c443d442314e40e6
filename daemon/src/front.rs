//! How clients reach the daemon: transports, connections, and JSON-RPC with one function per
//! method.

pub mod background;
mod client_link;
pub mod connection;
pub mod rpc;
pub mod transport;
