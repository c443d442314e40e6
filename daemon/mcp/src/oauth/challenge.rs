//! What a server says about its login when it refuses a request: the header `WWW-Authenticate`.

/// The parameters of `WWW-Authenticate: Bearer …`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// Where the server describes its login.
    pub resource_metadata: Option<String>,
    /// The scopes that a request needs, with spaces between them.
    pub scope: Option<String>,
    pub error: Option<String>,
}

impl Challenge {
    /// Reads the header.
    pub fn read(header: &str) -> Self {
        let mut read = Self::default();
        for (name, value) in parameters(header) {
            let slot = match name {
                "resource_metadata" => &mut read.resource_metadata,
                "scope" => &mut read.scope,
                "error" => &mut read.error,
                _ => continue,
            };
            if slot.is_none() && !value.is_empty() {
                *slot = Some(value);
            }
        }
        read
    }

    /// Returns the scopes that it names.
    pub fn scopes(&self) -> Vec<String> {
        let scope = self.scope.as_deref().unwrap_or_default();
        scope.split_whitespace().map(str::to_owned).collect()
    }
}

/// Returns the pairs `name=value` and `name="value"` of a header. What stands in quotes is no name.
fn parameters(header: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut rest = header;
    while let Some(at) = rest.find('=') {
        let (before, after) = rest.split_at(at);
        let name = before.rsplit([' ', ',', '\t']).next().unwrap_or_default();
        let after = after.get(1..).unwrap_or_default();
        let (value, left) = if let Some(quoted) = after.strip_prefix('"') {
            unquoted(quoted)
        } else {
            let end = after.find([',', ' ', '\t']).unwrap_or(after.len());
            let (value, left) = after.split_at(end);
            (value.to_owned(), left)
        };
        found.push((name, value));
        rest = left;
    }
    found
}

/// Takes the text up to the closing quote.
fn unquoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, text.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            letter => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_challenge_are_read() {
        let header = r#"Bearer resource_metadata="https://a/x", scope="r w", error="invalid_token", error_description="error=other""#;
        let read = Challenge::read(header);
        assert_eq!(read.resource_metadata.as_deref(), Some("https://a/x"));
        assert_eq!(read.scopes(), ["r", "w"]);
        assert_eq!(read.error.as_deref(), Some("invalid_token"));
        let header = r#"Bearer error_description="say \"scope=all\", please", error=invalid_token"#;
        let read = Challenge::read(header);
        assert_eq!(read.error.as_deref(), Some("invalid_token"));
        assert_eq!(read.scope, None);
        assert_eq!(Challenge::read("Basic realm=\"x\""), Challenge::default());
        assert_eq!(
            Challenge::read("Bearer scope=\"open"),
            Challenge {
                scope: Some("open".to_owned()),
                ..Challenge::default()
            }
        );
    }
}
