//! Compute hosts: their servers, the location of a resource, and drains.

use crate::fixture::{Auth, Browser, ConsoleFixture};

/// Creates a running VM. Returns the path of its page.
async fn machine(browser: &mut Browser, name: &str) -> String {
    let what = [("name", name), ("image", "cirros"), ("flavor", "m1.tiny")];
    let page = browser.fill("/vms/new", "/vms/new", &what).await.leads();
    browser.until(&page, ">ACTIVE<").await;
    page
}

#[track_caller]
fn host_in(page: &str) -> String {
    let rest = page.split("href=\"/hosts/").nth(1).expect("a host");
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_location_of_a_vm_leads_to_its_host_which_can_be_drained() {
    let given = ConsoleFixture::start(Auth::NoneOfAdmin).await;
    let mut browser = given.browser();
    let vm = machine(&mut browser, "lab-1").await;
    browser.get(&vm).await.has(200).says("/where?resource=");
    browser.get("/where?resource=nobody").await.has(200).says("is called nobody");

    let chain = browser.get("/where?resource=lab-1").await.has(200).says(&vm);
    let host = host_in(&chain.text);
    let page = format!("/hosts/{host}");
    assert_eq!(browser.get(&format!("/where?resource={host}")).await.leads(), page);
    browser.get(&page).await.has(200).says("lab-1").says(&vm);
    let all = browser.get("/hosts").await.has(200).says(&format!("href=\"{page}\""));
    let hosts = all.text.matches("href=\"/hosts/").count();
    assert!(hosts > 1, "every compute host is listed: {}", all.text);
    for place in ["/hosts", page.as_str()] {
        let shown = browser.get(place).await.has(200);
        assert!(!shown.text.contains("Undrain"), "{place}: no host is drained");
    }
    browser.get("/hosts/no-such-host").await.has(404).says("no-such-host could not be found");

    let drained = browser.fill(&page, &format!("{page}/drain"), &[]).await;
    assert_eq!(drained.leads(), page);
    browser.until(&page, "Drain: <strong>drained</strong>").await.says("chip warn\">disabled<");
    let drained = browser.get("/hosts").await.has(200).says("drained<");
    assert_eq!(drained.text.matches("Undrain").count(), 1, "{}", drained.text);
    let shown = browser.get(&page).await.has(200).says("Undrain");
    assert!(!shown.text.contains("Drain host"), "it is drained already");
    let moved = browser.get("/where?resource=lab-1").await.has(200);
    assert_ne!(host_in(&moved.text), host, "it runs elsewhere");

    let ended = browser.fill(&page, &format!("{page}/undrain"), &[]).await;
    assert_eq!(ended.leads(), page);
    browser.until_gone("/hosts", "Undrain").await;
    browser.until(&page, "chip good\">enabled<").await;
}

#[tokio::test]
async fn a_drain_that_costs_a_quorum_is_refused_unless_the_cluster_is_named() {
    let given = ConsoleFixture::start(Auth::NoneOfAdmin).await;
    let mut browser = given.browser();
    let template = given.template().await;
    let what = [
        ("name", "web"),
        ("template", template.as_str()),
        ("master_count", "1"),
        ("node_count", "1"),
        ("step", "make"),
    ];
    let cluster = browser.fill("/clusters/new", "/clusters/new", &what).await.leads();
    browser.until(&cluster, "CREATE_COMPLETE").await;
    let chains =
        browser.get("/where?resource=web").await.has(200).says("etcd member").says(&cluster);
    let member = chains.text.split("<tr>").find(|row| row.contains("etcd member")).unwrap();
    let page = format!("/hosts/{}", host_in(member));
    let refused = browser.fill(&page, &format!("{page}/drain"), &[]).await.has(409);
    let refused = refused.says("role=\"alert\"").says("quorum").says("web");
    assert!(refused.text.contains("Drain host"), "it is the host's page still");
    browser.until_gone("/hosts", "Undrain").await;
    let wrong = browser.fill(&page, &format!("{page}/drain"), &[("force", "other")]).await.has(400);
    wrong.says("force").says("value=\"other\"");
    let host = page.rsplit('/').next().unwrap();
    let node = given.host_node("r1u07", host).await;
    for (form, target) in [("power", "power off"), ("provision", "rebuild"), ("maintenance", "on")]
    {
        let address = format!("{node}/{form}");
        let fields = [("target", target), ("name", "r1u07")];
        let refused = browser.fill(&node, &address, &fields).await.has(409);
        refused.says("role=\"alert\"").says("etcd").says(">Force<");
    }
    let (address, off) = (format!("{node}/power"), ("target", "power off"));
    browser.until_gone(&page, "Undrain").await;
    let waits = browser.fill(&node, &address, &[off, ("force", "web")]).await;
    assert_eq!(waits.leads(), node);
    browser.until(&node, "Undrain").await;
    let switched = browser.fill(&node, &address, &[off, ("force", host)]).await;
    assert_eq!(switched.leads(), node);
    browser.until(&node, "off</span>").await;

    let forced = browser.fill(&page, &format!("{page}/drain"), &[("force", "web")]).await;
    assert_eq!(forced.leads(), page);
    browser.get("/hosts").await.has(200).says(&page);
    browser.get(&node).await.has(200).says("Undrain");
    let ended = browser.fill(&node, &format!("{page}/undrain"), &[]).await;
    assert_eq!(ended.leads(), page);
    browser.until_gone(&node, "Undrain").await;
}
