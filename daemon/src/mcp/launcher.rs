//! Starts the programs of servers as processes of the daemon, which have an owner from the start.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use loopd_exec::process::{Exit, Io, Lifetime, OwnedProcess, Processes, Spawn};
use loopd_mcp::port::{Launcher, ProgramSpec, ServerPipes, ServerProcess};
use loopd_proto::id::SessionId;

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// Starts the servers of one session, or those that several share.
pub struct ProcessLauncher {
    pub processes: Processes,
    /// `None` for servers that several sessions share.
    pub session: Option<SessionId>,
}

impl Launcher for ProcessLauncher {
    fn launch(&self, spec: ProgramSpec) -> BoxFuture<'_, Result<Box<dyn ServerProcess>, String>> {
        async move {
            let spawn = Spawn {
                program: spec.program.into(),
                args: spec.args.into_iter().map(Into::into).collect(),
                env: spec.env,
                cwd: spec.cwd,
                io: Io::Served,
                lifetime: Lifetime::Session,
                session: self.session.clone(),
                label: spec.label,
                // What a server may do is decided call by call: plan mode does not confine it.
                sandbox: None,
            };
            let spawned = self.processes.spawn(spawn).await;
            let process = spawned.map_err(|error| error.to_string())?;
            Ok(Box::new(ServedProcess(process)) as Box<dyn ServerProcess>)
        }
        .boxed()
    }
}

struct ServedProcess(OwnedProcess);

impl ServerProcess for ServedProcess {
    fn pipes(&mut self) -> Option<ServerPipes> {
        Some(ServerPipes {
            input: Box::new(self.0.input.take()?),
            output: Box::new(self.0.output.take()?),
            errors: Box::new(self.0.errors.take()?),
        })
    }

    fn exit(&self) -> BoxFuture<'_, String> {
        async move {
            match self.0.exit().await {
                Exit::Code(code) => format!("it ended with exit code {code}"),
                Exit::Signal(signal) => format!("it was killed by signal {signal}"),
                Exit::Unknown => "it ended".to_owned(),
            }
        }
        .boxed()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        async move {
            self.0.stop(GRACE).await;
        }
        .boxed()
    }
}
