#![doc = include_str!("../README.md")]

use std::path::PathBuf;
use std::process::ExitCode;

use left::{Find, Search, canary, control, known};

fn main() -> anyhow::Result<ExitCode> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut made = Vec::new();
    for path in &paths {
        made.extend(known(path)?);
    }
    let fixed = canary::ALL.into_iter().chain(control::ALL);
    let search = Search::new(fixed.chain(made.iter().map(String::as_str)))?;
    let (mut finds, mut looked, mut blind) = (Vec::new(), 0, false);
    for path in &paths {
        let mut here = Vec::new();
        let files = search.path(path, &mut here)?;
        looked += files;
        let planted = |it: &Find| control::ALL.contains(&it.secret.as_str());
        let (controls, leaks): (Vec<Find>, Vec<Find>) = here.into_iter().partition(planted);
        finds.extend(leaks);
        let is_found = |it: &str| controls.iter().any(|find| find.secret == it);
        for control in control::ALL.into_iter().filter(|it| files > 0 && !is_found(it)) {
            eprintln!(
                "{}: the control text {control:?} was not found: nothing was kept, or the search cannot decode it",
                path.display()
            );
            blind = true;
        }
    }
    for find in &finds {
        eprintln!("{}: contains {:?} ({})", find.file.display(), find.secret, find.how);
    }
    if looked == 0 {
        eprintln!("nothing to search: give files or folders that exist");
        return Ok(ExitCode::FAILURE);
    }
    eprintln!(
        "searched {looked} files for {} canaries and {} generated secrets: {} found",
        canary::ALL.len(),
        made.len(),
        finds.len()
    );
    Ok(if finds.is_empty() && !blind { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
