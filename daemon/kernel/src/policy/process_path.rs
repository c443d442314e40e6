//! Paths that lead through what the system shows of a process, such as `/proc/self/cwd`. For each
//! process they lead elsewhere, so it is not known before a command runs what they name.

/// What a process has below its folder in `/proc` that leads elsewhere.
const LEADING: &[&str] = &["cwd", "root", "fd", "task", "map_files", "exe"];

/// Whether a path leads through a process.
pub(super) fn is_through_process(path: &str) -> bool {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let is_at_root = |at: usize| match at.checked_sub(1).and_then(|before| parts.get(before)) {
        Some(before) => *before == "..",
        None => path.starts_with('/'),
    };
    (0..parts.len()).any(|at| {
        is_at_root(at)
            && match parts.get(at..).unwrap_or_default() {
                // A path that is computed ends with the folder: `/proc/$$/cwd`.
                ["proc"] | ["dev", "stdin" | "stdout" | "stderr", _, ..] => true,
                ["proc", rest @ ..] => rest.iter().any(|part| LEADING.contains(part)),
                ["dev", "fd", rest @ ..] => rest.len() > 1 || rest.first() == Some(&".."),
                _ => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_through_a_process_are_told_from_others() {
        for path in [
            "/proc/self/cwd/x",
            "/proc/self/cwd",
            "//proc/./1/root/etc",
            "/proc/thread-self/fd/3/x",
            "/proc/self/task/1/cwd",
            "/project/../proc/self/cwd",
            "../../proc/self/cwd",
            "/dev/fd/3/x",
            "/dev/fd/../cwd",
            "/dev/stdin/../x",
            "/proc",
        ] {
            assert!(is_through_process(path), "{path}");
        }
        for path in [
            "/proc/cpuinfo",
            "/proc/self/status",
            "/dev/fd/3",
            "/dev/stderr",
            "proc/self/cwd",
            "/project/proc/a/root",
            "/project/dev/fd/a/b",
            "/dev/null",
        ] {
            assert!(!is_through_process(path), "{path}");
        }
    }
}
