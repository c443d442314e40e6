//! Runs the hooks of a file once, with made-up payloads.

use loopd_proto::params::hook_list::{HookTestParams, HookTested, TriedHook};

use super::discover::places;
use super::discovery_problems::describe;
use crate::discovery::hooks::{HookKind, LOCAL_HTTP_VARIABLE, LocalHttp, load_file};
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::hook::try_out;

/// The most hooks of a file that are run.
const MOST_RUNS: usize = 32;

pub(super) async fn test(context: Context, params: HookTestParams) -> Result<HookTested, RpcError> {
    let wrong = |what: &str, why: String| RpcError::InvalidParams(format!("{what}: {why}"));
    let (kind, _) = HookKind::read(&params.event).map_err(|why| wrong("event", why))?;
    let named = params.cwd.map(|path| vec![path]);
    let cwd = places(&context, "cwd", named.as_deref())?
        .into_iter()
        .next();
    let launch = context.connection.launch();
    let cwd = cwd.unwrap_or_else(|| launch.cwd.clone());
    let file = cwd.join(&params.file);
    let local_http = match launch.variable(LOCAL_HTTP_VARIABLE) {
        Some("1") => LocalHttp::Allowed,
        Some(_) | None => LocalHttp::Refused,
    };
    let read = tokio::task::spawn_blocking(move || load_file(&file, local_http));
    let found = read
        .await
        .map_err(|error| wrong("file", error.to_string()))?;
    let mut tested = HookTested {
        hooks: Vec::new(),
        problems: found.problems.iter().map(describe).collect(),
    };
    let wanted = found.hooks.into_iter().filter(|hook| hook.kind == kind);
    for hook in wanted.take(MOST_RUNS) {
        let (line, command) = (hook.line, hook.action.to_string());
        let trial = try_out(&context.app.services, &launch, hook, &cwd).await;
        tested.hooks.push(TriedHook {
            line,
            command,
            payload: trial.payload,
            output: trial.output,
            error: trial.error,
            effect: trial.effect,
            notices: trial.notices,
            milliseconds: u64::try_from(trial.time.as_millis()).unwrap_or(u64::MAX),
        });
    }
    Ok(tested)
}
