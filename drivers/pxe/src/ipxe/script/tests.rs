use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::ipxe::InvalidArgument;

fn url(raw: &str) -> Url {
    raw.parse().unwrap()
}

fn kernel(arguments: &[(&str, &str)]) -> Kernel {
    let arguments = arguments.iter().map(|(key, value)| Argument::new(key, value).unwrap());
    Kernel {
        kernel: url("http://10.78.0.1:6386/kernel"),
        initrd: url("http://10.78.0.1:6386/ramdisk"),
        arguments: arguments.collect(),
    }
}

#[track_caller]
fn check(script: Script, want: Expect) {
    want.assert_eq(&script.to_string());
}

#[test]
fn a_kernel_is_loaded_until_it_runs() {
    let boot = kernel(&[("ipa-api-url", "http://10.78.0.1:6386"), ("console", "ttyS0,115200n8")]);
    check(
        Script::boot(&boot).unwrap(),
        expect![[r#"
        #!ipxe
        :again
        imgfree
        kernel --name kernel http://10.78.0.1:6386/kernel initrd=initrd ipa-api-url=http://10.78.0.1:6386 console=ttyS0,115200n8 || goto failed
        initrd --name initrd http://10.78.0.1:6386/ramdisk || goto failed
        boot || goto failed
        :failed
        echo The system could not be loaded, trying again in 5 seconds
        sleep 5
        goto again
    "#]],
    );
}

#[test]
fn an_iso_image_is_booted_until_it_runs() {
    check(
        Script::iso(&url("http://10.78.0.1/live.iso?token=a$b")).unwrap(),
        expect![[r#"
        #!ipxe
        :again
        sanboot --no-describe http://10.78.0.1/live.iso?token=a%24b || goto failed
        :failed
        echo The image could not be booted, trying again in 5 seconds
        sleep 5
        goto again
    "#]],
    );
    assert!(Script::iso(&url("https://10.78.0.1/live.iso")).is_err());
}

#[test]
fn a_reason_is_printed_and_never_executed() {
    let reason = "no lease; ${net0/mac} || shell\n&& # \u{202e}ünknown \\";
    check(
        Script::refuse(reason),
        expect![[r#"
        #!ipxe
        echo Not booting: no lease? ??net0/mac? ?? shell ?? ? ??nknown ?
        sleep 5
        exit
    "#]],
    );
}

#[test]
fn a_machine_that_waits_asks_again() {
    let again = url("http://10.78.0.1:6386/boot/52-54-00-78-00-01?x=${ip}");
    let script = Script::wait("not accepted yet", &again, Duration::from_secs(10)).unwrap();
    check(
        script,
        expect![[r#"
        #!ipxe
        echo Waiting: not accepted yet
        :again
        sleep 10
        chain --replace --autofree http://10.78.0.1:6386/boot/52-54-00-78-00-01?x=%24{ip} || goto again
    "#]],
    );
}

#[track_caller]
fn check_refused(key: &str, value: &str, want: Expect) {
    want.assert_eq(&Argument::new(key, value).unwrap_err().to_string());
}

#[test]
fn an_argument_that_would_be_more_than_one_word_is_refused() {
    check_refused("a", "b c", expect!["the kernel argument a cannot hold ' '"]);
    check_refused("a", "b\nshell", expect![[r#"the kernel argument a cannot hold '\n'"#]]);
    check_refused("a", "${net0/mac}", expect!["the kernel argument a cannot hold '$'"]);
    check_refused("a", "b#c", expect!["the kernel argument a cannot hold '#'"]);
    check_refused("a", "\"b", expect![[r#"the kernel argument a cannot hold '"'"#]]);
    check_refused("a", "b\\", expect![[r#"the kernel argument a cannot hold '\\'"#]]);
    check_refused("a", "ü", expect!["the kernel argument a cannot hold 'ü'"]);
    check_refused("", "b", expect![[r#""" cannot be the name of a kernel argument"#]]);
    check_refused("--", "b", expect![[r#""--" cannot be the name of a kernel argument"#]]);
    check_refused("a b", "c", expect![[r#""a b" cannot be the name of a kernel argument"#]]);
    check_refused("||", "c", expect![[r#""||" cannot be the name of a kernel argument"#]]);
}

#[test]
fn a_url_that_ipxe_would_misread_is_refused() {
    let refused = |raw: &str| Script::wait("", &url(raw), PAUSE).unwrap_err().to_string();
    expect!["iPXE cannot load http://10.0.0.1/k"]
        .assert_eq(&refused("http://me:secret@10.0.0.1/k"));
    expect!["iPXE cannot load file:///etc/passwd"].assert_eq(&refused("file:///etc/passwd"));
    expect!["iPXE cannot load https://10.0.0.1/k"].assert_eq(&refused("https://10.0.0.1/k"));
    expect!["iPXE cannot load http://10.0.0.1/k#f"].assert_eq(&refused("http://10.0.0.1/k#f"));
}

#[test]
fn arguments_that_linux_would_cut_off_are_refused() {
    let boot = kernel(&[("a", &"x".repeat(2040))]);
    assert_eq!(Script::boot(&boot), Err(InvalidScript::TooLong { length: 2056 }));
}

proptest! {
    /// Every line begins with one of our own commands, and nothing is expanded.
    #[test]
    fn no_text_adds_a_command(reason: String, key: String, value: String, path: String) {
        let mut asked = url("http://10.78.0.1/");
        asked.set_path(&path);
        asked.set_query(Some(&reason));
        let arguments = [Argument::new(&key, &value), Argument::new("a", &value)];
        let arguments = arguments.into_iter().flatten().collect();
        let boot = Kernel { kernel: asked.clone(), initrd: asked.clone(), arguments };

        let scripts = [
            (Script::boot(&boot).ok(), 10),
            (Some(Script::refuse(&reason)), 4),
            (Script::wait(&reason, &asked, PAUSE).ok(), 5),
        ];
        for (script, lines) in scripts {
            let Some(script) = script.map(|script| script.to_string()) else { continue };
            prop_assert_eq!(script.lines().count(), lines, "{}", script);
            prop_assert!(script.bytes().all(|octet| octet == b'\n' || (32..127).contains(&octet)));
            prop_assert!(!script.contains('$') && !script.contains("\\\n"), "{}", script);
            let ours = ["|| goto failed", "|| goto again"];
            let rest = ours.iter().fold(script.replace("#!ipxe", ""), |text, own| text.replace(own, ""));
            for word in rest.split_whitespace() {
                prop_assert!(!matches!(word, "||" | "&&" | ";") && !word.starts_with('#'), "{}", script);
            }
        }
    }

    #[test]
    fn an_argument_is_one_word(key in "[ -~]{0,6}", value in "[ -~]{0,12}") {
        match Argument::new(&key, &value) {
            Ok(argument) => {
                let text = argument.to_string();
                prop_assert_eq!(text.split_whitespace().collect::<Vec<_>>(), [format!("{key}={value}")]);
                prop_assert!(!text.contains('$') && !text.contains('"'));
            }
            Err(InvalidArgument::Key { .. }) => prop_assert!(Argument::flag(&key).is_err()),
            Err(InvalidArgument::Character { character, .. }) => prop_assert!(value.contains(character)),
        }
    }
}
