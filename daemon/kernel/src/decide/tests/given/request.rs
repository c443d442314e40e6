//! The permissions that calls ask for.

use serde_json::{Value, json};

pub(crate) fn write(path: &str) -> Value {
    json!({ "kind": "write", "intention": "write", "fileName": path, "diff": "", "canOfferSessionApproval": true })
}

pub(crate) fn read(path: &str) -> Value {
    json!({ "kind": "read", "intention": "read", "path": path })
}

pub(crate) fn fetch(url: &str) -> Value {
    json!({ "kind": "url", "intention": "fetch", "url": url })
}

pub(crate) fn custom_tool(name: &str) -> Value {
    json!({ "kind": "custom-tool", "toolName": name, "toolDescription": "" })
}

pub(crate) fn mcp_tool(server: &str, tool: &str) -> Value {
    json!({ "kind": "mcp", "serverName": server, "toolName": tool, "toolTitle": tool, "readOnly": false })
}

/// A command line that may be approved for the whole session.
pub(crate) fn command_line(text: &str) -> Value {
    json!({ "kind": "shell", "fullCommandText": text, "intention": "run", "possiblePaths": [], "possibleUrls": [],
        "commands": [{ "identifier": text, "readOnly": false }], "hasWriteFileRedirection": false,
        "canOfferSessionApproval": true })
}

/// A command line that has to be asked about each time.
pub(crate) fn command_line_of_once(text: &str) -> Value {
    let mut request = command_line(text);
    if let Some(request) = request.as_object_mut() {
        request.insert("canOfferSessionApproval".to_owned(), json!(false));
    }
    request
}
