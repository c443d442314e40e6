//! The lines of a bundle.
//!
//! The first line says what the text is, of which version, and which session it holds. Then come the
//! events in the order of the log, the files in parts, what was left out, and the end, which says how much
//! there must be.

use std::borrow::Cow;

use loopd_proto::id::SessionId;
use loopd_proto::params::bundle::BUNDLE_VERSION;
use loopd_proto::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Why a text is not taken as a bundle. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum BundleError {
    #[error("this is no session bundle of loopd: {0}")]
    NotABundle(String),
    #[error(
        "the bundle has version {found}, and this daemon reads bundles up to version {BUNDLE_VERSION}; \
         import it with the daemon that made it ({by}) or a newer one"
    )]
    Newer { found: u64, by: String },
    #[error("line {line} of the bundle cannot be used: {why}; export the session again")]
    Broken { line: u64, why: String },
    #[error("{0}")]
    Refused(String),
    #[error("the bundle cannot be kept in {path}: {source}")]
    Io {
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    #[serde(rename = "loopdSession")]
    pub(super) version: u32,
    /// The daemon that made the bundle.
    pub(super) by: String,
    pub(super) exported_at: Timestamp,
    pub(super) session_id: SessionId,
    /// The folder of the session's own files there, as its log names it.
    pub(super) folder: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) directory: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_name: Option<String>,
    pub(super) created_at: Timestamp,
}

/// Any other line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Line {
    Event(Box<RawValue>),
    File(FilePart),
    LeftOut(Vec<String>),
    End(End),
}

/// A part of a file; the parts of a file follow each other.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FilePart {
    /// The path below the folder of the session's own files.
    pub(super) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// For files that are no plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base64: Option<String>,
    /// Whether more of this file follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) more: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) events: u64,
    pub(super) files: u64,
}

/// Reads the first line.
pub(super) fn header(line: &str) -> Result<Header, BundleError> {
    const NO_MARK: &str = "its first line does not say `loopdSession`";
    let not_json = |error: serde_json::Error| {
        BundleError::NotABundle(format!("its first line is no JSON object ({error})"))
    };
    let value: Value = serde_json::from_str(line).map_err(not_json)?;
    let version = value.get("loopdSession").and_then(Value::as_u64);
    let version = version.ok_or_else(|| BundleError::NotABundle(NO_MARK.to_owned()))?;
    if version > u64::from(BUNDLE_VERSION) {
        let by = value.get("by").and_then(Value::as_str);
        return Err(BundleError::Newer {
            found: version,
            by: by
                .unwrap_or("of unknown version")
                .chars()
                .take(100)
                .collect(),
        });
    }
    let broken = |why: String| BundleError::Broken { line: 1, why };
    if version == 0 {
        return Err(broken("there is no version 0".to_owned()));
    }
    serde_json::from_value(value).map_err(|error| broken(error.to_string()))
}

/// The part of a path in an event that depends on the home: it is written as the new home has it.
pub(super) struct Move {
    from: String,
    to: String,
}

impl Move {
    /// Makes the change from one folder to another. Both are written as they stand in JSON.
    pub(super) fn new(from: &str, to: &str) -> Self {
        let in_json = |path: &str| {
            let quoted = Value::String(path.to_owned()).to_string();
            quoted.trim_matches('"').to_owned()
        };
        Self {
            from: in_json(from.trim_end_matches('/')),
            to: in_json(to.trim_end_matches('/')),
        }
    }

    /// Returns the event with the new folder in every place of the old one.
    pub(super) fn apply<'e>(&self, event: &'e str) -> Cow<'e, str> {
        // A path that says nothing would be found everywhere.
        if self.from.len() < 2 || self.from == self.to || !event.contains(&self.from) {
            return Cow::Borrowed(event);
        }
        let mut moved = String::with_capacity(event.len());
        let mut rest = event;
        while let Some((before, after)) = rest.split_once(&self.from) {
            moved.push_str(before);
            // A longer name begins with the same letters.
            let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
            let is_whole = !after.starts_with(goes_on);
            moved.push_str(if is_whole { &self.to } else { &self.from });
            rest = after;
        }
        moved.push_str(rest);
        Cow::Owned(moved)
    }
}

#[cfg(test)]
#[expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed step fails the test"
)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_bundle_and_what_is_newer_is_told_by_name() {
        let refused = |line: &str| header(line).unwrap_err().to_string();
        assert!(
            refused("# Notes")
                .starts_with("this is no session bundle of loopd: its first line is no JSON")
        );
        assert!(refused("{\"a\": 1}").contains("does not say `loopdSession`"));
        let newer = refused("{\"loopdSession\": 7, \"by\": \"9.1.0\", \"shape\": []}");
        assert_eq!(
            newer,
            "the bundle has version 7, and this daemon reads bundles up to version 1; import it with the \
             daemon that made it (9.1.0) or a newer one"
        );
        let broken = refused("{\"loopdSession\": 1}");
        assert!(
            broken.starts_with("line 1 of the bundle cannot be used: missing field"),
            "{broken}"
        );
        assert!(refused("{\"loopdSession\": 0}").contains("no version 0"));
    }

    #[test]
    fn the_folder_of_the_session_is_moved_wherever_it_is_named_and_nothing_else() {
        let change = Move::new("/old/session-state/one", "/new \"home\"/session-state/one");
        let moved = change
            .apply(r#"{"a":"see /old/session-state/one/temp/x.txt","b":"/old/session-state/one"}"#);
        let value: Value = serde_json::from_str(&moved).unwrap();
        assert_eq!(value["a"], "see /new \"home\"/session-state/one/temp/x.txt");
        assert_eq!(value["b"], "/new \"home\"/session-state/one");
        let other = r#"{"a":"/old/session-state/one-more/x"}"#;
        assert_eq!(change.apply(other), other);
        assert_eq!(Move::new("/", "/new").apply(other), other);
    }
}
