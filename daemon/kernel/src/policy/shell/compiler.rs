//! Compilers and linkers: options that make them run another program, load code, or take further
//! options from a file.

/// The names of compilers and linkers. A name may have a target before it and a version after it:
/// `x86_64-linux-gnu-gcc-12`.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "cc", "c++", "c89", "c99", "cpp", "gcc", "g++", "clang", "clang++", "clang-cpp", "gfortran", "gnat", "gdc", "gccgo", "flang", "icx",
    "icpx", "nvcc", "tcc", "ld", "ld.bfd", "ld.gold", "ld.lld", "lld", "gold", "mold", "javac", "javadoc", "kotlinc", "scalac", "rustc",
];

/// How options begin that run or load something, or that pass on further options. A dash more makes
/// no difference.
#[rustfmt::skip]
const RUNNING: &[&str] = &[
    "wrapper", "specs", "B", "prefix", "fplugin", "fpass-plugin", "iplugindir", "plugin", "load", "Xlinker", "Xassembler",
    "Xpreprocessor", "Xclang", "Xcompiler", "Xptxas", "Xplugin", "Xcompiler-plugin", "config", "gcc-toolchain", "ld-path", "ccc-", "ccbin",
    "compiler-bindir", "options-file", "optf", "run", "J", "processor", "doclet", "taglet", "script", "C", "codegen", "Z", "extern",
];

/// What may come after `-Wl,`. It changes only how the result is linked.
#[rustfmt::skip]
const LINKING: &[&str] = &[
    "-rpath", "-rpath-link", "-as-needed", "-no-as-needed", "-z", "-gc-sections", "-soname", "-whole-archive", "-no-whole-archive",
    "-start-group", "-end-group", "-export-dynamic", "-E", "-Bstatic", "-Bdynamic", "-Bsymbolic", "-no-undefined", "-undefined",
    "-dead_strip", "-O1", "-O2", "-hash-style", "-build-id", "-strip-all", "-strip-debug", "-s", "-S", "-allow-multiple-definition",
    "-headerpad_max_install_names", "-install_name", "-icf", "-fatal-warnings", "-no-fatal-warnings", "-allow-shlib-undefined",
    "-exclude-libs", "-enable-new-dtags", "-disable-new-dtags", "-stack_size", "-stack", "-subsystem", "-sort-common", "-print-memory-usage",
];

/// Whether a name is one of a compiler or a linker.
pub(super) fn is_compiler(name: &str) -> bool {
    let version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    let bare = name.trim_end_matches(version);
    let is_named = |name: &str| NAMES.contains(&name);
    let has_target = |name: &str| {
        name.rsplit_once('-')
            .is_some_and(|(_, last)| is_named(last))
    };
    [name, bare]
        .iter()
        .any(|name| is_named(name) || has_target(name))
}

/// Whether an argument makes a compiler run or load something.
pub(super) fn runs(argument: &str) -> bool {
    if argument.starts_with('@') {
        // A file with further options.
        return true;
    }
    let Some(option) = argument.strip_prefix('-') else {
        return false;
    };
    if let Some(passed) = option.strip_prefix("Wl,") {
        return !passed.split([',', '=']).all(is_linking);
    }
    if let Some(passed) = option.strip_prefix("Wp,") {
        return !passed
            .split(',')
            .all(|it| it.starts_with("-D") || it.starts_with("-U"));
    }
    // The name of a linker is no path.
    if let Some(linker) = option.strip_prefix("fuse-ld=") {
        return linker.contains('/');
    }
    let name = option.strip_prefix('-').unwrap_or(option);
    option.starts_with("Wa,") || RUNNING.iter().any(|start| name.starts_with(start))
}

fn is_linking(part: &str) -> bool {
    let Some(option) = part.strip_prefix('-') else {
        // A value. It must not be a file of options.
        return !part.starts_with('@');
    };
    let option = option.strip_prefix('-').unwrap_or(option);
    LINKING
        .iter()
        .any(|listed| listed.strip_prefix('-') == Some(option))
}
