//! How clients reach the daemon: the relay that an SDK starts, transports, connections, and
//! JSON-RPC with one function per method.

pub mod background;
mod client_link;
pub mod connection;
pub mod relay;
pub mod rpc;
pub mod transport;
