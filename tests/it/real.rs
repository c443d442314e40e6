//! Tests with real processes: the built `loopd`, real pipes and sockets, signals. They run in their
//! own group and need `cargo build -p loopd` first.

mod agents;
mod client_count;
mod compactions;
mod control_socket;
mod detached;
mod durability;
mod emptied_home;
mod full_disk;
mod hooks;
mod interrupted;
mod mcp_servers;
mod memory;
mod overwritten;
mod private_home;
mod process;
mod process_ownership;
mod provider_waits;
mod relays;
mod secret_environment;
mod starts;
mod terminals;
mod waits;
