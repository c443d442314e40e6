//! Tests with real processes: the built `loopd`, real pipes and sockets, signals. They run in their
//! own group and need `cargo build -p loopd` first.

mod agents;
mod detached;
mod durability;
mod emptied_home;
mod interrupted;
mod memory;
mod process;
mod process_ownership;
mod relays;
mod secret_environment;
mod starts;
mod terminals;
mod waits;
