//! The arguments of `loop daemon`.

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum DaemonVerb {
    /// Start it, unless it is running.
    Start,
    /// Stop it; sessions are kept.
    Stop {
        /// Stop it even if it is working.
        #[arg(long)]
        force: bool,
    },
    /// Show its status; fails if it is not running.
    Status,
    /// Print the end of its log.
    ///
    /// For example `loop daemon logs --lines 200`; to see what comes: `tail -F "$(loop daemon logs --path)"`.
    Logs {
        /// How many lines.
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 50)]
        lines: usize,
        /// Only print where the log is.
        #[arg(long)]
        path: bool,
    },
    /// Let the system start the daemon when you log in, and again if it ends.
    ///
    /// Writes a unit of systemd for this user (a launchd agent on a Mac) and starts it. Nobody needs this:
    /// the daemon starts by itself when a client wants it. It is for machines on which sessions wait
    /// for clients that come over the network, or should be there before the first client.
    ///
    /// It prints each file that it wrote and each command that it ran, and how to undo them:
    /// `loop daemon uninstall`. --print shows the file and changes nothing.
    Install {
        /// Only print the file that would be written.
        #[arg(long)]
        print: bool,
    },
    /// Undo `loop daemon install`. Sessions are kept.
    Uninstall,
}
