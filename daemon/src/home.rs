//! The home, the folder of the daemon's data. `loopd_proto::home_paths` says which folder that is.

pub mod watch;
