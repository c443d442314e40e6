//! The identifier that a rule for a plain command uses: the program, and its subcommand if it has
//! one.
//!
//! An identifier is itself a plain command text, so no opaque text can look like one.

/// Programs whose second word says what they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "aws",
    "az",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "deno",
    "dnf",
    "docker",
    "dotnet",
    "flutter",
    "gcloud",
    "gem",
    "gh",
    "git",
    "glab",
    "go",
    "helm",
    "hg",
    "jj",
    "just",
    "kubectl",
    "make",
    "minikube",
    "mix",
    "npm",
    "nix",
    "pip",
    "pip3",
    "pipx",
    "pnpm",
    "podman",
    "poetry",
    "rails",
    "rustup",
    "snap",
    "svn",
    "swift",
    "systemctl",
    "terraform",
    "uv",
    "yarn",
    "yum",
    "zig",
];

/// Pairs of words that only name a group of subcommands. The third word belongs to the identifier.
const WITH_NESTED_SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("aws", &[]),
    ("az", &[]),
    (
        "docker",
        &[
            "buildx",
            "compose",
            "container",
            "image",
            "network",
            "volume",
        ],
    ),
    ("gcloud", &[]),
    ("gh", &[]),
    ("git", &["remote", "stash", "submodule", "worktree"]),
    ("glab", &[]),
    ("npm", &["run", "run-script"]),
    ("pnpm", &["run"]),
    ("uv", &["pip", "tool"]),
    ("yarn", &["run"]),
];

/// Returns the identifier of a command.
pub(crate) fn of(argv: &[String]) -> String {
    let words = match argv {
        [program, rest @ ..] if is_in(WITH_SUBCOMMANDS, program) => match rest {
            [] => 1,
            [first, ..] if !is_subcommand(first) => argv.len(),
            [first, second, ..] if is_group(program, first) => {
                if is_subcommand(second) {
                    3
                } else {
                    argv.len()
                }
            }
            _ => 2,
        },
        _ => 1,
    };
    let words: Vec<String> = argv.iter().take(words).map(|word| quoted(word)).collect();
    words.join(" ")
}

/// Whether a word is a subcommand. An option before the subcommand (`git -c ...`) can change what
/// the program does altogether.
fn is_subcommand(word: &str) -> bool {
    // `cargo +nightly` names a toolchain.
    !word.is_empty() && !word.starts_with(['-', '+'])
}

fn is_group(program: &str, subcommand: &str) -> bool {
    WITH_NESTED_SUBCOMMANDS
        .iter()
        .find(|(name, _)| *name == base_name(program))
        .is_some_and(|(_, groups)| groups.is_empty() || groups.contains(&subcommand))
}

fn is_in(programs: &[&str], program: &str) -> bool {
    programs.contains(&base_name(program))
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Quotes a word that would otherwise read as something else: `'git status'` is not `git status`.
fn quoted(word: &str) -> String {
    let is_simple =
        |character: char| character.is_ascii_alphanumeric() || "_-./:@%+,=".contains(character);
    if !word.is_empty() && word.chars().all(is_simple) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r#"'"'"'"#))
    }
}
