//! Skills on disk, and which of them are disabled.

use std::collections::BTreeSet;

use loopd_proto::params::discovery::{
    DisabledSkillsParams, Paths, Skill, SkillPath, Skills, SkillsParams,
};
use loopd_store::Store;
use serde_json::Value;

use super::discover::{host, look, places, shown};
use crate::discovery::skills::{self, SkillFolder};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;

/// The scope and the key under which the store keeps the names of disabled skills.
const SCOPE: &str = "skills";
const DISABLED: &str = "disabled";
/// How many skills may be named at once.
const MOST_NAMES: usize = 10_000;

fn folders(context: &Context, params: &SkillsParams) -> Result<Vec<SkillFolder>, RpcError> {
    let host = host(context);
    let projects = places(context, "projectPaths", params.project_paths.as_deref())?;
    let named = params.skill_directories.as_deref();
    let named = places(context, "skillDirectories", named)?;
    let host = (!params.exclude_host_skills).then_some(&host);
    Ok(skills::folders(host, &projects, &named))
}

pub(super) async fn discover(context: Context, params: SkillsParams) -> Result<Skills, RpcError> {
    let folders = folders(&context, &params)?;
    let disabled = disabled(context.app.services.store.as_ref()).await?;
    let found = look(move || skills::discover(&folders)).await?;
    let skills = found.items.into_iter().map(|skill| Skill {
        enabled: !disabled.contains(&skill.name),
        command_name: Some(skill.name.clone()),
        name: skill.name,
        description: skill.description,
        source: skill.source,
        user_invocable: skill.user_invocable,
        path: Some(shown(&skill.path)),
        project_path: skill.project.as_deref().map(shown),
        argument_hint: skill.argument_hint,
    });
    Ok(Skills {
        skills: skills.collect(),
        errors: found.problems.iter().map(ToString::to_string).collect(),
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
    let names = params.disabled_skills.into_iter().map(Value::String);
    let value = Value::Array(names.collect());
    let store = &context.app.services.store;
    store.put_fact(SCOPE, DISABLED, Some(value)).await?;
    Ok(())
}

async fn disabled(store: &dyn Store) -> Result<BTreeSet<String>, RpcError> {
    let facts = store.facts(SCOPE).await?;
    let names = facts.into_iter().find(|(key, _)| key == DISABLED);
    // The daemon stores a list of names here. Anything else counts as an empty list.
    Ok(names
        .and_then(|(_, value)| serde_json::from_value(value).ok())
        .unwrap_or_default())
}
