//! What a call or a resource gave, in the forms that a model and people read.

use loopd_proto::visible::visible;
use serde_json::Value;

use crate::connection::CallError;

/// The most bytes of binary data of one result; what is beyond is only named.
const MOST_BINARY: usize = 8 * 1024 * 1024;
/// The most parts of one result.
const MOST_PARTS: usize = 1_000;

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallResult {
    /// What the model reads.
    pub text: String,
    pub binaries: Vec<Binary>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// The result as data, as the server sent it.
    pub structured: Option<Value>,
    /// The parts as the server sent them, without binary data.
    pub contents: Vec<Value>,
}

/// Binary data of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// Whether a model can see it as an image.
    pub is_image: bool,
    pub mime_type: String,
    pub base64: String,
    pub description: Option<String>,
}

impl CallResult {
    /// Reads the result of `tools/call`. A part that is not understood is shown as it is; a result without
    /// any is none.
    pub(crate) fn read(result: &Value) -> Result<Self, CallError> {
        let is_fine = [None, Some(&Value::Null), Some(&Value::Bool(false))];
        let mut read = Self {
            is_error: !is_fine.contains(&result.get("isError")),
            structured: result.get("structuredContent").cloned(),
            ..Self::default()
        };
        let parts = result.get("content").and_then(Value::as_array);
        if parts.is_none() && read.structured.is_none() {
            let why = "the result has neither `content` nor `structuredContent`";
            return Err(CallError::Unreadable(why.to_owned()));
        }
        let mut parts = parts.into_iter().flatten();
        let mut texts: Vec<String> = Vec::new();
        for part in parts.by_ref().take(MOST_PARTS) {
            texts.extend(read.part(part));
        }
        let left = parts.count();
        if left > 0 {
            texts.push(format!("[{left} further parts are left out]"));
        }
        read.text = texts.join("\n");
        if read.text.is_empty()
            && read.binaries.is_empty()
            && let Some(structured) = &read.structured
        {
            read.text = structured.to_string();
        }
        read.text = visible(&read.text).into_owned();
        Ok(read)
    }

    pub(crate) fn of_text(text: String) -> Self {
        Self {
            text: visible(&text).into_owned(),
            ..Self::default()
        }
    }

    /// Reads the result of `resources/read`.
    pub(crate) fn read_resource(result: &Value) -> Self {
        let mut read = Self::default();
        let contents = result.get("contents").and_then(Value::as_array);
        let texts = contents.into_iter().flatten().take(MOST_PARTS);
        let texts: Vec<String> = texts.filter_map(|content| read.resource(content)).collect();
        read.text = visible(&texts.join("\n")).into_owned();
        read
    }

    /// Takes one part; returns what the model reads of it.
    fn part(&mut self, part: &Value) -> Option<String> {
        let text = |member: &str| part.get(member).and_then(Value::as_str);
        let shown = match text("type") {
            Some("text") => text("text").map(str::to_owned),
            Some(kind @ ("image" | "audio")) => {
                let mime_type = text("mimeType").unwrap_or("application/octet-stream");
                return self.binary(kind == "image", mime_type, text("data")?, None);
            }
            Some("resource") => {
                let resource = part.get("resource")?;
                let shown = self.resource(resource);
                if resource.get("blob").is_some() {
                    return shown;
                }
                shown
            }
            Some("resource_link") => {
                let uri = text("uri").unwrap_or_default();
                let name = text("title").or_else(|| text("name")).unwrap_or(uri);
                let about = text("description").map(|it| format!(": {it}"));
                let about = about.unwrap_or_default();
                Some(format!("[resource {name} <{uri}>{about}]"))
            }
            _ => Some(part.to_string()),
        };
        self.contents.push(part.clone());
        shown
    }

    fn resource(&mut self, resource: &Value) -> Option<String> {
        let text = |member: &str| resource.get(member).and_then(Value::as_str);
        let uri = text("uri").unwrap_or_default();
        if let Some(content) = text("text") {
            return Some(content.to_owned());
        }
        let blob = text("blob")?;
        let mime_type = text("mimeType").unwrap_or("application/octet-stream");
        let is_image = mime_type.starts_with("image/");
        self.binary(is_image, mime_type, blob, Some(uri.to_owned()))
    }

    /// Takes binary data; returns what the model reads in its place.
    fn binary(
        &mut self,
        is_image: bool,
        mime_type: &str,
        base64: &str,
        description: Option<String>,
    ) -> Option<String> {
        let before: usize = self.binaries.iter().map(|it| it.base64.len()).sum();
        let name = description.clone().unwrap_or_else(|| mime_type.to_owned());
        if before + base64.len() > MOST_BINARY {
            let size = base64.len();
            return Some(format!("[{name}: {size} bytes of data are left out]"));
        }
        self.binaries.push(Binary {
            is_image,
            mime_type: mime_type.to_owned(),
            base64: base64.to_owned(),
            description,
        });
        (!is_image).then(|| format!("[binary data: {name}]"))
    }
}

#[cfg(test)]
#[expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a failed step fails the test"
)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_images_and_resources_are_read() {
        let result = CallResult::read(&json!({
            "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "a://b", "text": "two"}},
                {"type": "resource", "resource": {"uri": "a://c", "blob": "BBBB", "mimeType": "x/y"}},
                {"type": "resource_link", "uri": "a://d", "name": "d", "description": "more"},
                {"type": "later", "x": 1},
            ],
            "structuredContent": {"a": 1},
        }))
        .unwrap();
        assert_eq!(
            result.text,
            "one\ntwo\n[binary data: a://c]\n[resource d <a://d>: more]\n{\"type\":\"later\",\"x\":1}"
        );
        assert!(!result.is_error);
        assert_eq!(result.binaries.len(), 2);
        assert!(result.binaries[0].is_image && !result.binaries[1].is_image);
        assert_eq!(result.structured, Some(json!({"a": 1})));
        assert_eq!(result.contents.len(), 4);
    }

    #[test]
    fn data_stands_for_a_text_that_is_missing() {
        let result = CallResult::read(&json!({"structuredContent": [1], "isError": true})).unwrap();
        assert_eq!(result.text, "[1]");
        assert!(result.is_error);
    }

    #[test]
    fn too_much_data_is_named_and_left_out() {
        let large = "A".repeat(MOST_BINARY);
        let result = CallResult::read(&json!({"content": [
            {"type": "image", "data": large, "mimeType": "image/png"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ]}))
        .unwrap();
        assert_eq!(result.binaries.len(), 1);
        assert_eq!(result.text, "[image/png: 4 bytes of data are left out]");
    }

    #[test]
    fn what_is_no_result_is_not_read_as_success() {
        for result in [
            json!(null),
            json!("ok"),
            json!({}),
            json!({"content": "text"}),
        ] {
            assert!(CallResult::read(&result).is_err(), "{result}");
        }
        let odd = CallResult::read(&json!({"content": [], "isError": "yes"}));
        assert!(odd.unwrap().is_error);
    }
}
