//! The folders of a project that a session looks into.

use std::path::{Path, PathBuf};

/// The most folders of a project that are searched, from the session's folder up.
const MOST_FOLDERS: usize = 32;

/// Returns the folders from the root of a project down to `cwd`.
pub fn project_folders(cwd: &Path, root: &Path) -> Vec<PathBuf> {
    let inside = cwd
        .ancestors()
        .take_while(|folder| folder.starts_with(root));
    let mut folders: Vec<PathBuf> = inside.take(MOST_FOLDERS).map(Path::to_owned).collect();
    if folders.last().is_none_or(|last| last != root) {
        folders.push(root.to_owned());
    }
    folders.reverse();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_go_from_the_root_down() {
        let folders = |cwd: &str, root: &str| -> Vec<String> {
            let folders = project_folders(Path::new(cwd), Path::new(root));
            let shown = folders.iter().map(|folder| folder.display().to_string());
            shown.collect()
        };
        assert_eq!(folders("/a/b/c", "/a"), ["/a", "/a/b", "/a/b/c"]);
        assert_eq!(folders("/a", "/a"), ["/a"]);
        let deep = format!("/a{}", "/x".repeat(100));
        let found = folders(&deep, "/a");
        assert_eq!(found.first().map(String::as_str), Some("/a"));
        assert_eq!(found.last(), Some(&deep));
        assert_eq!(found.len(), MOST_FOLDERS + 1);
    }
}
