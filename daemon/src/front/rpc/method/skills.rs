//! Skills on disk, and which of them are disabled.

use std::path::PathBuf;

use loopd_proto::params::discovery::{
    DisabledSkillsParams, Paths, Skill, SkillPath, SkillSource, Skills, SkillsParams,
};
use loopd_proto::params::skill::{FolderSkills, FolderSkillsParams, SkillDisabledParams};

use super::discover::{host, look, places, shown};
use crate::approvals;
use crate::discovery::skills::{
    self, SkillFolder, SkillPlaces, is_same_skill, named_by_environment,
};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::skill::{SkillCell, SkillLookup, disabled};

/// How many skills may be named at once.
const MOST_NAMES: usize = 10_000;

fn folders(context: &Context, params: &SkillsParams) -> Result<Vec<SkillFolder>, RpcError> {
    let projects = places(context, "projectPaths", params.project_paths.as_deref())?;
    let named = params.skill_directories.as_deref();
    let named = places(context, "skillDirectories", named)?;
    let host = (!params.exclude_host_skills).then(|| host(context));
    let launch = context.connection.launch();
    let from_env = host.is_some().then(|| named_by_environment(launch.env()));
    let places = SkillPlaces {
        host,
        projects: projects
            .into_iter()
            .map(|project| (project, SkillSource::Project))
            .collect(),
        plugins: Vec::new(),
        named: named
            .into_iter()
            .chain(from_env.into_iter().flatten())
            .collect(),
    };
    Ok(places.folders())
}

pub(super) async fn discover(context: Context, params: SkillsParams) -> Result<Skills, RpcError> {
    let folders = folders(&context, &params)?;
    let disabled = disabled::disabled(context.app.services.store.as_ref()).await?;
    let found = look(move || skills::discover(&folders)).await?;
    let problems = found.problems().map(ToString::to_string).collect();
    let skills = found.skills.into_iter().map(|skill| {
        let enabled = !disabled.iter().any(|name| is_same_skill(name, &skill.name));
        let project = skill.project.as_deref().map(shown);
        Skill {
            project_path: project,
            ..skill.describe(enabled)
        }
    });
    Ok(Skills {
        skills: skills.collect(),
        errors: problems,
    })
}

pub(super) async fn paths(
    context: Context,
    params: SkillsParams,
) -> Result<Paths<SkillPath>, RpcError> {
    let folders = folders(&context, &params)?;
    let paths = folders.into_iter().map(|folder| SkillPath {
        path: shown(&folder.path),
        scope: folder.source,
        preferred_for_creation: folder.preferred_for_creation,
        project_path: folder.project.as_deref().map(shown),
    });
    Ok(Paths {
        paths: paths.collect(),
    })
}

pub(super) async fn set_disabled(
    context: Context,
    params: DisabledSkillsParams,
) -> Result<(), RpcError> {
    if params.disabled_skills.len() > MOST_NAMES {
        return Err(RpcError::InvalidParams(format!(
            "disabledSkills: at most {MOST_NAMES} skills can be named"
        )));
    }
    let store = context.app.services.store.as_ref();
    disabled::set_disabled(store, params.disabled_skills).await?;
    Ok(())
}

pub(super) async fn set_one_disabled(
    context: Context,
    params: SkillDisabledParams,
) -> Result<(), RpcError> {
    if params.name.trim().is_empty() {
        return Err(RpcError::InvalidParams(
            "name: the name of a skill is expected".to_owned(),
        ));
    }
    let store = context.app.services.store.as_ref();
    disabled::set_one_disabled(store, &params.name, params.disabled).await?;
    Ok(())
}

/// Lists the skills that a session in a folder would have.
pub(super) async fn of_folder(
    context: Context,
    params: FolderSkillsParams,
) -> Result<FolderSkills, RpcError> {
    let named = params.working_directory.map(|path| vec![path]);
    let named = places(&context, "workingDirectory", named.as_deref())?;
    let launch = context.connection.launch();
    let cwd = named.into_iter().next();
    let cwd = cwd.unwrap_or_else(|| launch.cwd.clone());
    let root = PathBuf::from(approvals::locate(&cwd).key);
    let lookup = SkillLookup {
        cell: SkillCell::default(),
        places: SkillPlaces {
            host: Some(host(&context)),
            projects: skills::project_places(&cwd, &root),
            plugins: launch.plugins(),
            named: named_by_environment(launch.env()),
        },
        providers: Vec::new(),
        cwd,
        store: context.app.services.store.clone(),
        switch: Box::new(|_| None),
    };
    let (skills, _) = lookup.run().await;
    Ok(FolderSkills {
        skills: skills.describe(),
        errors: skills.set().errors.clone(),
        warnings: skills.set().warnings.clone(),
    })
}
