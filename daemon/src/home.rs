//! Where the daemon keeps things; which folder is the home is a rule of `loopd_proto::home_paths`.

pub mod watch;
