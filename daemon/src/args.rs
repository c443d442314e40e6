//! The command line that the official SDKs and people use.

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use tracing::level_filters::LevelFilter;

/// The background daemon that owns AI agent sessions.
///
/// SDKs start it with `--headless` (or `--server`) and `--stdio` or `[--port N]`; `loopd serve` runs it
/// in the foreground for everybody on this machine's socket.
#[derive(Debug, Parser)]
#[command(name = "loopd", version, disable_help_subcommand = true)]
#[command(group = ArgGroup::new("program").multiple(true))]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Verb>,

    /// Serve a program instead of a person.
    #[arg(long, group = "program")]
    pub headless: bool,

    /// The same as --headless, as some SDKs say it.
    #[arg(long, group = "program")]
    pub server: bool,

    /// Speak on stdin and stdout.
    #[arg(long, requires = "program")]
    pub stdio: bool,

    /// Listen on this TCP port of the loopback interface; 0 or nothing takes any free one.
    #[arg(
        long,
        value_name = "PORT",
        requires = "program",
        conflicts_with = "stdio"
    )]
    pub port: Option<u16>,

    /// How much to write to stderr.
    #[arg(long, value_name = "LEVEL", default_value = "error")]
    pub log_level: LogLevel,

    /// The environment variable that holds the token for the Copilot API.
    #[arg(long, value_name = "NAME")]
    pub auth_token_env: Option<String>,

    /// Do not look for stored credentials; accepted for compatibility, none are ever looked for.
    #[arg(long)]
    pub no_auto_login: bool,

    /// Do not update; accepted for compatibility, the daemon never updates itself.
    #[arg(long)]
    pub no_auto_update: bool,

    /// End sessions that were idle for this many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub session_idle_timeout: Option<u64>,

    /// Accepted for compatibility; sessions are local.
    #[arg(long)]
    pub remote: bool,

    /// Allow every tool without asking, also writing to `.git` and other protected files.
    #[arg(long)]
    pub yolo: bool,

    /// Keep everything in this process instead of sharing a daemon.
    #[arg(long)]
    pub private: bool,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run the daemon in the foreground, on this user's socket.
    Serve {
        /// Exit after this many seconds without clients and work; never without this flag.
        #[arg(long, value_name = "SECONDS")]
        idle_timeout: Option<u64>,

        /// Keep idle shells and open questions for so many seconds after the last client left.
        #[arg(long, value_name = "SECONDS")]
        unattended_timeout: Option<u64>,

        /// Was started by a client: detach, report on stdout, leave when nobody needs it.
        #[arg(long, hide = true)]
        background: bool,

        /// The socket to serve instead of the home's own.
        #[arg(long, hide = true, value_name = "PATH")]
        socket: Option<std::path::PathBuf>,
    },
    /// Use an MCP server as the public conformance tool wants it.
    #[command(hide = true)]
    McpConformance {
        /// The address of the server.
        url: String,
    },
}

/// The log levels that the SDKs know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    None,
    Error,
    Warning,
    Info,
    Debug,
    All,
}

impl LogLevel {
    /// Returns the level as a filter for tracing.
    pub fn filter(self) -> LevelFilter {
        match self {
            Self::None => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warning => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
            Self::All => LevelFilter::TRACE,
        }
    }
}
