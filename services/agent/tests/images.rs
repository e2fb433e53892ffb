//! Tests that images of every format reach the disk, and that a faulty image leaves the disk unbootable.

#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails the test")]

#[expect(dead_code, reason = "each test program uses its part of the harness")]
mod harness;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::images::{self, Clusters};
use harness::{Machine, Reply, Request, Server, Setup, assert_failed, assert_unbootable};
use serde_json::json;

#[track_caller]
fn check_written(format: &str, served: Vec<u8>) {
    let machine = Machine::start();
    let bytes = served.clone();
    let server = Server::start(move |request| Reply::file(&request, &bytes));
    let ended = machine.write_image(images::info(&server.url("/image"), format, &served));
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
    assert_eq!(ended["command_result"]["deploy_step"]["step"], "write_image");
    let want = images::disk();
    let disk = machine.disk();
    assert!(disk[..want.len()] == want, "the disk is not the image");
    // Data behind the image stays, except at the end of the disk.
    assert!(disk[20 << 20..30 << 20].iter().all(|byte| *byte == 0xaa));
}

#[test]
fn raw_is_written() {
    check_written("raw", images::disk());
}

#[test]
fn gzip_is_written() {
    check_written("raw", images::gzip(&images::disk()));
}

#[test]
fn several_gzip_members_are_written() {
    let disk = images::disk();
    let (first, second) = disk.split_at(3 << 20);
    check_written("raw", [images::gzip(first), images::gzip(second)].concat());
}

#[test]
fn xz_is_written() {
    check_written("raw", images::xz(&images::disk()));
}

#[test]
fn zstd_is_written() {
    check_written("raw", images::zstd(&images::disk()));
}

#[test]
fn qcow2_is_written() {
    check_written("qcow2", images::qcow2(&images::disk(), Clusters::Plain, false));
}

#[test]
fn qcow2_with_its_tables_behind_the_data_is_written() {
    check_written("qcow2", images::qcow2(&images::disk(), Clusters::Plain, true));
}

#[test]
fn compressed_qcow2_is_written() {
    check_written("qcow2", images::qcow2(&images::disk(), Clusters::Deflated, true));
    check_written("qcow2", images::qcow2(&images::disk(), Clusters::Zstd, false));
}

/// Tests an image of QEMU itself, if QEMU is installed.
#[test]
fn qcow2_made_by_qemu_is_written() {
    if !peers::installed("qemu-img") {
        return peers::skip("qcow2_made_by_qemu_is_written", "qemu-img is not installed");
    }
    let folder = std::env::temp_dir().join(format!("agent-qemu-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&folder).unwrap();
    let raw = folder.join("raw");
    std::fs::write(&raw, images::disk()).unwrap();
    let ways: [&[&str]; 5] = [
        &["-O", "qcow2"],
        &["-O", "qcow2", "-c"],
        &["-O", "qcow2", "-o", "compat=0.10"],
        &["-O", "qcow2", "-c", "-o", "compression_type=zstd,cluster_size=4096"],
        &["-O", "qcow2", "-o", "preallocation=metadata,cluster_size=2M"],
    ];
    for way in ways {
        let out = folder.join("image");
        let mut convert = std::process::Command::new("qemu-img");
        let done = convert.args(["convert", "-f", "raw"]).args(way).arg(&raw).arg(&out).status();
        assert!(done.unwrap().success(), "{way:?}");
        check_written("qcow2", std::fs::read(&out).unwrap());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn qcow2_is_written_from_a_server_without_ranges() {
    let machine = Machine::start();
    for tables_last in [false, true] {
        let served = images::qcow2(&images::disk(), Clusters::Plain, tables_last);
        let bytes = served.clone();
        let server = Server::start(move |_| Reply::new(200, bytes.clone()));
        let ended = machine.write_image(images::info(&server.url("/image"), "qcow2", &served));
        assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
        assert!(machine.disk().starts_with(&images::disk()));
    }
}

#[track_caller]
fn check_refused(
    format: &str,
    served: Vec<u8>,
    serve: impl Fn(&Request, &[u8]) -> Reply + Send + Sync + 'static,
    kind: &str,
    sentence: &str,
) -> Vec<u8> {
    let machine = Machine::start();
    let good = images::disk();
    let (bad, right) = (served.clone(), good.clone());
    let server = Server::start(move |request| match request.path.as_str() {
        "/bad" => serve(&request, &bad),
        _ => Reply::file(&request, &right),
    });
    let ended = machine.write_image(images::info(&server.url("/bad"), format, &served));
    assert_failed(&ended, kind, sentence);
    let disk = machine.disk();

    // Once the cause is gone, the same agent writes a good image.
    let ended = machine.write_image(images::info(&server.url("/good"), "raw", &good));
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
    assert!(machine.disk().starts_with(&good));
    disk
}

#[test]
fn an_image_with_a_wrong_checksum_does_not_boot() {
    for (format, served) in [
        ("raw", images::disk()),
        ("raw", images::gzip(&images::disk())),
        ("raw", images::zstd(&images::disk())),
        ("qcow2", images::qcow2(&images::disk(), Clusters::Plain, false)),
    ] {
        let flip = |bytes: &[u8]| {
            let mut other = bytes.to_vec();
            let middle = other.len() / 2;
            other[middle] ^= 1;
            Reply::new(200, other)
        };
        let plain = format == "raw";
        let serve = move |request: &Request, bytes: &[u8]| match (plain, request.header("range")) {
            (false, Some(_)) => Reply::file(request, bytes),
            _ => flip(bytes),
        };
        let disk = check_refused(format, served, serve, "ImageChecksumError", "SHA-256 is");
        assert_unbootable(&disk);
    }
}

#[test]
fn forged_tables_are_detected() {
    let other = images::qcow2(&vec![1; 8 << 20], Clusters::Plain, false);
    let serve = move |request: &Request, bytes: &[u8]| match request.header("range") {
        Some(_) => Reply::file(request, &other),
        None => Reply::file(request, bytes),
    };
    let served = images::qcow2(&images::disk(), Clusters::Plain, false);
    let disk = check_refused("qcow2", served, serve, "ImageChecksumError", "changed on the server");
    assert_unbootable(&disk);
}

#[test]
fn a_download_that_ends_early_is_an_error() {
    let cut = |_: &Request, bytes: &[u8]| {
        let mut reply = Reply::new(200, bytes.to_vec());
        reply.cut = Some(3 << 20);
        reply
    };
    let disk = check_refused(
        "raw",
        images::disk(),
        cut,
        "ImageTruncated",
        "ended after 3145728 bytes of 8389120",
    );
    assert_unbootable(&disk);
}

#[test]
fn a_download_that_breaks_off_is_resumed() {
    let machine = Machine::start();
    let served = images::gzip(&images::disk());
    let bytes = served.clone();
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |request| {
        let mut reply = Reply::file(&request, &bytes);
        if asked.fetch_add(1, Ordering::Relaxed) < 2 {
            reply.cut = Some(reply.body.len() / 2);
        }
        reply
    });
    let ended = machine.write_image(images::info(&server.url("/image"), "raw", &served));
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
    assert!(machine.disk().starts_with(&images::disk()));
}

#[test]
fn a_missing_image_is_an_error() {
    let missing = |_: &Request, _: &[u8]| Reply::new(404, Vec::new());
    let disk =
        check_refused("raw", images::disk(), missing, "ImageServerRefused", "answered 404 to GET");
    assert!(disk.iter().all(|byte| *byte == 0xaa), "the disk was touched");
}

#[test]
fn a_qcow2_with_a_backing_file_is_refused_before_writing() {
    let mut backed = images::qcow2(&images::disk(), Clusters::Plain, false);
    backed[8..16].copy_from_slice(&512_u64.to_be_bytes());
    backed[16..20].copy_from_slice(&11_u32.to_be_bytes());
    backed[512..523].copy_from_slice(b"/etc/passwd");
    let disk = check_refused("qcow2", backed, Reply::file, "ImageFormatError", "backing file");
    assert!(disk.iter().all(|byte| *byte == 0xaa), "the disk was touched");

    let mut external = images::qcow2(&images::disk(), Clusters::Plain, false);
    external[79] = 4;
    check_refused("qcow2", external, Reply::file, "ImageFormatError", "data in another file");
}

#[test]
fn an_image_of_another_format_is_refused() {
    let qcow2 = images::qcow2(&images::disk(), Clusters::Plain, false);
    check_refused("raw", qcow2, Reply::file, "ImageFormatError", "declared as raw");
    check_refused("qcow2", images::disk(), Reply::file, "ImageFormatError", "declared as qcow2");
}

#[test]
fn an_image_that_cannot_be_decompressed_is_an_error() {
    let mut broken = images::gzip(&images::disk());
    let middle = broken.len() / 2;
    broken.truncate(middle);
    let disk =
        check_refused("raw", broken, Reply::file, "ImageCorrupt", "cannot decompress the image");
    assert_unbootable(&disk);
}

#[test]
fn an_image_of_known_size_that_is_too_large_is_refused_at_once() {
    for (format, served) in [
        ("raw", vec![1; 33 << 20]),
        ("raw", images::zstd_with_size(&vec![1; 33 << 20])),
        ("qcow2", images::qcow2(&vec![0; 33 << 20], Clusters::Plain, false)),
    ] {
        let disk = check_refused(
            format,
            served,
            Reply::file,
            "DiskFull",
            "needs 34603008 bytes and /dev/vda has 33554432",
        );
        assert!(disk.iter().all(|byte| *byte == 0xaa), "the disk was touched");
    }
}

#[test]
fn an_image_of_unknown_size_that_is_too_large_is_refused_while_writing() {
    let served = images::gzip(&vec![1; 40 << 20]);
    let disk = check_refused("raw", served, Reply::file, "DiskFull", "/dev/vda has 33554432");
    assert_unbootable(&disk);
}

#[test]
fn an_unreachable_server_is_an_error() {
    let machine = Machine::start();
    let info = images::info("http://127.0.0.1:1/image", "raw", &images::disk());
    let ended = machine.write_image(info);
    assert_failed(&ended, "ImageServerUnreachable", "cannot reach the image server");
}

#[test]
fn an_untrusted_server_and_a_missing_image_have_different_errors() {
    let machine = Machine::start();
    let (url, certificate) = machine.served_over_tls();
    let mut info = images::info(&url, "raw", &images::disk());
    let ended = machine.write_image(info.clone());
    assert_failed(&ended, "ImageServerUntrusted", "cannot trust the image server's certificate");
    info["image_ca"] = json!(certificate);
    assert_failed(&machine.write_image(info), "ImageServerRefused", "answered 404");
    assert!(machine.disk().iter().all(|byte| *byte == 0xaa), "the disk was touched");
}

#[test]
fn the_second_url_is_used_if_the_first_lacks_the_image() {
    let machine = Machine::start();
    let server = Server::start(|request| match request.path.as_str() {
        "/here" => Reply::file(&request, &images::disk()),
        _ => Reply::new(404, Vec::new()),
    });
    let mut info = images::info("", "raw", &images::disk());
    info["urls"] = json!([server.url("/gone"), server.url("/here")]);
    assert_eq!(machine.write_image(info)["command_status"], "SUCCEEDED");
}

#[test]
fn only_images_from_http_with_a_checksum_are_accepted() {
    let machine = Machine::start();
    let good = images::info("http://127.0.0.1:1/image", "raw", b"");
    let mut file = good.clone();
    file["urls"] = json!(["file:///etc/passwd"]);
    assert_failed(&machine.write_image(file), "ImageDescriptionError", "only http and https");
    let mut short = good;
    short["os_hash_value"] = json!("abcd");
    assert_failed(&machine.write_image(short), "ImageDescriptionError", "has 32 bytes");
}

#[test]
fn a_redirect_to_an_allowed_host_is_followed() {
    let machine = Machine::start();
    let served = images::disk();
    let bytes = served.clone();
    let server = Server::start(move |request| match request.path.as_str() {
        "/image" => Reply::file(&request, &bytes),
        _ => moved("/image"),
    });
    let ended = machine.write_image(images::info(&server.url("/old"), "raw", &served));
    assert_eq!(ended["command_status"], "SUCCEEDED", "{ended}");
}

fn moved(to: &str) -> Reply {
    let mut reply = Reply::new(302, Vec::new());
    reply.headers.push(("Location", to.to_owned()));
    reply
}

#[test]
fn a_redirect_to_another_host_is_refused() {
    let machine = Machine::start();
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    let inside = Server::start(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        Reply::new(200, images::disk())
    });
    let port = inside.url("").trim_end_matches('/').rsplit_once(':').unwrap().1.to_owned();
    for (to, hosts, why) in [
        (
            "http://169.254.169.254/latest",
            json!(["127.0.0.0/8"]),
            "169.254.169.254 is not in the list",
        ),
        ("http://10.0.0.1/image", json!(["127.0.0.0/8"]), "10.0.0.1 is not in the list"),
        // An address of this machine; the list names another address of the same network.
        (
            &*format!("http://127.0.0.2:{port}/"),
            json!(["127.0.0.1"]),
            "127.0.0.2 is not in the list",
        ),
        (&*format!("http://[::1]:{port}/"), json!(["127.0.0.1"]), "::1 is not in the list"),
        (&*format!("http://localhost:{port}/"), json!(["127.0.0.9", "127.0.0.1/32"]), ""),
    ] {
        let target = to.to_owned();
        let server = Server::start(move |_| moved(&target));
        let mut info = images::info(&server.url("/image"), "raw", &images::disk());
        info["image_hosts"] = hosts;
        if why.is_empty() {
            // The name resolves to a listed address.
            assert_eq!(machine.write_image(info)["command_status"], "SUCCEEDED");
            continue;
        }
        assert_failed(&machine.write_image(info), "ImageHostRefused", why);
        assert_eq!(asked.load(Ordering::SeqCst), 0, "{to}");
    }
}

#[test]
fn without_a_list_loopback_and_link_local_addresses_are_refused() {
    let machine = Machine::start();
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    let server = Server::start(move |_| {
        seen.fetch_add(1, Ordering::SeqCst);
        Reply::new(200, images::disk())
    });
    let port = server.url("").trim_end_matches('/').rsplit_once(':').unwrap().1.to_owned();
    for (host, why) in [
        ("127.0.0.1", "127.0.0.1 is a loopback address"),
        ("localhost", "localhost is a loopback address"),
        ("[::ffff:127.0.0.1]", "is a loopback address"),
        ("169.254.169.254", "169.254.169.254 is a link-local address"),
    ] {
        let url = format!("http://{host}:{port}/image");
        let mut info = images::info(&url, "raw", &images::disk());
        info["image_hosts"] = json!(null);
        assert_failed(&machine.write_image(info), "ImageHostRefused", why);
    }
    // The name passes the first check; its addresses are checked when they are resolved.
    let mut info = images::info(&format!("http://localhost:{port}/"), "raw", &images::disk());
    info["image_hosts"] = json!(["192.0.2.0/24"]);
    assert_failed(&machine.write_image(info), "ImageHostRefused", "1 is not in the list");
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[test]
fn a_disk_that_no_hint_names_is_not_written() {
    let machine = Machine::with(Setup {
        arguments: "bedplate.root-disk-minimum=4096".to_owned(),
        ..Setup::default()
    });
    let info = images::info("http://127.0.0.1:1/image", "raw", b"");
    let ended = machine.write_image(info.clone());
    assert_failed(&ended, "DeviceNotFound", "the machine has /dev/vda of 32 MiB");
    let mut named = harness::write_image(info, json!(null));
    named["node"] = json!({"properties": {"root_device": {"serial": "disk-2"}}});
    let ended = machine.run("deploy.execute_deploy_step", named);
    assert_failed(&ended, "DeviceNotFound", "no disk matches");
}
