//! Pages and forms as a user without scripts uses them.

use crate::fixture::{Auth, Browser, ConsoleFixture};

const RACK: &str = "name,position,mac,bmc_type,bmc_address,role\n\
                    r1u1,1,52:54:00:00:00:01,fake,,compute\n\
                    r1u2,2,52:54:00:00:00:02,fake,,compute\n\
                    r1u7,7,52:54:00:00:00:07,fake,,storage\n";

/// Enrolls a rack of nodes without BMCs.
async fn enroll(browser: &mut Browser, reach: &str) {
    let fields =
        [("manifest", RACK), ("format", "csv"), ("rack", "r1"), ("reach", reach), ("name", "r1")];
    let made = browser.fill("/bring-up", "/bring-up/enroll", &fields).await;
    assert_eq!(made.leads(), "/racks/r1");
}

#[tokio::test]
async fn every_page_works_without_scripts_and_is_small() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    enroll(&mut browser, "available").await;
    let rack = browser.until("/racks/r1", "chip good\">available<").await;
    let node = rack.text.split("/nodes/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let pages = [
        "/",
        "/racks",
        "/racks/r1",
        "/nodes",
        "/nodes?state=available",
        "/discoveries",
        "/hosts",
        "/racks/r1/delete",
        "/bring-up",
        "/clusters",
        "/clusters/new",
        "/vms",
        "/vms/new",
        "/profiles",
        "/profiles/new",
        "/where",
        "/images",
        "/quotas",
        "/audit",
        "/audit?of=clusters",
    ];
    let own = [
        "",
        "/confirm?target=rebuild",
        "/confirm?target=delete",
        "/confirm?target=rotate-bmc-password",
        "/sensors",
    ];
    let own = own.map(|rest| format!("/nodes/{node}{rest}"));
    for page in pages.into_iter().chain(own.iter().map(String::as_str)) {
        let answer = browser.get(page).await;
        if page.ends_with("/sensors") {
            // The nodes of this rack have no BMC, and the service refuses the request.
            assert!(
                answer.status.is_client_error() || answer.status.is_success(),
                "{}",
                answer.text
            );
        } else {
            assert_eq!(answer.status, 200, "{page}: {}", answer.text);
        }
        let header = |name: &str| answer.headers[name].to_str().unwrap();
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("referrer-policy"), "same-origin");
        assert_eq!(answer.text.matches("<h1").count(), 1, "{page}");
        assert_eq!(answer.text.matches("<html lang=\"en\">").count(), 1, "{page}");
        let mut bytes = answer.text.len();
        for file in answer.text.split("/assets/").skip(1) {
            let file = format!("/assets/{}", file.split('"').next().unwrap());
            let file = browser.get(&file).await.has(200);
            assert!(file.headers["cache-control"].to_str().unwrap().contains("immutable"));
            bytes += file.text.len();
        }
        assert!(bytes > answer.text.len(), "{page} names files of its own");
        assert!(bytes <= 150_000, "{page}: {bytes} bytes at first");
    }
    browser.get("/hosts").await.has(200).says("Only hosts with a drain are listed");
    browser.get("/nodes/nobody").await.has(404).says("nobody");
    browser.get("/nothing").await.has(404).says("no such page");
    browser.get("/assets/0/console.css").await.has(404);
}

#[tokio::test]
async fn a_manifest_is_checked_row_by_row_before_anything_is_enrolled() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    let wrong = "name,position,mac,bmc_type,bmc_address\n\
                 good,1,52:54:00:00:00:01,fake,\n\
                 a b,2,52:54:00:00:00:02,fake,\n\
                 good,3,52:54:00:00:00:03,fake,\n\
                 other,3,52:54:00:00:00:03,fake,\n";
    let answer = browser.upload("/bring-up", "/bring-up/check", "r9.csv", wrong).await.has(422);
    assert_eq!(answer.text.matches("<span class=\"chip bad\">error").count(), 3, "{}", answer.text);
    assert_eq!(answer.text.matches("<span class=\"chip good\">OK").count(), 1);
    assert!(!answer.text.contains("/bring-up/enroll"), "what is wrong cannot be sent on");
    browser.get("/racks").await.has(200).says("No racks.");
    let again = [("manifest", wrong), ("format", "csv"), ("rack", "r9"), ("reach", "enrolled")];
    browser.fill("/bring-up", "/bring-up/enroll", &again).await.has(422);
    browser.get("/racks").await.has(200).says("No racks.");

    let answer = browser.upload("/bring-up", "/bring-up/check", "r1.csv", RACK).await.has(200);
    answer.says("/bring-up/enroll").says("value=\"r1\"");
    enroll(&mut browser, "enrolled").await;
    let page = browser.get("/racks/r1").await.has(200);
    assert_eq!(page.text.matches("class=\"slot").count(), 3);
}

#[tokio::test]
async fn a_live_page_is_updated() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    enroll(&mut browser, "enrolled").await;
    let mut stream = browser.follow("/racks/r1").await;
    let page = stream.until("enroll<").await;
    assert!(
        !page.contains("<html") && !page.contains("<form class=\"form"),
        "it is the live part alone: {page}"
    );
    let up =
        browser.fill("/racks/r1", "/racks/r1/up", &[("reach", "available"), ("name", "r1")]).await;
    assert_eq!(up.leads(), "/racks/r1");
    stream.until(">available<").await;

    let mut gone = browser.follow("/nodes/nobody").await;
    assert_eq!(gone.next().await.unwrap().0, "over");
    assert!(gone.next().await.is_none());
}

#[tokio::test]
async fn a_forged_form_changes_nothing() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    enroll(&mut browser, "enrolled").await;
    let path = "/racks/r1/up";
    let token = browser.get("/racks/r1").await.has(200).token();
    let others = given.browser().get("/racks/r1").await.has(200).token();
    let (reach, name) = (("reach", "available"), ("name", "r1"));
    browser.post(path, &[reach, name]).await.has(403);
    browser.post(path, &[("token", "00"), reach, name]).await.has(403);
    browser.post(path, &[("token", &others), reach, name]).await.has(403);
    browser
        .post_from(path, &[("token", &token), reach, name], Some("https://evil.example"))
        .await
        .has(403);
    let page = browser.get("/racks/r1").await.has(200);
    assert!(!page.text.contains("Bring-up to"), "{}", page.text);
    let own = browser.url.clone();
    let answer = browser.post_from(path, &[("token", &token), reach, name], Some(&own)).await;
    assert_eq!(answer.leads(), "/racks/r1");
}

#[tokio::test]
async fn names_are_escaped_in_pages() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    let answer = browser.get("/nodes/%3Cscript%3Ealert(1)%3C%2Fscript%3E").await;
    assert!(answer.status.is_client_error() && answer.text.contains("alert(1)"), "{}", answer.text);
    assert!(!answer.text.contains("<script>alert"), "{}", answer.text);
    let text = "name,position,mac,bmc_type,bmc_address\n<img src=x>,1,52:54:00:00:00:01,fake,\n";
    let answer = browser.upload("/bring-up", "/bring-up/check", "<b>.csv", text).await.has(422);
    assert!(!answer.text.contains("<img") && !answer.text.contains("<b>"), "{}", answer.text);
}

#[tokio::test]
async fn a_cluster_is_planned_created_and_used() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    let made = given.template().await;
    let what =
        [("name", "web"), ("template", made.as_str()), ("master_count", "1"), ("node_count", "1")];
    let plan = browser.fill("/clusters/new", "/clusters/new", &what).await.has(200);
    plan.says("The cluster fits").says("All resources");
    browser.get("/clusters").await.has(200).says("No clusters.");
    let refused = browser.fill("/clusters/new", "/clusters/new", &[("name", "web")]).await.has(400);
    refused.says("template: required").says("value=\"web\"");

    let all: Vec<(&str, &str)> = what.into_iter().chain([("step", "make")]).collect();
    let made = browser.fill("/clusters/new", "/clusters/new", &all).await;
    let page = made.leads();
    browser.until(&page, "CREATE_COMPLETE").await.says("NetworkReady").says("default-worker-0");
    let file = browser.fill(&page, &format!("{page}/kubeconfig"), &[]).await.has(200);
    assert_eq!(file.headers["content-type"], "application/yaml");
    assert!(file.text.contains("certificate-authority-data"), "it is a kubeconfig");
    browser.get(&format!("{page}/kubeconfig")).await.has(405);

    browser.fill(&page, &format!("{page}/delete"), &[("name", "other")]).await.has(400);
    let gone = browser.fill(&page, &format!("{page}/delete"), &[("name", "web")]).await;
    assert_eq!(gone.leads(), "/clusters");
    browser.until("/clusters", "No clusters.").await;
}

#[tokio::test]
async fn a_vm_is_created_extended_and_deleted() {
    let given = ConsoleFixture::start(Auth::None).await;
    let mut browser = given.browser();
    let wrong = [("name", "No"), ("image", "cirros"), ("flavor", "m1.tiny")];
    browser
        .fill("/vms/new", "/vms/new", &wrong)
        .await
        .has(400)
        .says("name: must be a DNS label")
        .says("value=\"No\"");
    let right = [("name", "lab-1"), ("image", "cirros"), ("flavor", "m1.tiny"), ("lease", "2d")];
    let page = browser.fill("/vms/new", "/vms/new", &right).await.leads();
    browser.until(&page, ">ACTIVE<").await.says("The lease ends in <strong>1 d 23 h");
    let extended = browser.fill(&page, &format!("{page}/lease"), &[("for", "5d")]).await;
    assert_eq!(extended.leads(), page);
    browser.get(&page).await.has(200).says("The lease ends in <strong>4 d 23 h");
    browser
        .fill(&page, &format!("{page}/lease"), &[("for", "99d")])
        .await
        .says("Back to the overview");
    let gone = browser.fill(&page, &format!("{page}/delete"), &[("name", "lab-1")]).await;
    assert_eq!(gone.leads(), "/vms");
}

#[tokio::test]
async fn a_discovered_machine_is_accepted_into_a_node() {
    let seen = async |folder: &std::path::Path| {
        std::fs::create_dir_all(folder).unwrap();
        let url = format!("sqlite://{}/baremetal.db", folder.display());
        let store = baremetal_store::Store::open(&url).await.unwrap();
        let id = "52:54:00:00:00:0a".parse().unwrap();
        store.touch_discovery(id, jiff::Timestamp::now()).await.unwrap();
    };
    let given = ConsoleFixture::filled(Auth::None, "", seen).await;
    let mut browser = given.browser();
    let listed = browser.get("/discoveries").await.has(200).says("Enroll in a rack");
    let accept = listed.text.split("href=\"/discoveries/").nth(1).unwrap();
    let accept = format!("/discoveries/{}", accept.split('"').next().unwrap());
    browser.get(&accept).await.has(200).says("Accept 52:54:00:00:00:0a");
    browser.get("/discoveries/525400000000/accept").await.has(404);

    let without = [("name", "found"), ("driver", "redfish"), ("password", "hunter2")];
    let refused = browser.fill(&accept, &accept, &without).await;
    let refused = refused.says("driver_info.redfish_address").says("value=\"found\"");
    assert!(!refused.text.contains("hunter2"), "{}", refused.text);
    let whole =
        [("name", "found"), ("driver", "redfish"), ("address", "https://192.0.2.9"), ("user", "a")];
    let made = browser.fill(&accept, &accept, &whole).await;
    let node = made.leads().to_owned();
    assert!(node.starts_with("/nodes/"), "{node}");
    browser.get(&node).await.has(200).says("found");
    browser.get("/discoveries").await.has(200).says("No machines discovered.");
}

#[tokio::test]
async fn a_discovered_machine_is_enrolled_with_a_draft_and_leaves_the_list() {
    let seen = async |folder: &std::path::Path| {
        std::fs::create_dir_all(folder).unwrap();
        let url = format!("sqlite://{}/baremetal.db", folder.display());
        let store = baremetal_store::Store::open(&url).await.unwrap();
        for mac in ["52:54:00:00:00:0a", "52:54:00:00:00:0b"] {
            let id = mac.parse().unwrap();
            store.touch_discovery(id, jiff::Timestamp::now()).await.unwrap();
        }
    };
    let given = ConsoleFixture::filled(Auth::None, "", seen).await;
    let mut browser = given.browser();
    let inbox = browser.get("/discoveries").await.has(200).says("Enroll all 2");
    let accept = inbox.text.split("href=\"/bring-up?mac=").nth(1).unwrap();
    let accept = format!("/bring-up?mac={}", accept.split('"').next().unwrap());
    browser.get(&accept).await.has(200).says("node-52540000000a").says("Enter the rack name");
    browser.get("/bring-up?mac=525400ffffff").await.has(404);

    let rack =
        "rack: r1\nmachines:\n- {name: new, mac: \"52:54:00:00:00:0a\", bmc: {type: fake}}\n";
    let fields = [("manifest", rack), ("format", "yaml"), ("reach", "enrolled")];
    let made = browser.fill(&accept, "/bring-up/enroll", &fields).await;
    assert_eq!(made.leads(), "/racks/r1");
    let left = browser.get("/discoveries").await.has(200).says("52:54:00:00:00:0b");
    assert!(!left.text.contains("52:54:00:00:00:0a"), "{}", left.text);
}
