//! Texts that no file may contain: folders of a developer's machine, and addresses of registries.

use tidy::{assert_none, text_files};

/// Written in pieces, so that this file does not contain them.
const UNWANTED: [&str; 7] = [
    concat!("..", "/shared"),
    concat!("/wo", "rk/"),
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("deb.", "debian.org"),
    concat!("registry.", "npmjs.org"),
];

#[test]
fn no_file_names_a_registry_or_a_developers_folder() {
    // Cargo's lock file contains the address of its registry.
    let files = text_files().into_iter().filter(|file| file.path != "Cargo.lock");
    let wrong = files.flat_map(|file| {
        let lines = file.text.lines().enumerate();
        let found = lines.flat_map(|(at, line)| {
            let words = UNWANTED.iter().filter(|word| line.contains(**word));
            words.map(|word| format!("{}:{}: {word}", file.path, at + 1)).collect::<Vec<_>>()
        });
        found.collect::<Vec<_>>()
    });
    assert_none("words that belong into no file", wrong);
}
