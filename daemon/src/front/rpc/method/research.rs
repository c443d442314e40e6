//! Research: a question that several agents look into, and a report with sources.
//!
//! `loopd.research` and `/research` send the same message; what its run may do is in the kernel.

use std::path::{Path, PathBuf};

use loopd_proto::params::command::Invoked;
use loopd_proto::params::research::{ResearchBegun, ResearchParams};
use loopd_proto::session::Mode;

use super::builtin::Call;
use super::commands;
use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use crate::session::SessionHandle;
use loopd_kernel::research::ResearchMessage;

/// The folder of reports in the working directory.
const FOLDER: &str = "research";
/// The longest name of a report that is made from its topic, in characters.
const LONGEST_NAME: usize = 60;
/// How many reports about one topic get a name of their own.
const MOST_OF_A_NAME: usize = 1_000;

/// A research that can begin: its message, and the file of its report.
struct Research {
    message: ResearchMessage,
    report: String,
}

/// `loopd.research`: sends the message.
pub(super) async fn start(
    context: Context,
    params: ResearchParams,
) -> Result<ResearchBegun, RpcError> {
    let session = context.session(&params.session_id)?;
    let Research { message, report } =
        prepare(&session, &params.topic, params.path.as_deref()).await?;
    let scope = Some(Box::new(message.scope));
    let message = commands::message(&context, message.prompt, message.display_prompt, scope);
    Ok(ResearchBegun {
        message_id: super::session_send::queue(&session, message).await?,
        report_path: report,
    })
}

/// `/research`: lets the caller send the message.
pub(super) async fn invoke(call: Call<'_>) -> Result<Invoked, RpcError> {
    let Research { message, report } = match prepare(call.session, call.input, None).await {
        Err(RpcError::InvalidParams(why)) => return Err(RpcError::Failed(why)),
        prepared => prepared?,
    };
    Ok(Invoked::AgentPrompt {
        prompt: message.prompt,
        display_prompt: message.display_prompt,
        mode: None,
        notice: Some(format!("The report will be in {report}")),
        run_scope: Some(Box::new(message.scope)),
    })
}

/// Builds the message. The report gets a file that is not there yet, because no file is overwritten.
async fn prepare(
    session: &SessionHandle,
    topic: &str,
    path: Option<&str>,
) -> Result<Research, RpcError> {
    let topic = topic.trim();
    if topic.is_empty() {
        return Err(RpcError::InvalidParams(
            "topic: say what is to be found out".to_owned(),
        ));
    }
    let (cwd, mode) = session
        .state(|state| (PathBuf::from(&state.cwd), state.mode))
        .await?;
    if mode == Mode::Plan {
        return Err(RpcError::Failed(
            "a research writes a report, and this session is in plan mode; leave it first"
                .to_owned(),
        ));
    }
    let report = match path.filter(|path| !path.trim().is_empty()) {
        Some(path) => {
            let report = plain(&cwd, Path::new(path));
            if is_taken(&report).await {
                return Err(RpcError::InvalidParams(format!(
                    "path: {} is there already, and a report overwrites nothing; name another file",
                    report.display()
                )));
            }
            report
        }
        None => free_name(&cwd.join(FOLDER), topic).await?,
    };
    let report = report.to_string_lossy().into_owned();
    Ok(Research {
        message: ResearchMessage::new(topic, &report),
        report,
    })
}

async fn is_taken(path: &Path) -> bool {
    tokio::fs::symlink_metadata(path).await.is_ok()
}

/// Returns the first of `topic.md`, `topic-2.md` and so on that is not there yet.
async fn free_name(folder: &Path, topic: &str) -> Result<PathBuf, RpcError> {
    let name = name_of(topic);
    for number in 1..=MOST_OF_A_NAME {
        let file = match number {
            1 => format!("{name}.md"),
            _ => format!("{name}-{number}.md"),
        };
        let path = folder.join(file);
        if !is_taken(&path).await {
            return Ok(path);
        }
    }
    Err(RpcError::Failed(format!(
        "{} has {MOST_OF_A_NAME} reports of this name; name a file with `path`",
        folder.display()
    )))
}

/// Resolves a path without reading the disk.
fn plain(cwd: &Path, path: &Path) -> PathBuf {
    let mut resolved = cwd.to_owned();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                resolved.pop();
            }
            other => resolved.push(other),
        }
    }
    resolved
}

/// Makes the name of a report from its topic.
fn name_of(topic: &str) -> String {
    let plain = topic.chars().map(|c| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            ' '
        }
    });
    let plain: String = plain.collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let mut name = words.join("-");
    name.truncate(LONGEST_NAME);
    let name = name.trim_end_matches('-');
    if name.is_empty() {
        "report".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_named_after_their_topics() {
        let long = "word ".repeat(40);
        for (topic, name) in [
            ("How do Bees, exactly, dance?", "how-do-bees-exactly-dance"),
            ("  ../../etc/passwd ", "etc-passwd"),
            ("蜜蜂", "report"),
            (
                long.as_str(),
                "word-word-word-word-word-word-word-word-word-word-word-word",
            ),
        ] {
            assert_eq!(name_of(topic), name, "{topic}");
        }
    }

    #[test]
    fn paths_are_resolved_without_the_disk() {
        let cwd = Path::new("/work/here");
        for (path, expected) in [
            ("out/r.md", "/work/here/out/r.md"),
            ("./../r.md", "/work/r.md"),
            ("/tmp/r.md", "/tmp/r.md"),
        ] {
            assert_eq!(plain(cwd, Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
