//! Gives every command a name of its own.

use super::definition::CommandDefinition;
use crate::discovery::Problem;

/// Names all commands in their order. `taken` are names that no file can have. A command whose name
/// belongs to another one is called `project:name` or `user:name`; the problem says so. Aliases that
/// belong to another command are left out.
pub fn name_all(
    commands: Vec<CommandDefinition>,
    taken: &[&str],
) -> (Vec<CommandDefinition>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut named: Vec<CommandDefinition> = Vec::new();
    for mut command in commands {
        let other = name_of(&named, taken, &command.name);
        if let Some(other) = other {
            let longer = format!("{}:{}", command.origin.word(), command.name);
            let what = match name_of(&named, taken, &longer) {
                None => format!(
                    "/{} is {other}, so this command is called /{longer}",
                    command.name
                ),
                Some(_) => format!(
                    "/{} is {other}, and /{longer} is taken, too; this command is left out until it has \
                     another name",
                    command.name
                ),
            };
            let is_left_out = name_of(&named, taken, &longer).is_some();
            problems.push(Problem::new(&command.path, what));
            if is_left_out {
                continue;
            }
            command.name = longer;
            command.aliases.clear();
        }
        named.push(command);
    }
    let own_names: Vec<String> = named.iter().map(|command| command.name.clone()).collect();
    let mut aliases: Vec<String> = Vec::new();
    for command in &mut named {
        command.aliases.retain(|alias| {
            let same = |name: &str| name.eq_ignore_ascii_case(alias);
            let is_taken = taken.iter().any(|name| same(name))
                || own_names.iter().chain(&aliases).any(|name| same(name));
            if !is_taken {
                aliases.push(alias.clone());
            }
            !is_taken
        });
    }
    (named, problems)
}

/// Says whose name this is; `None` if it is free.
fn name_of(named: &[CommandDefinition], taken: &[&str], name: &str) -> Option<String> {
    if taken.iter().any(|taken| taken.eq_ignore_ascii_case(name)) {
        return Some("a command of the daemon or of a client".to_owned());
    }
    let mut named = named.iter();
    let other = named.find(|other| other.name.eq_ignore_ascii_case(name))?;
    Some(format!("the command of {}", other.path.display()))
}
