//! Our own method about the commands that the daemon runs as processes.

use loopd_proto::params::process::{Process, ProcessList};
use loopd_proto::params::server::NoParams;

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_exec::process::ProcessEntry;

pub(super) async fn list(context: Context, _: NoParams) -> Result<ProcessList, RpcError> {
    let entries = context.app.services.processes.list();
    Ok(ProcessList {
        processes: entries.into_iter().map(shown).collect(),
    })
}

fn shown(entry: ProcessEntry) -> Process {
    Process {
        id: entry.id,
        pid: entry.pid,
        class: entry.class,
        session_id: entry.session,
        command: entry.label,
        started_at: entry.started,
        state: entry.state,
        log_path: entry.log.map(|log| log.to_string_lossy().into_owned()),
    }
}
