//! `loop completions` and `loop man`: what shells and manual readers need, made from the arguments.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::app::App;
use crate::args::Args;
use crate::outcome::Outcome;

const NAME: &str = "loop";

pub(crate) fn complete(app: &App, shell: Shell) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), NAME, &mut script);
    app.terminal.print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}

/// Writes a page for the command and one for each subcommand.
pub(crate) fn write_manual(app: &App, directory: &Path) -> anyhow::Result<Outcome> {
    let directory = app.directory.join(directory);
    if !directory.is_dir() {
        bail!(
            "{} is no directory; make it first: mkdir -p {0}",
            directory.display()
        );
    }
    let mut command = Args::command();
    command.build();
    let mut pages = 0;
    write_page(&directory, &command, NAME, &mut pages)?;
    app.terminal.notice(&format!(
        "{pages} pages were written to {}; to read one: man {}",
        directory.display(),
        directory.join("loop.1").display()
    ));
    Ok(Outcome::Done)
}

fn write_page(
    directory: &Path,
    command: &clap::Command,
    name: &str,
    pages: &mut usize,
) -> anyhow::Result<()> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let path = directory.join(format!("{name}.1"));
    let written = std::fs::File::create(&path).and_then(|mut file| file.write_all(&text));
    written.with_context(|| format!("{} cannot be written", path.display()))?;
    *pages += 1;
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        let name = format!("{name}-{}", below.get_name());
        write_page(directory, below, &name, pages)?;
    }
    Ok(())
}
