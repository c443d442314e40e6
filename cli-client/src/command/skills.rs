//! `loop skills`: the skills for sessions in a directory.

use std::path::Path;

use anyhow::bail;
use loopd_sdk::{Skill, SkillSource};

use super::hooks::below;
use crate::app::App;
use crate::outcome::Outcome;
use crate::terminal::{Style, sanitize};

pub(crate) async fn run(app: &App, directory: Option<&Path>) -> anyhow::Result<Outcome> {
    let directory = app.directory.join(directory.unwrap_or(Path::new("")));
    if !directory.is_dir() {
        bail!(
            "{} is no directory; give the directory whose skills you want to see",
            directory.display()
        );
    }
    let client = app.connect().await?;
    let listed = client
        .skills(Some(directory.to_string_lossy().into_owned()))
        .await;
    client.close().await;
    let listed = listed?;
    if app.options.json {
        let line = serde_json::to_string(&listed)? + "\n";
        app.terminal.print(&line)?;
        return Ok(Outcome::Done);
    }
    if listed.skills.is_empty() {
        app.terminal.notice("no skills");
    }
    for skill in &listed.skills {
        let text = described(skill, &directory);
        let text = if skill.enabled {
            text
        } else {
            app.terminal.styled(Style::Dim, &text)
        };
        app.terminal.print(&(text + "\n"))?;
    }
    for problem in listed.errors.iter().chain(&listed.warnings) {
        app.terminal.notice(&sanitize(problem));
    }
    Ok(Outcome::Done)
}

/// Describes a skill in two or three lines, because descriptions are too long for columns.
fn described(skill: &Skill, directory: &Path) -> String {
    let source = match skill.source {
        SkillSource::Project | SkillSource::Inherited => "of the project",
        SkillSource::PersonalCopilot | SkillSource::PersonalAgents => "yours",
        SkillSource::Plugin => "of a plugin",
        SkillSource::Custom => "of a named folder",
        SkillSource::Sdk => "of an app",
    };
    let path = skill.path.as_deref();
    let path = path.map(|path| below(path, directory)).unwrap_or_default();
    let command = skill
        .command_name
        .as_deref()
        .filter(|_| skill.user_invocable);
    let command = command.map(|command| format!("  /{command}"));
    let mut lines = vec![
        format!(
            "{}  {source}{}  {path}",
            skill.name,
            command.unwrap_or_default()
        ),
        format!("    {}", skill.description),
    ];
    if let Some(why) = &skill.unavailable {
        lines.push(format!("    not used: {why}"));
    } else if !skill.enabled {
        lines.push("    not used: it is disabled".to_owned());
    }
    sanitize(&lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_says_where_it_is_and_why_it_is_not_used() {
        let mut skill = Skill {
            name: "tidy".to_owned(),
            command_name: Some("tidy".to_owned()),
            description: "Tidies up.".to_owned(),
            source: SkillSource::Project,
            user_invocable: true,
            enabled: true,
            path: Some("/app/.github/skills/tidy/SKILL.md".to_owned()),
            project_path: None,
            plugin_name: None,
            argument_hint: None,
            unavailable: None,
        };
        let shown = |skill: &Skill| described(skill, Path::new("/app"));
        let expected = "tidy  of the project  /tidy  .github/skills/tidy/SKILL.md\n    Tidies up.";
        assert_eq!(shown(&skill), expected);
        skill.enabled = false;
        assert!(shown(&skill).ends_with("not used: it is disabled"));
        skill.unavailable = Some("no trust".to_owned());
        assert!(shown(&skill).ends_with("not used: no trust"));
    }
}
