//! Attachments that name something elsewhere: on GitHub, at an address, another agent, or what an
//! extension says. Each becomes text, and one that cannot be read is named, so that nothing that a
//! person attached is lost without a word.

use serde_json::Value;

/// The longest text of one attachment that the model is given, in bytes.
const LONGEST: usize = 16 * 1024;

/// The kinds of attachments that name something on GitHub.
const GITHUB_KINDS: [&str; 9] = [
    "github_commit",
    "github_release",
    "github_actions_job",
    "github_repository",
    "github_file",
    "github_snippet",
    "github_file_diff",
    "github_tree_comparison",
    "github_url",
];

/// How an attachment becomes text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// A line among the references to GitHub.
    Github(String),
    /// A line among the resources.
    Resource(String),
    /// An agent that the user wants to do the work.
    Agent(String),
    /// A block of its own.
    Block(String),
    /// It cannot be shown, for this reason.
    NotShown(String),
}

/// Reads an attachment of a kind that has no bytes of its own.
pub(super) fn read(value: &Value) -> Reference {
    let Some(kind) = text(value, "type") else {
        return Reference::NotShown("an attachment has no type".to_owned());
    };
    let read = match kind {
        "resource_link" => resource(value).map(|line| Reference::Resource(one_line(&line))),
        "agent" => text(value, "name").map(|name| Reference::Agent(one_line(name))),
        "extension_context" => extension(value).map(Reference::Block),
        kind if GITHUB_KINDS.contains(&kind) => {
            github(kind, value).map(|line| Reference::Github(one_line(&line)))
        }
        other => Some(Reference::NotShown(format!(
            "attachments of the type `{}` are not known here",
            one_line(other)
        ))),
    };
    read.unwrap_or_else(|| {
        Reference::NotShown(format!(
            "an attachment of the type {kind:?} lacks what it has to say"
        ))
    })
}

/// Returns a member that has a text.
fn text<'v>(value: &'v Value, member: &str) -> Option<&'v str> {
    value[member].as_str().filter(|text| !text.is_empty())
}

/// Returns a member that may be missing, between two texts.
fn between(before: &str, value: &Value, member: &str, after: &str) -> String {
    let given = text(value, member).map(|text| format!("{before}{text}{after}"));
    given.unwrap_or_default()
}

fn repository(value: &Value) -> Option<String> {
    let repo = &value["repo"];
    Some(format!("{}/{}", text(repo, "owner")?, text(repo, "name")?))
}

fn github(kind: &str, value: &Value) -> Option<String> {
    let url = text(value, "url")?;
    let about = match kind {
        "github_commit" => {
            let (oid, message) = (text(value, "oid")?, text(value, "message")?);
            format!("{}@{oid} - {message} [commit]", repository(value)?)
        }
        "github_release" => {
            let (tag, name) = (text(value, "tagName")?, between(" - ", value, "name", ""));
            format!("{} {tag}{name} [release]", repository(value)?)
        }
        "github_actions_job" => {
            let (workflow, job) = (text(value, "workflowName")?, text(value, "jobName")?);
            let end = between(" [", value, "conclusion", "]");
            format!("{} {workflow} / {job} [job]{end}", repository(value)?)
        }
        "github_repository" => {
            let at = between("@", value, "ref", "");
            let description = between(" - ", value, "description", "");
            format!("{}{at}{description} [repository]", repository(value)?)
        }
        "github_file" | "github_snippet" => {
            let (path, at) = (text(value, "path")?, text(value, "ref")?);
            let range = &value["lineRange"];
            let lines = range["start"].as_u64().zip(range["end"].as_u64());
            let lines = lines.map(|(start, end)| super::lines_of(start, end));
            format!(
                "{}@{at}: {path}{} [file]",
                repository(value)?,
                lines.unwrap_or_default()
            )
        }
        "github_file_diff" => {
            let sides = [&value["base"], &value["head"]].into_iter();
            let sides = sides.filter_map(|side| {
                Some(format!("{} at {}", text(side, "path")?, text(side, "ref")?))
            });
            format!("{} [diff]", sides.collect::<Vec<_>>().join(" -> "))
        }
        "github_tree_comparison" => {
            let side =
                |side: &Value| Some(format!("{}@{}", repository(side)?, text(side, "revision")?));
            format!(
                "{}...{} [comparison]",
                side(&value["base"])?,
                side(&value["head"])?
            )
        }
        // An address alone.
        _ => return Some(url.to_owned()),
    };
    Some(format!("{about} ({url})"))
}

fn resource(value: &Value) -> Option<String> {
    let uri = text(value, "uri")?;
    let name = text(value, "title").or_else(|| text(value, "name"));
    let name = name.map(|name| format!(" - {name}")).unwrap_or_default();
    let about = between(": ", value, "description", "");
    let kind = between(" [", value, "mimeType", "]");
    Some(format!("{uri}{name}{about}{kind}"))
}

fn extension(value: &Value) -> Option<String> {
    let (title, extension) = (text(value, "title")?, text(value, "extensionId")?);
    let payload = match &value["payload"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let payload = bounded(&payload);
    Some(format!(
        "<extension_context extension={extension:?} title={title:?}>\n{payload}\n</extension_context>"
    ))
}

/// Puts a text on one line and bounds it, so that it cannot pass for other lines.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    bounded(&line)
}

fn bounded(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let mut ends = (0..=LONGEST).rev();
    let begin = ends.find_map(|end| text.get(..end)).unwrap_or_default();
    format!(
        "{begin} [{} bytes more are left out]",
        text.len() - begin.len()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_become_lines_and_what_is_not_known_is_named() {
        let repo = json!({"owner": "o", "name": "r"});
        let github = |line: &str| Reference::Github(line.to_owned());
        let table = [
            (
                json!({"type": "github_commit", "oid": "1a", "message": "Mend\n\nit", "repo": repo, "url": "u"}),
                github("o/r@1a - Mend it [commit] (u)"),
            ),
            (
                json!({"type": "github_snippet", "path": "a.rs", "ref": "main", "repo": repo, "url": "u",
                       "lineRange": {"start": 2, "end": 3}}),
                github("o/r@main: a.rs (lines 2-3) [file] (u)"),
            ),
            (
                json!({"type": "github_tree_comparison", "base": {"repo": repo, "revision": "a"},
                       "head": {"repo": repo, "revision": "b"}, "url": "u"}),
                github("o/r@a...o/r@b [comparison] (u)"),
            ),
            (json!({"type": "github_url", "url": "https://x"}), github("https://x")),
            (
                json!({"type": "resource_link", "uri": "db://t", "name": "Table", "mimeType": "text/csv"}),
                Reference::Resource("db://t - Table [text/csv]".to_owned()),
            ),
            (json!({"type": "agent", "name": "explore"}), Reference::Agent("explore".to_owned())),
            (
                json!({"type": "extension_context", "title": "T", "extensionId": "e", "payload": {"a": 1}}),
                Reference::Block(
                    "<extension_context extension=\"e\" title=\"T\">\n{\"a\":1}\n</extension_context>".to_owned(),
                ),
            ),
            (
                json!({"type": "hologram"}),
                Reference::NotShown("attachments of the type `hologram` are not known here".to_owned()),
            ),
            (
                json!({"type": "github_commit"}),
                Reference::NotShown("an attachment of the type \"github_commit\" lacks what it has to say".to_owned()),
            ),
            (json!({}), Reference::NotShown("an attachment has no type".to_owned())),
        ];
        for (value, expected) in table {
            assert_eq!(read(&value), expected, "{value}");
        }
        let long = json!({"type": "github_url", "url": "x".repeat(100_000)});
        assert!(matches!(read(&long), Reference::Github(line) if line.len() < LONGEST + 100));
    }
}
