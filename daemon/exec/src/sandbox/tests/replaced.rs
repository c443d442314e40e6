//! Links in the place of the scratch folder or of a folder above it.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const WRITE: &str = "echo x > \"$TMPDIR/written.txt\"";

#[tokio::test]
async fn a_link_in_the_place_of_a_folder_above_is_not_followed() {
    for depth in ["scratch", "state/scratch", "state/scratch/deep"] {
        let mut project = Project::new().await;
        let home = project.folder.path();
        let first = home.join(depth.split('/').next().unwrap());
        symlink(project.path(), &first).unwrap();
        project.sandbox = Sandbox::new(home.join(depth));
        let before = project.look();
        let mut shell = project.confined(Backend::Process).await;
        let error = shell.start(WRITE).await.unwrap_err().to_string();
        let link = first.display().to_string();
        assert!(
            error.contains(&link) && error.contains("is a link"),
            "{error}"
        );
        assert_eq!(project.changes(&before), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_folder_that_was_replaced_is_made_anew() {
    let project = Project::new().await;
    let mut shell = project.confined(Backend::Process).await;
    let (said, end) = run(&mut shell, WRITE).await;
    assert_eq!(end, CommandEnd::Exited(0), "{said}");
    let first = project.made();
    let mode = std::fs::metadata(&first).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    std::fs::rename(&first, project.folder.path().join("moved")).unwrap();
    symlink(project.path(), &first).unwrap();
    let before = project.look();
    let (said, end) = run(&mut shell, WRITE).await;
    assert_eq!(end, CommandEnd::Exited(0), "{said}");
    assert_eq!(project.changes(&before), Vec::<String>::new());
}

#[tokio::test]
async fn a_link_that_comes_while_a_command_runs_leads_nowhere() {
    let project = Project::new().await;
    let before = project.look();
    let mut shell = project.confined(Backend::Terminal).await;
    let (said, end) = run(&mut shell, WRITE).await;
    assert_eq!(end, CommandEnd::Exited(0), "{said}");
    let first = project.made();
    std::fs::rename(&first, project.folder.path().join("moved")).unwrap();
    symlink(project.path(), &first).unwrap();
    let (said, end) = run(&mut shell, WRITE).await;
    assert_ne!(end, CommandEnd::Exited(0), "{said}");
    assert_eq!(project.changes(&before), Vec::<String>::new());
}

#[tokio::test]
async fn a_home_behind_a_link_is_found() {
    let folder = TempDir::new().unwrap();
    let mut project = Project::new().await;
    let home = folder.path().join("home");
    symlink(project.folder.path(), &home).unwrap();
    project.processes = Processes::new(&home, KeepAlive::default());
    project.sandbox = Sandbox::new(home.join("scratch"));
    let mut shell = project.confined(Backend::Process).await;
    let (said, end) = run(&mut shell, WRITE).await;
    assert_eq!(end, CommandEnd::Exited(0), "{said}");
    assert!(project.made().join("written.txt").exists());
}
