//! Research: a question that several agents look into, and a report with sources.

use std::path::{Path, PathBuf};

use loopd_proto::params::research::{ResearchBegun, ResearchParams};

use crate::front::rpc::context::Context;
use crate::front::rpc::error::RpcError;
use loopd_kernel::command::{Answer, Command};

/// The folder of reports in the working directory.
const FOLDER: &str = "research";
/// The longest name of a report that is made from its topic, in characters.
const LONGEST_NAME: usize = 60;

pub(super) async fn start(
    context: Context,
    params: ResearchParams,
) -> Result<ResearchBegun, RpcError> {
    let session = context.session(&params.session_id)?;
    let topic = params.topic.trim().to_owned();
    if topic.is_empty() {
        return Err(RpcError::InvalidParams(
            "topic: say what is to be found out".to_owned(),
        ));
    }
    let cwd = PathBuf::from(session.state(|state| state.cwd.clone()).await?);
    let report = match params.path.filter(|path| !path.trim().is_empty()) {
        Some(path) => plain(&cwd, Path::new(&path)),
        None => cwd.join(FOLDER).join(name_of(&topic)),
    };
    let report = report.to_string_lossy().into_owned();
    let done = session.command(Command::StartResearch {
        topic,
        report: report.clone(),
        sender: Some(context.caller()),
    });
    let Answer::Message(message_id) = done.await?.answer else {
        return Err(RpcError::Failed("the research was not begun".to_owned()));
    };
    Ok(ResearchBegun {
        message_id,
        report_path: report,
    })
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
        "report.md".to_owned()
    } else {
        format!("{name}.md")
    }
}
