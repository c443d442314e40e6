//! Lists the files that people left for agents and that cannot be used.

use std::collections::BTreeMap;

use loopd_proto::params::discovery::{FileProblem, Problems, ProblemsParams};
use loopd_proto::session::SessionOptions;

use super::agent::model_of;
use super::builtin;
use super::discover::{host, look, mcp_places, places, shown};
use super::file_commands::{self, CommandPlaces};
use super::model::route_of_launch;
use crate::discovery::project_folders::project_folders;
use crate::discovery::skills::{self, SkillPlaces};
use crate::discovery::{Problem, instructions};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::subagent::definitions::{self, ProjectTrust, RosterInput};

pub(super) async fn list(context: Context, params: ProblemsParams) -> Result<Problems, RpcError> {
    let named = params.working_directory.map(|path| vec![path]);
    let named = places(&context, "workingDirectory", named.as_deref())?;
    let launch = context.connection.launch();
    let cwd = named
        .into_iter()
        .next()
        .unwrap_or_else(|| launch.cwd.clone());
    let host = host(&context);
    let project = definitions::project_root(&cwd);
    let store = context.app.services.store.as_ref();
    let trust = ProjectTrust::read(store, &cwd).await?;
    let options = SessionOptions {
        enable_config_discovery: Some(true),
        ..SessionOptions::default()
    };
    let mut agents = RosterInput::of_session(&options, &cwd, host.clone(), trust);
    agents.plugins.extend(launch.plugins());
    let hooks = super::hook_list::load(&context, &cwd).await;
    let servers = mcp_places(&context, Some(&cwd));
    let places = CommandPlaces {
        host: host.clone(),
        cwd: cwd.clone(),
    };
    let commands = file_commands::load(&context, places, &builtin::names()).await?;
    let named_skills = skills::named_by_environment(launch.env());
    let catalog = context.app.services.catalog.clone();
    let (mut found, roster) = look(move || {
        let mut roster = definitions::load(&agents);
        roster.check_tools(&catalog.names());
        let mut problems = roster.problems().to_vec();
        let folders = project_folders(&cwd, &project);
        let places = instructions::session_places(Some(&host), &project, &folders, &[]);
        problems.extend(instructions::discover(&places).problems);
        let places = SkillPlaces {
            host: Some(host.clone()),
            projects: skills::project_places(&cwd, &project),
            plugins: agents.plugins.clone(),
            named: named_skills,
        };
        problems.extend(skills::discover(&places.folders()).problems().cloned());
        (problems, roster)
    })
    .await?;
    found.extend(hooks.notices().cloned());
    let store = context.app.services.store.as_ref();
    let servers = crate::trust::load_servers(store, servers, &BTreeMap::new()).await;
    found.extend(servers.problems);
    found.extend(commands.problems);
    let route = route_of_launch(&context);
    for agent in roster.custom() {
        if let (Err(why), Some(path)) = (model_of(agent, &route).await, &agent.path) {
            found.push(Problem::new(path, why));
        }
    }
    Ok(Problems {
        problems: found.iter().map(describe).collect(),
    })
}

pub(super) fn describe(problem: &Problem) -> FileProblem {
    FileProblem {
        file: shown(&problem.file),
        line: problem.line,
        message: problem.what.clone(),
    }
}
