//! The arguments of `loop mcp`.

use clap::Subcommand;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum McpVerb {
    /// List the servers, where each comes from and whether it is used.
    List,
    /// Add a server to your own file.
    Add(McpAdd),
    /// Remove a server from your own file.
    Remove {
        /// Its name.
        name: String,
    },
    /// Start a server, list its tools, and end it; if it fails, say why and show what it wrote.
    Test {
        /// Its name.
        name: String,
    },
    /// Log in at a server on the network that wants it.
    ///
    /// The address to visit is printed and opened in a browser where that is possible. The login is then
    /// used by all sessions and apps of this home, and renewed by itself. Ctrl-C stops only the waiting:
    /// the login can be finished in the browser all the same.
    Login {
        /// Its name.
        name: String,
        /// Log in although there is a login already.
        #[arg(long)]
        again: bool,
        /// Do not open a browser.
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the login at a server.
    Logout {
        /// Its name.
        name: String,
    },
    /// Show what a server wrote beside the protocol in a session.
    Logs {
        /// Its name.
        name: String,
        /// The session, by the beginning of its id; without it, the last one here.
        #[arg(long)]
        session: Option<String>,
    },
}

/// A server for the user's own file.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct McpAdd {
    /// Its name.
    pub(crate) name: String,
    /// The address of a server on the network.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// A variable for a program, NAME=VALUE; can be given several times. `${NAME}` in the value is
    /// replaced by a variable of yours when the server starts.
    #[arg(long)]
    pub(crate) env: Vec<String>,
    /// A header for a server on the network, NAME: VALUE; can be given several times.
    #[arg(long)]
    pub(crate) header: Vec<String>,
    /// The program and its arguments, after `--`.
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}
