use super::*;

/// Fifty million bytes, of which only the head and the tail stay in memory.
#[tokio::test]
async fn a_large_output_is_kept_in_a_file_and_not_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = Capture::new(folder.path().to_owned());
    let line = b"0123456789abcdef\n";
    let chunk = line.repeat(1000);
    let mut most = 0;
    let rounds = 50_000_000 / chunk.len() + 1;
    for _ in 0..rounds {
        capture.push(&chunk).await;
        most = most.max(capture.kept());
    }
    capture.push(b"the end\n").await;
    assert!(most <= 128 * 1024, "{most} bytes were kept");
    let total = rounds * chunk.len() + 8;
    let text = capture.finish().await;
    let saved = std::fs::read_dir(folder.path()).unwrap().next();
    let path = saved.unwrap().unwrap().path();
    assert_eq!(path.metadata().unwrap().len(), total as u64);
    let start = format!(
        "Output too large to read at once (47.7 MB). Saved to: {}\n",
        path.display()
    );
    assert!(text.starts_with(&start), "{text}");
    assert!(text.contains("Preview (first 500 chars):\n0123456789abcdef\n"));
    let end = format!("Preview (last 2000 chars of {total} bytes):\n");
    assert!(text.contains(&end), "{text}");
    assert!(text.ends_with("0123456789abcdef\nthe end"), "{text}");
    assert!(text.len() < 4000);
}

#[tokio::test]
async fn every_size_around_the_bounds_is_saved_whole() {
    for size in [
        0,
        1,
        51_200,
        51_201,
        HEAD - 1,
        HEAD,
        HEAD + 1,
        HEAD + TAIL,
        HEAD + 5 * TAIL,
    ] {
        for step in [1 << 10, 1 << 20] {
            let folder = tempfile::tempdir().unwrap();
            let mut capture = Capture::new(folder.path().to_owned());
            let output: Vec<u8> = (b'a'..=b'z').cycle().take(size).collect();
            for chunk in output.chunks(step) {
                capture.push(chunk).await;
            }
            let text = capture.finish().await;
            let whole = String::from_utf8(output).unwrap();
            let saved = std::fs::read_dir(folder.path()).unwrap().next();
            match saved {
                None => assert_eq!(text, whole, "{size}"),
                Some(saved) => {
                    let kept = std::fs::read_to_string(saved.unwrap().path()).unwrap();
                    assert!(
                        kept == whole,
                        "{size} in steps of {step} was not saved whole"
                    );
                    assert!(text.ends_with(large_output::last_chars(&whole, TAIL_CHARS)));
                    assert!(size > 51_200);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_the_ends_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("file");
    std::fs::write(&scratch, "").unwrap();
    let mut capture = Capture::new(scratch);
    capture.push(&b"x".repeat(200_000)).await;
    capture.push(b"end").await;
    let text = capture.finish().await;
    assert!(text.contains("saving it failed"), "{text}");
    assert!(text.ends_with("xend"), "{text}");
}

#[tokio::test]
async fn invalid_text_is_replaced_and_line_ends_are_trimmed() {
    let folder = tempfile::tempdir().unwrap();
    let mut capture = Capture::new(folder.path().to_owned());
    capture.push(b"a\xffb\n").await;
    capture.push("ü".as_bytes().get(..1).unwrap()).await;
    capture.push("ü".as_bytes().get(1..).unwrap()).await;
    capture.push(b"\r\n\n").await;
    assert_eq!(capture.finish().await, "a\u{fffd}b\nü");
}
