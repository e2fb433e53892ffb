#![doc = include_str!("../README.md")]

use std::path::Path;
use std::process::ExitCode;

use left::{Search, canary};

fn main() -> anyhow::Result<ExitCode> {
    let (mut finds, mut looked) = (Vec::new(), 0);
    for path in std::env::args_os().skip(1) {
        looked += Search::of(&canary::ALL).path(Path::new(&path), &mut finds)?;
    }
    for find in &finds {
        eprintln!("{}: holds {:?}, {}", find.file.display(), find.canary, find.how);
    }
    if looked == 0 {
        eprintln!("there is nothing to look at: name files and folders that are there");
        return Ok(ExitCode::FAILURE);
    }
    eprintln!("looked for canaries in {looked} files: {} found", finds.len());
    Ok(if finds.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
