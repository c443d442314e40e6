use std::fs;

use tempfile::TempDir;

use super::*;
use SkillSource::{Custom, Inherited, PersonalAgents, PersonalCopilot, Plugin, Project};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\nSteps.\n")
}

fn places(root: &TempDir) -> SkillPlaces {
    let root = root.path();
    SkillPlaces {
        host: Some(Host {
            home: root.join("home"),
            user: Some(root.join("user")),
            copilot: Some(root.join("user/.copilot")),
        }),
        projects: project_places(&root.join("app/web"), &root.join("app")),
        plugins: vec![root.join("plugin")],
        named: vec![root.join("named")],
    }
}

/// The skills that are found: their names, sources and the beginnings of their descriptions.
fn found(root: &TempDir) -> (Vec<(String, SkillSource)>, Vec<String>) {
    let found = discover(&places(root).folders());
    let problems = found.problems().map(ToString::to_string).collect();
    let skills = found.skills.into_iter();
    let shown = skills.map(|skill| (skill.name, skill.source));
    (shown.collect(), problems)
}

#[test]
fn skills_are_found_in_the_order_of_their_folders() {
    let root = TempDir::new().unwrap();
    let folders = [
        "app/web/.github/skills",
        "app/web/.agents/skills",
        "app/web/.claude/skills",
        "app/web/.loopd/skills",
        "app/.github/skills",
        "user/.copilot/skills",
        "home/skills",
        "user/.agents/skills",
        "user/.claude/skills",
        "plugin/skills",
        "named",
    ];
    for (index, folder) in folders.iter().enumerate() {
        let name = format!("s{index}");
        write(
            root.path(),
            &format!("{folder}/{name}/SKILL.md"),
            &skill(&name),
        );
        // The first folder has it, so that it counts there only.
        write(
            root.path(),
            &format!("{folder}/same/SKILL.md"),
            &skill("same"),
        );
    }
    let (skills, problems) = found(&root);
    assert_eq!(problems, [""; 0]);
    let expected = [
        ("s0", Project),
        ("same", Project),
        ("s1", Project),
        ("s2", Project),
        ("s3", Project),
        ("s4", Inherited),
        ("s5", PersonalCopilot),
        ("s6", PersonalCopilot),
        ("s7", PersonalAgents),
        ("s8", PersonalAgents),
        ("s9", Plugin),
        ("s10", Custom),
    ];
    let expected = expected.map(|(name, source)| (name.to_owned(), source));
    assert_eq!(skills, expected);
}

#[test]
fn what_was_most_likely_meant_as_a_skill_is_reported() {
    let root = TempDir::new().unwrap();
    let folder = "app/web/.github/skills";
    write(
        root.path(),
        &format!("{folder}/good/SKILL.md"),
        &skill("good"),
    );
    write(
        root.path(),
        &format!("{folder}/good/nested/SKILL.md"),
        &skill("nested"),
    );
    write(
        root.path(),
        &format!("{folder}/lower/skill.md"),
        &skill("lower"),
    );
    write(
        root.path(),
        &format!("{folder}/other/Skill.md"),
        &skill("other"),
    );
    write(
        root.path(),
        &format!("{folder}/group/deep/SKILL.md"),
        &skill("deep"),
    );
    write(root.path(), &format!("{folder}/flat.md"), &skill("flat"));
    write(root.path(), &format!("{folder}/README.md"), "about");
    write(root.path(), &format!("{folder}/empty/notes.txt"), "x");
    write(
        root.path(),
        &format!("{folder}/twice/SKILL.md"),
        &skill("good"),
    );
    let (skills, problems) = found(&root);
    let names: Vec<_> = skills.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["good", "lower"]);
    let expected = [
        "flat.md: is not a skill: a skill is a folder",
        "group: is not a skill: skills lie directly",
        "other: is not a skill: its file has to be called SKILL.md",
        "twice/SKILL.md: is not used: ",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.contains(expected), "{problem}");
    }
}

#[cfg(unix)]
#[test]
fn links_lead_out_of_the_users_own_folders_only() {
    use std::os::unix::fs::symlink;
    let root = TempDir::new().unwrap();
    write(root.path(), "elsewhere/SKILL.md", &skill("elsewhere"));
    for folder in ["app/web/.github/skills", "user/.agents/skills", "named"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
        symlink(
            root.path().join("elsewhere"),
            root.path().join(folder).join("link"),
        )
        .unwrap();
    }
    let (skills, problems) = found(&root);
    assert_eq!(
        skills,
        [("elsewhere".to_owned(), SkillSource::PersonalAgents)]
    );
    let out = problems
        .iter()
        .filter(|it| it.contains("leads out of its project"));
    assert_eq!(out.count(), 1, "{problems:#?}");
}

#[test]
fn the_environment_names_folders_with_commas() {
    let env = |value: &str| {
        let env = [("HOME", "/u"), ("COPILOT_SKILLS_DIRS", value)];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        named_by_environment(&BTreeMap::from(env))
    };
    assert_eq!(env(" /a ,, ~/b,c"), ["/a", "/u/b", "c"].map(PathBuf::from));
    assert_eq!(env(""), [""; 0].map(PathBuf::from));
}
