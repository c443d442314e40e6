//! Repositories that try to make git run their programs.

use super::*;

const HOOKS: [&str; 3] = [
    "post-checkout",
    "post-index-change",
    "reference-transaction",
];

/// Configures every kind of program that git can run; each one leaves a mark if it runs.
fn set_traps(lab: &Lab) {
    let repository = lab.repository();
    let trap = |name: &str| {
        let program = lab.path("programs").join(name);
        write_program(&program, &format!("echo ran >> {}", mark(lab, name)));
        program.to_str().unwrap().to_owned()
    };
    let set = |key: &str, value: &str| {
        lab.git(&repository, &["config", key, value]);
    };
    let both = |name: &str| {
        let cat = format!("{}; cat", trap(name));
        for key in ["smudge", "clean"] {
            set(&format!("filter.{name}.{key}"), &cat);
        }
        set(&format!("filter.{name}.required"), "true");
    };
    lab.write("a.smudge", "a\n");
    lab.write("b.late", "b\n");
    lab.write("c.process", "c\n");
    let attributes =
        "*.smudge filter=smudge\n*.late filter=late.one=two\n*.process filter=process\n";
    lab.write(".gitattributes", attributes);
    lab.commit_all();
    for hook in HOOKS {
        let program = repository.join(".git/hooks").join(hook);
        write_program(&program, &format!("echo ran >> {}", mark(lab, hook)));
    }
    both("smudge");
    set("filter.process.process", &trap("process"));
    set("filter.process.required", "true");
    // A filter that is only in the worktree configuration, with a name that is easily misread.
    let late = format!(
        "[filter \"late.one=two\"]\nsmudge = {0}; cat\nclean = {0}; cat\nrequired = true\n",
        trap("late")
    );
    write(&lab.path("programs/late.config"), &late);
    let included = lab.path("programs/late.config");
    set(
        "includeIf.gitdir:**/.git/worktrees/**.path",
        included.to_str().unwrap(),
    );
    set("core.fsmonitor", &trap("monitor"));
}

fn mark(lab: &Lab, name: &str) -> String {
    let mark = lab.path(&format!("mark-{name}"));
    mark.to_str().unwrap().to_owned()
}

fn marks(lab: &Lab) -> Vec<&'static str> {
    let all = [&HOOKS[..], &["smudge", "late", "monitor", "process"]].concat();
    let there = |name: &&str| Path::new(&mark(lab, name)).exists();
    all.into_iter().filter(there).collect()
}

/// Adds a worktree without our settings, as a user would; this may fail.
fn add_plainly(lab: &Lab, settings: &[&str], name: &str) {
    let mut git = Command::new("git");
    git.args(settings)
        .args(["worktree", "add", "--detach", name])
        .env_clear()
        .envs(lab.env())
        .current_dir(lab.repository());
    git.output().unwrap();
}

#[tokio::test]
async fn no_hook_filter_or_monitor_of_the_repository_runs() {
    let lab = Lab::new();
    set_traps(&lab);
    assert_eq!(marks(&lab), Vec::<&str>::new());

    let worktree = lab.create().await;
    assert_eq!(read(&worktree.path.join("b.late")), "b\n");
    assert_eq!(
        worktree.filters_off,
        ["late.one=two", "process", "smudge"].map(str::to_owned)
    );
    write(&worktree.path.join("a.smudge"), "changed\n");
    write(&worktree.path.join("c.process"), "changed\n");
    let Contents::Changed(changes) = lab.only().await.contents else {
        panic!("two files were changed");
    };
    assert_eq!(changes.files, ["a.smudge", "c.process"]);
    write(&worktree.path.join("a.smudge"), "a\n");
    write(&worktree.path.join("c.process"), "c\n");
    assert_eq!(lab.settle(&worktree).await.unwrap(), Settled::Removed);
    assert_eq!(marks(&lab), Vec::<&str>::new(), "something ran");
    lab.assert_nothing_left();

    // Git without our settings runs every one of these programs, so the test is valid.
    let no_process = ["filter.process.process=", "filter.process.required=false"];
    let no_process = ["-c", no_process[0], "-c", no_process[1]];
    add_plainly(&lab, &no_process, "../plain");
    add_plainly(&lab, &[], "../fails");
    let path = lab.path("plain");
    lab.git(&path, &[&no_process[..], &["status"]].concat());
    let all = [&HOOKS[..], &["smudge", "late", "monitor", "process"]].concat();
    assert_eq!(marks(&lab), all);
}

#[tokio::test]
async fn git_variables_of_the_caller_do_not_select_another_repository() {
    let lab = Lab::new();
    let elsewhere = lab.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    lab.git(&elsewhere, &["init", "--quiet"]);
    let mut env = lab.env();
    let git_dir = elsewhere.join(".git").to_str().unwrap().to_owned();
    env.insert("GIT_DIR".to_owned(), git_dir);
    env.insert("GIT_INDEX_FILE".to_owned(), "/nowhere/index".to_owned());
    env.insert("GIT_CONFIG".to_owned(), "/dev/null".to_owned());
    let made = lab.create_with(&env);
    let worktree = made.await.unwrap();
    assert_eq!(worktree.repository, lab.repository());
    let settled = lab.worktrees.settle(&worktree, &env).await.unwrap();
    assert_eq!(settled, Settled::Removed);
}

#[tokio::test]
async fn nothing_is_downloaded_for_a_partial_clone() {
    let lab = Lab::new();
    let source = lab.repository();
    lab.git(&source, &["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", source.display());
    let clone = [
        "clone",
        "--quiet",
        "--filter=blob:none",
        "--no-checkout",
        &url,
        "partial",
    ];
    lab.git(&lab.path(""), &clone);
    let error = lab.try_create(&lab.path("partial")).await.unwrap_err();
    assert!(
        matches!(error, WorktreeError::PartialClone { .. }),
        "{error}"
    );
    assert!(!lab.path("partial/.git/worktrees").exists());
    lab.assert_nothing_left();
}
