//! Tests of the completion scripts and the manual pages.

use crate::fixture::{BEDPLATE, Fixture};
use tokio::process::Command;

/// Runs a script in a shell, and checks that the shell prints no error. Skips if the shell is not installed.
async fn reads(shell: &str, script: &str) {
    if !peers::installed(shell) {
        return peers::skip(shell, "it is not installed");
    }
    let output = Command::new(shell).args(["-c", script]).env("BEDPLATE", BEDPLATE).output();
    let output = output.await.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{shell}: {error}");
}

#[tokio::test]
async fn shells_complete_nouns_verbs_and_options() {
    // Calls the completion as bash does for the word after "bedplate vm re".
    let bash = r#"
        eval "$("$BEDPLATE" completion bash)"
        COMP_WORDS=(bedplate vm re); COMP_CWORD=2
        _bedplate bedplate re vm
        [[ " ${COMPREPLY[*]} " == *" reboot "* && " ${COMPREPLY[*]} " == *" request "* ]]
    "#;
    reads("bash", bash).await;
    reads("zsh", r#"autoload -U compinit; compinit -u -D; eval "$("$BEDPLATE" completion zsh)"; (( $+functions[_bedplate] ))"#)
        .await;
    let fish = r#"$BEDPLATE completion fish | source; complete -C "bedplate vm re" | string match -q "reboot*""#;
    reads("fish", fish).await;
}

#[tokio::test]
async fn the_manual_has_a_page_for_each_command_with_its_statuses() {
    let given = Fixture::start().await;
    let said = given.run(&["man", "pages/man1"]).await.done();
    let folder = given.folder.path().join("pages/man1");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for name in
        ["bedplate.1", "bedplate-rack.1", "bedplate-vm-request.1", "bedplate-cluster-events.1"]
    {
        let page = read(name);
        assert!(page.contains("EXIT STATUS") && page.contains("timed out"), "{name}: {page}");
    }
    assert!(read("bedplate-rack-up.1").contains("\\-\\-timeout"));
    let count = std::fs::read_dir(&folder).unwrap().count();
    assert_eq!(said, format!("wrote {count} pages to pages/man1\n"));
    if !peers::installed("groff") {
        return peers::skip("groff", "it is not installed");
    }
    // groff reports invalid markup on standard error.
    let pages = std::fs::read_dir(&folder).unwrap().map(|page| page.unwrap().path());
    let output =
        Command::new("groff").args(["-man", "-Tutf8", "-Wbreak", "-z"]).args(pages).output();
    let output = output.await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
