//! The arguments of `loop context`. They have no comment of their own: it would take the place of the help.

#[derive(Debug, clap::Args)]
pub(crate) struct ContextOptions {
    /// The id of the session, or the beginning of it; without it the last session of this directory.
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// List what a summary has replaced.
    #[arg(long)]
    pub(crate) dropped: bool,
}
