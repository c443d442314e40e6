//! Finds front matter that is not where it is read: below empty lines or a comment, behind spaces, between
//! more than three dashes, or with line ends that are none here. It may restrict the file, so that a file
//! with it is not read as one without.

use std::path::Path;

use super::Problem;
use super::lenient::is_key;

/// Returns what is wrong with a file that has no front matter, if its text begins with what was meant as
/// such.
pub(super) fn find(path: &Path, text: &str) -> Option<Problem> {
    let text = text.replace("\r\n", "\n");
    let mut lines = text.split(['\n', '\r']).map(bare).enumerate();
    let mut below_comment = false;
    let mut in_comment = false;
    let (opened, _) = lines.find(|(_, line)| {
        let begins = !in_comment && line.starts_with("<!--");
        if begins || in_comment {
            below_comment = true;
            in_comment = !line.ends_with("-->");
            return false;
        }
        let is_remark = line.starts_with('#') || line.starts_with("//");
        below_comment |= is_remark;
        !line.is_empty() && !is_remark
    })?;
    let mut lines = text.split(['\n', '\r']).skip(opened);
    if !is_fence(lines.next()?) {
        return None;
    }
    let matter: Vec<&str> = lines.collect();
    let end = matter.iter().position(|line| is_fence(line));
    let matter = matter.get(..end.unwrap_or(matter.len()))?;
    let mut said = matter.iter().filter(|line| !is_silent(line));
    let is_matter = if below_comment {
        // A heading and a line across the page look the same; the text below them does not.
        end.is_some() && said.clone().any(|line| is_member(line)) && said.all(|line| fits(line))
    } else {
        said.next().is_some_and(|line| is_member(line))
    };
    let what = "what looks like front matter is not read as such, so the file is not used: it begins with a line \
                of three dashes, which is the first line of the file, and its lines end with a line feed";
    is_matter.then(|| Problem::at(path, opened + 1, what))
}

/// Takes away what cannot be seen at the ends of a line.
fn bare(line: &str) -> &str {
    line.trim_matches(|it: char| it.is_whitespace() || matches!(it, '\u{feff}' | '\u{200b}'))
}

/// Whether a line was meant to open or close front matter.
fn is_fence(line: &str) -> bool {
    let line = bare(line);
    let rest = line.trim_start_matches('-');
    let is_comment = rest.trim_start().starts_with('#') && rest.starts_with(char::is_whitespace);
    line.len() - rest.len() >= 3 && (rest.is_empty() || is_comment)
}

fn is_silent(line: &str) -> bool {
    let line = bare(line);
    line.is_empty() || line.starts_with('#')
}

fn is_member(line: &str) -> bool {
    let member = bare(line).split_once(':');
    member.is_some_and(|(key, value)| {
        is_key(key) && (value.is_empty() || value.starts_with(char::is_whitespace))
    })
}

/// Whether a line can be one of front matter: a member, or what belongs to the member above it.
fn fits(line: &str) -> bool {
    is_member(line) || line.starts_with([' ', '\t', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restrictions_are_found_wherever_they_were_meant() {
        for text in [
            "\n---\nallowed-tools: Read\n---\nGo",
            "\u{feff}\u{feff}---\nallowed-tools: Read\n---\nGo",
            " ---\nallowed-tools: Read\n---\nGo",
            "\n---\nallowed-tools: Read\nGo",
            "----\nallowed-tools: Read\n----\nGo",
            "--- # settings\nallowed-tools: Read\n---\nGo",
            "---\rallowed-tools: Read\r---\rGo",
            "\r---\r\nallowed-tools: Read\r\n---\r\nGo",
            "# settings\n---\nallowed-tools:\n  - Read\n---\nGo",
            "<!-- by\nme -->\n\n---\n# only\n'allowed-tools': [Read]\n---\nGo",
        ] {
            assert!(find(Path::new("f"), text).is_some(), "{text:?}");
        }
    }

    #[test]
    fn plain_text_with_lines_across_the_page_is_none() {
        for text in [
            "",
            "Go\n---\nallowed-tools: Read\n---\n",
            "\n---\nGo on.\n---\n",
            "# Title\n---\nNote: read this.\nIt matters.\n---\n",
            "# Title\n---\nNote: read this.",
            "----\n| a | b |\n",
            "-- \nname: a\n",
            "<!-- never closed\n---\nname: a\n---\n",
        ] {
            assert!(find(Path::new("f"), text).is_none(), "{text:?}");
        }
    }
}
