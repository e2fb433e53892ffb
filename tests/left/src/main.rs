#![doc = include_str!("../README.md")]

use std::path::PathBuf;
use std::process::ExitCode;

use left::{Search, canary, known};

fn main() -> anyhow::Result<ExitCode> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut made = Vec::new();
    for path in &paths {
        made.extend(known(path)?);
    }
    let search = Search::of(canary::ALL.into_iter().chain(made.iter().map(String::as_str)))?;
    let (mut finds, mut looked) = (Vec::new(), 0);
    for path in &paths {
        looked += search.path(path, &mut finds)?;
    }
    for find in &finds {
        eprintln!("{}: holds {:?}, {}", find.file.display(), find.secret, find.how);
    }
    if looked == 0 {
        eprintln!("there is nothing to look at: name files and folders that are there");
        return Ok(ExitCode::FAILURE);
    }
    eprintln!(
        "looked for {} canaries and {} secrets that were made in {looked} files: {} found",
        canary::ALL.len(),
        made.len(),
        finds.len()
    );
    Ok(if finds.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
