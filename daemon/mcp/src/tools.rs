//! The tools of a server, as its list says. One tool that cannot be used does not affect the others.

mod headers;

use loopd_proto::visible::visible;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::ToolFilter;

/// The most tools of one server.
pub(crate) const MOST_TOOLS: usize = 1_000;
/// The most bytes that the definitions of all tools of one server may have: models read them with each
/// request.
pub(crate) const LARGEST_TOOLS: usize = 512 * 1024;
/// The longest description; the rest is left out.
const LONGEST_DESCRIPTION: usize = 8_000;
/// The largest schema of arguments, in bytes of JSON.
const LARGEST_SCHEMA: usize = 128 * 1024;
/// The longest name of a tool on its server.
const LONGEST_NAME: usize = 256;

/// One tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerTool {
    /// Its name on the server.
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    /// A JSON schema of its arguments.
    pub schema: Value,
    /// Whether the server says that it changes nothing.
    #[serde(default)]
    pub read_only: bool,
    #[serde(default)]
    pub task_support: TaskSupport,
    #[serde(default)]
    pub kind: ToolKind,
    /// What the tool says about its user interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Value>,
}

impl ServerTool {
    /// Returns about how many bytes models read of it.
    pub(crate) fn size(&self) -> usize {
        self.name.len() + self.description.len() + self.schema.to_string().len()
    }
}

/// What a tool does on its server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolKind {
    /// It is a tool of the server.
    #[default]
    Call,
    /// It lists the resources of the server and their templates.
    ListResources,
    /// It reads a resource of the server.
    ReadResource,
}

/// Whether a call of a tool may or must be a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSupport {
    #[default]
    Forbidden,
    Optional,
    Required,
}

/// What one page of a list says.
#[derive(Debug, Default)]
pub(crate) struct ToolPage {
    pub(crate) tools: Vec<ServerTool>,
    /// What is wrong with tools that are left out.
    pub(crate) problems: Vec<String>,
}

/// Reads the result of `tools/list`.
pub(crate) fn read_page(result: &Value, filter: &ToolFilter) -> Result<ToolPage, String> {
    let listed = result.get("tools").and_then(Value::as_array);
    let listed = listed.ok_or("its list of tools has no member `tools`")?;
    let mut page = ToolPage::default();
    for tool in listed {
        match read_tool(tool) {
            Ok(tool) if filter.lets_through(&tool.name) => page.tools.push(tool),
            Ok(_) => {}
            Err(problem) => page.problems.push(problem),
        }
    }
    Ok(page)
}

fn read_tool(tool: &Value) -> Result<ServerTool, String> {
    let text = |at: &str| tool.pointer(at).and_then(Value::as_str);
    let name = text("/name").filter(|name| !name.is_empty());
    let name = name.ok_or("a tool without a name is left out")?;
    if name.len() > LONGEST_NAME || visible(name) != name {
        return Err("a tool whose name is too long or not plain is left out".to_owned());
    }
    let schema = match tool.get("inputSchema") {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(Value::Object(schema)) => {
            headers::check(schema).map_err(|why| format!("`{name}` is left out: {why}"))?;
            Value::Object(with_type(schema.clone()))
        }
        Some(_) => {
            return Err(format!(
                "`{name}` is left out: its inputSchema is no object"
            ));
        }
    };
    if schema.to_string().len() > LARGEST_SCHEMA {
        return Err(format!(
            "`{name}` is left out: its inputSchema is too large"
        ));
    }
    let description = text("/description").unwrap_or_default();
    let description: String = visible(description)
        .chars()
        .take(LONGEST_DESCRIPTION)
        .collect();
    let title = text("/title").or_else(|| text("/annotations/title"));
    let flag = |at: &str| tool.pointer(at).and_then(Value::as_bool);
    Ok(ServerTool {
        name: name.to_owned(),
        title: title.map(|title| visible(title).chars().take(200).collect()),
        description,
        schema,
        read_only: flag("/annotations/readOnlyHint") == Some(true)
            && flag("/annotations/destructiveHint") != Some(true),
        task_support: match text("/execution/taskSupport") {
            Some("required") => TaskSupport::Required,
            Some("optional") => TaskSupport::Optional,
            _ => TaskSupport::Forbidden,
        },
        kind: ToolKind::Call,
        ui: tool.pointer("/_meta/ui").cloned(),
    })
}

/// Returns the tools by which models use the resources of a server.
pub(crate) fn resource_tools() -> [ServerTool; 2] {
    let tool =
        |name: &str, kind, description: &str, properties: Value, required: Value| ServerTool {
            name: name.to_owned(),
            title: None,
            description: description.to_owned(),
            schema: json!({"type": "object", "properties": properties, "required": required}),
            read_only: true,
            task_support: TaskSupport::Forbidden,
            kind,
            ui: None,
        };
    [
        tool(
            "list_resources",
            ToolKind::ListResources,
            "Lists the resources that this server has, and the templates of addresses of further ones.",
            json!({"cursor": {"type": "string", "description": "`nextCursor` of the page before."}}),
            json!([]),
        ),
        tool(
            "read_resource",
            ToolKind::ReadResource,
            "Reads a resource of this server.",
            json!({"uri": {"type": "string", "description": "The address of the resource."}}),
            json!(["uri"]),
        ),
    ]
}

/// Vendors want the type and the properties to be there.
fn with_type(mut schema: Map<String, Value>) -> Map<String, Value> {
    let members = [("type", json!("object")), ("properties", json!({}))];
    for (name, value) in members {
        if !schema.contains_key(name) {
            schema.insert(name.to_owned(), value);
        }
    }
    schema
}

#[cfg(test)]
#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_tool_is_left_out_and_the_others_are_there() {
        let result = json!({"tools": [
            {"name": "good", "description": "says\u{202e}more", "inputSchema": {"required": ["a"]},
             "annotations": {"readOnlyHint": true, "title": "Good"},
             "execution": {"taskSupport": "required"}},
            {"description": "no name"},
            {"name": "odd", "inputSchema": []},
            {"name": "bare"},
            {"name": "off"},
            "no object",
        ]});
        let filter = ToolFilter {
            include: Some(vec!["*".to_owned()]),
            exclude: vec!["off".to_owned()],
        };
        let page = read_page(&result, &filter).expect("a list");
        assert_eq!(page.problems.len(), 3);
        let names: Vec<_> = page.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good", "bare"]);
        let good = &page.tools[0];
        assert!(good.read_only);
        assert_eq!(good.task_support, TaskSupport::Required);
        assert_eq!(good.title.as_deref(), Some("Good"));
        assert!(!good.description.contains('\u{202e}'));
        assert_eq!(
            good.schema,
            json!({"required": ["a"], "type": "object", "properties": {}})
        );
        assert!(read_page(&json!({"tool": []}), &filter).is_err());
    }
}
