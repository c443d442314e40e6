//! The slash commands of files, as a session has them: found, named, and trusted or not.

use std::path::{Path, PathBuf};

use loopd_proto::params::command::{CommandInfo, CommandInput, CommandKind};

use super::discover::{host, look, shown};
use crate::discovery::commands::{self, CommandDefinition};
use crate::discovery::{Host, Problem};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use crate::trust::{TrustedContent, project_root, shell_word};

/// A command of a file, and why it does not run if it does not.
pub(super) struct FileCommand {
    pub(super) definition: CommandDefinition,
    pub(super) untrusted: Option<String>,
}

/// The commands of files, and what is wrong with files.
#[derive(Default)]
pub(super) struct FileCommands {
    pub(super) commands: Vec<FileCommand>,
    pub(super) problems: Vec<Problem>,
}

/// Where a session looks for commands.
pub(super) struct CommandPlaces {
    pub(super) host: Host,
    pub(super) cwd: PathBuf,
}

/// Returns the commands of a session. Files count only if the session discovers configuration. No file
/// has one of the names that are `taken`.
pub(super) async fn of_session(
    context: &Context,
    session: &SessionHandle,
    taken: &[&str],
) -> Result<FileCommands, RpcError> {
    let seen = session.view(|view| {
        let discovers = view.state.options.enable_config_discovery == Some(true);
        let user = view.launch.and_then(|launch| launch.variable("HOME"));
        discovers.then(|| (PathBuf::from(&view.state.cwd), user.map(PathBuf::from)))
    });
    let Some((cwd, user)) = seen.await? else {
        return Ok(FileCommands::default());
    };
    let mut host = host(context);
    host.user = user.or(host.user);
    load(context, CommandPlaces { host, cwd }, taken).await
}

/// Reads the commands of files, names them and looks up what is trusted.
pub(super) async fn load(
    context: &Context,
    places: CommandPlaces,
    taken: &[&str],
) -> Result<FileCommands, RpcError> {
    let found = look(move || {
        let mut projects = vec![places.cwd.clone(), project_root(&places.cwd)];
        // The root of a project is often the folder itself.
        projects.dedup_by_key(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
        commands::discover(&commands::folders(Some(&places.host), &projects))
    });
    let found = found.await?;
    let mut problems = found.problems;
    let (named, clashes) = commands::name_all(found.items, taken);
    problems.extend(clashes);
    let store = context.app.services.store.as_ref();
    let trusted = if named.iter().any(|it| it.needs_trust_of().is_some()) {
        TrustedContent::read(store).await?
    } else {
        TrustedContent::default()
    };
    let mut commands = Vec::new();
    for definition in named {
        let untrusted = untrusted(&definition, &trusted);
        if let Some(why) = &untrusted {
            problems.push(Problem::new(&definition.path, why.clone()));
        }
        commands.push(FileCommand {
            definition,
            untrusted,
        });
    }
    Ok(FileCommands { commands, problems })
}

/// Returns why a command does not run for want of trust.
fn untrusted(command: &CommandDefinition, trusted: &TrustedContent) -> Option<String> {
    let folder = command.needs_trust_of()?;
    if trusted.covers(folder, &command.hash) {
        return None;
    }
    let why = if trusted.knows(folder) {
        "it is new or changed since the folder was trusted"
    } else {
        "the folder is not trusted with it"
    };
    Some(format!(
        "/{} does not run: its text runs shell commands, and {why}; to look and to trust: loop trust {}",
        command.name,
        shell_word(folder)
    ))
}

impl FileCommands {
    /// Returns the command that answers to a name.
    pub(super) fn find(&self, name: &str) -> Option<&FileCommand> {
        let same = |other: &String| other.eq_ignore_ascii_case(name);
        let by_name = self.commands.iter().find(|it| same(&it.definition.name));
        let mut commands = self.commands.iter();
        by_name.or_else(|| commands.find(|it| it.definition.aliases.iter().any(same)))
    }
}

impl FileCommands {
    /// Returns why a file is not used that would have the command of this name. A file that is used may
    /// have problems, too, and its command another name.
    pub(super) fn problem_with(&self, name: &str) -> Option<&Problem> {
        let is_used = |problem: &Problem| {
            let mut used = self.commands.iter().map(|it| &it.definition.path);
            used.any(|path| *path == problem.file)
        };
        let mut problems = self.problems.iter();
        problems.find(|problem| would_be(&problem.file, name) && !is_used(problem))
    }
}

/// Returns whether a file would have the command of this name: its own name, after those of its folders
/// or not.
fn would_be(file: &Path, name: &str) -> bool {
    let own = file.file_name().unwrap_or_default().to_string_lossy();
    let own = own.strip_suffix(".md").unwrap_or(&own);
    let own = own.strip_suffix(".prompt").unwrap_or(own);
    let folders = file.parent().into_iter().flat_map(Path::components);
    let folders = folders.map(|part| part.as_os_str().to_string_lossy());
    let mut there: Vec<String> = folders.map(|it| one_word(&it)).collect();
    there.push(one_word(own));
    let mut typed: Vec<&str> = name.split([':', '/']).collect();
    if typed.len() > 1 && matches!(typed.first(), Some(&("project" | "user"))) {
        typed.remove(0);
    }
    let mut pairs = typed.iter().rev().zip(there.iter().rev());
    typed.len() <= there.len() && pairs.all(|(typed, there)| there.eq_ignore_ascii_case(typed))
}

/// Joins the words of a name with dashes.
fn one_word(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    words.join("-")
}

impl FileCommand {
    pub(super) fn describe(&self) -> CommandInfo {
        let definition = &self.definition;
        CommandInfo {
            name: definition.name.clone(),
            aliases: Some(definition.aliases.clone()).filter(|aliases| !aliases.is_empty()),
            description: definition.description.clone(),
            kind: CommandKind::Skill,
            input: input(definition),
            allow_during_agent_execution: true,
            source: Some(definition.origin.word().to_owned()),
            path: Some(shown(&definition.path)),
            unavailable: self.untrusted.clone(),
        }
    }
}

/// Returns what people may write after the name of a command.
fn input(command: &CommandDefinition) -> Option<CommandInput> {
    let wanted = command.template.wanted();
    let inputs = wanted.inputs.iter();
    let named: Vec<String> = inputs.map(|input| format!("<{}>", input.name)).collect();
    let hint = match &command.argument_hint {
        Some(hint) => hint.clone(),
        None if !named.is_empty() => named.join(" "),
        None if wanted.is_any() => "[words]".to_owned(),
        None => return None,
    };
    Some(CommandInput {
        required: !named.is_empty() || hint.starts_with('<'),
        hint: hint.into(),
    })
}
