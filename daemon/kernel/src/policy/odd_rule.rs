//! Rules that match nothing of what they seem to be about: quotes around a path, several names in one
//! rule, a host with a path but without its scheme. Whoever writes one means something else, so none of
//! them is taken as it stands.

use loopd_proto::visible::visible;

use super::{canonical, url};

/// Why a rule matches nothing of what it seems to be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OddRule {
    /// No request can have what it names.
    MatchesNothing(&'static str),
    /// It is about a file only if there is one with exactly this name.
    OddName(&'static str),
}

impl OddRule {
    /// Returns why, as the end of a sentence that begins with the rule.
    pub fn why(&self) -> &'static str {
        match self {
            Self::MatchesNothing(why) | Self::OddName(why) => why,
        }
    }
}

const NOTHING: &str =
    "says nothing between its parentheses; leave them out, or write what it is about";
const QUOTED: &str = "is in quotes, which would belong to the name; leave them out";
const SEVERAL: &str =
    "has a comma in it, which would belong to the name; write a rule for each name";
const BACKSLASH: &str =
    "has a backslash in it, which would belong to the name; write the name as it is";
const HIDDEN: &str = "has characters in it that cannot be seen; write it anew";
const ADDRESS: &str = "is an address and no path; write the path alone";
const NEGATED: &str = "begins with `!`, which would belong to the name; leave it out";
const BLANK: &str = "has a blank in it, which no such name has; write a rule for each name";
const PATTERN: &str =
    "has a pattern in it, which rules of this kind do not know; write the name out";
const NO_ARGUMENT: &str =
    "has words in parentheses, which mean nothing for this kind of rule; leave them out";
const DOMAIN: &str = "begins with `domain:`; write the host alone";
const SCHEME: &str = "has a path without a scheme; write the host alone, or begin with `https://`";
const STAR: &str = "has a `*` that cannot be compared; it may stand only at the beginning of a host, as in `*.example.com`";
const UNREADABLE: &str =
    "is an address that can be read in two ways; write scheme, host and path alone";

/// Returns why a rule matches nothing of what it seems to be about, if so. `argument` is what stands in its
/// parentheses, without blanks at the ends and before paths are made absolute. `policy::shell::rule` reads
/// the rules about commands.
pub fn oddity(kind: &str, argument: &str) -> Option<OddRule> {
    use OddRule::{MatchesNothing, OddName};
    if argument.is_empty() {
        return Some(MatchesNothing(NOTHING));
    }
    let is_hidden = visible(argument) != argument || argument.contains(['\n', '\t']);
    match canonical(kind) {
        "shell" => is_hidden.then_some(MatchesNothing(HIDDEN)),
        "read" | "write" => {
            let found = [
                (is_hidden, HIDDEN),
                (is_quoted(argument), QUOTED),
                (argument.contains(','), SEVERAL),
                (argument.contains('\\'), BACKSLASH),
                (argument.contains("://"), ADDRESS),
                (argument.starts_with('!'), NEGATED),
            ];
            first(&found).map(OddName)
        }
        "url" => {
            let rest = argument.strip_prefix("*.").unwrap_or(argument);
            let (has_scheme, host) = match argument.split_once("://") {
                Some((_, host)) => (true, host.strip_prefix("*.").unwrap_or(host)),
                None => (false, rest),
            };
            let found = [
                (is_hidden, HIDDEN),
                (has_quote(argument), QUOTED),
                (argument.contains(','), SEVERAL),
                (argument.contains(char::is_whitespace), BLANK),
                (argument.starts_with("domain:"), DOMAIN),
                (host.contains('*'), STAR),
                (
                    !has_scheme && host.trim_end_matches('/').contains('/'),
                    SCHEME,
                ),
                (has_scheme && !url::is_readable(argument), UNREADABLE),
            ];
            first(&found).map(MatchesNothing)
        }
        "look" => Some(MatchesNothing(NO_ARGUMENT)),
        "mcp" => {
            // The name of a server may have a blank in it.
            let found = [
                (is_hidden, HIDDEN),
                (has_quote(argument), QUOTED),
                (argument.contains(','), SEVERAL),
                (argument.contains(['*', '?', '(']), PATTERN),
            ];
            first(&found).map(MatchesNothing)
        }
        _ => {
            let found = [
                (is_hidden, HIDDEN),
                (has_quote(argument), QUOTED),
                (argument.contains(','), SEVERAL),
                (argument.contains(char::is_whitespace), BLANK),
                (argument.contains(['*', '?', '(']), PATTERN),
            ];
            first(&found).map(MatchesNothing)
        }
    }
}

fn first(found: &[(bool, &'static str)]) -> Option<&'static str> {
    found.iter().find(|(is_so, _)| *is_so).map(|(_, why)| *why)
}

fn has_quote(text: &str) -> bool {
    text.contains(['"', '\'', '`'])
}

/// Whether a quote stands at an end of a text.
fn is_quoted(text: &str) -> bool {
    text.starts_with(['"', '\'', '`']) || text.ends_with(['"', '\'', '`'])
}

/// Returns a text without the quotes around it.
pub(super) fn without_quotes(text: &str) -> &str {
    let inner = ['"', '\'', '`'].into_iter().find_map(|quote| {
        let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
        Some(inner.trim())
    });
    inner.filter(|inner| !inner.is_empty()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_rules_match_nothing_of_what_they_seem_to_be_about() {
        let table = [
            ("read", "", Some(NOTHING)),
            ("read", "\"secret.txt\"", Some(QUOTED)),
            ("read", "'secret.txt'", Some(QUOTED)),
            ("write", "a,b", Some(SEVERAL)),
            ("write", "a, b", Some(SEVERAL)),
            ("read", "a\\ b", Some(BACKSLASH)),
            ("read", "secret\u{200b}.txt", Some(HIDDEN)),
            ("read", "file:///etc/passwd", Some(ADDRESS)),
            ("read", "!x", Some(NEGATED)),
            ("read", "my secret.txt", None),
            ("read", "it's", None),
            ("write", "/a/b", None),
            ("url", "example.com", None),
            ("url", "*.example.com", None),
            ("url", "localhost:80", None),
            ("url", "https://example.com/a", None),
            ("url", "https://*.example.com/a", None),
            ("url", "example.com/", None),
            ("url", "example.com/a", Some(SCHEME)),
            ("url", "https://example.com/*", Some(STAR)),
            ("url", "exam*le.com", Some(STAR)),
            ("url", "domain:example.com", Some(DOMAIN)),
            ("url", "a.b, c.d", Some(SEVERAL)),
            ("url", "a.b c.d", Some(BLANK)),
            ("url", "\"a.b\"", Some(QUOTED)),
            ("url", "https://a@b", Some(UNREADABLE)),
            ("mcp", "github/get_issue", None),
            ("mcp", "My Server", None),
            ("mcp", "github/*", Some(PATTERN)),
            ("mcp", "github(get_issue)", Some(PATTERN)),
            ("mcp", "a,b", Some(SEVERAL)),
            ("custom-tool", "look_up", None),
            ("custom-tool", "look*", Some(PATTERN)),
            ("custom-tool", "a b", Some(BLANK)),
            ("look", "src", Some(NO_ARGUMENT)),
            ("shell", "git push", None),
            ("commands", "r\u{200b}m", Some(HIDDEN)),
        ];
        for (kind, argument, expected) in table {
            let found = oddity(kind, argument);
            assert_eq!(found.map(|it| it.why()), expected, "{kind}({argument})");
        }
    }
}
