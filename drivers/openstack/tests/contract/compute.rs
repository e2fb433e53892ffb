//! Stories about Nova.

use std::collections::BTreeMap;

use openstack::block_storage::{snapshots, volumes};
use openstack::compute::actions::{self, ServerAction};
use openstack::compute::consoles::{self, ConsoleKind};
use openstack::compute::diagnostics;
use openstack::compute::server_groups::{self, Policy};
use openstack::compute::servers::{self, Boot, ConfigDrive, NewServer, Server, ServerStatus};
use openstack::compute::{availability_zones, flavors, hosts, keypairs, limits, services};
use openstack::image::images::{self, Image, ImageStatus};
use openstack::network::ports::{self, NewPort};
use openstack::{CloudError, Service, Session};

use crate::given;

const PUBLIC_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFAgUCBQIFAgUCBQIFAgUCBQIFAgUCBQIFAgUCBQIFAg contract";

async fn reaches(session: &Session, id: &str, want: ServerStatus) -> Server {
    given::until(&format!("a server that is {want}"), || async {
        let server = servers::show(session, id).await?.expect("it is there");
        assert!(
            server.status != ServerStatus::Error || want == ServerStatus::Error,
            "{:?}",
            server.fault
        );
        Ok((server.status == want && server.task_state.is_none()).then_some(server))
    })
    .await
}

pub(crate) async fn server(session: &Session, name: &str, port: &str) -> NewServer {
    NewServer {
        name: name.to_owned(),
        tags: vec![name.to_owned(), "worker".to_owned()],
        flavor_id: given::flavor(session).await.id,
        boot: Boot::Image { id: given::image(session).await.id },
        disks: Vec::new(),
        ports: vec![port.to_owned()],
        user_data: Some(br#"{"ignition": {"version": "3.3.0"}}"#.to_vec()),
        config_drive: ConfigDrive::Always,
        key_name: None,
        availability_zone: None,
        server_group: None,
        hints: BTreeMap::new(),
        metadata: BTreeMap::from([("role".to_owned(), "worker".to_owned())]),
    }
}

async fn port(session: &Session, name: &str, network_id: &str) -> ports::Port {
    let new =
        NewPort { name: name.to_owned(), network_id: network_id.to_owned(), ..NewPort::default() };
    ports::create(session, &new).await.unwrap()
}

/// Waits until the image of a server is complete. Nova's fake driver does not copy disks and leaves the image queued.
async fn kept(session: &Session, server: &str, image: &str) -> Image {
    reaches(session, server, ServerStatus::Active).await;
    let image = images::show(session, image).await.unwrap().expect("it is there");
    assert!([ImageStatus::Active, ImageStatus::Queued].contains(&image.status), "{image:?}");
    image
}

/// Reads the counters of a running server, which only administrators may.
async fn diagnosed(alice: &Session, id: &str) {
    let denied = diagnostics::show(alice, id).await.unwrap_err();
    assert!(matches!(denied, CloudError::Forbidden(_)), "{denied:?}");
    let Some(admin) = given::session("admin") else { return };
    assert!(diagnostics::show(&admin, id).await.unwrap().is_some());
    let none = "00000000-0000-0000-0000-000000000000";
    assert_eq!(diagnostics::show(&admin, none).await.unwrap(), None);
}

#[tokio::test]
async fn a_server_uses_its_port_and_is_found_by_name_and_tag() {
    let Some(alice) = given::session("alice") else { return };
    let (name, _tidy) = given::named("alice");
    let (network, _) = given::network(&alice, &name, "10.79.0.0/24").await;
    let port = port(&alice, &name, &network.id).await;
    let group = server_groups::create(&alice, &name, &Policy::SoftAntiAffinity).await.unwrap();
    assert_eq!(server_groups::find(&alice, &name).await.unwrap()[0].id, group.id);
    let key = keypairs::import(&alice, &name, PUBLIC_KEY).await.unwrap();
    assert_eq!(key.public_key, PUBLIC_KEY);
    assert!(keypairs::import(&alice, &name, PUBLIC_KEY).await.unwrap_err().is_conflict());
    let zones = availability_zones::list(&alice).await.unwrap();
    let before = limits::show(&alice).await.unwrap();

    let mut new = server(&alice, &name, &port.id).await;
    (new.server_group, new.key_name) = (Some(group.id.clone()), Some(name.clone()));
    new.availability_zone = zones.first().cloned();
    let id = servers::create(&alice, &new).await.unwrap();
    assert_eq!(servers::find(&alice, &name).await.unwrap()[0].id, id, "it is found at once");
    let made = reaches(&alice, &id, ServerStatus::Active).await;
    assert_eq!(made.metadata["role"], "worker");
    assert_eq!(made.key_name.as_deref(), Some(name.as_str()));
    assert!(made.tags.contains(&name), "{made:?}");
    let flavor = flavors::show(&alice, &new.flavor_id).await.unwrap().unwrap();
    assert_eq!((made.flavor.vcpus, made.flavor.ram), (flavor.vcpus, flavor.ram));
    assert_eq!(flavors::find(&alice, &flavor.name).await.unwrap().unwrap(), flavor);
    let address = port.fixed_ips[0].ip_address;
    assert!(made.addresses.values().flatten().any(|it| it.addr == address), "{made:?}");
    assert_eq!(servers::tagged(&alice, &name).await.unwrap()[0].id, id);
    assert_eq!(servers::find(&alice, &name[..name.len() - 1]).await.unwrap(), [], "part of a name");
    let group = server_groups::show(&alice, &group.id).await.unwrap().unwrap();
    assert_eq!((group.members, group.policy), (vec![id.clone()], Policy::SoftAntiAffinity));
    let after = limits::show(&alice).await.unwrap();
    assert!(after.instances.used > before.instances.used || before.instances.used > 0);
    assert_eq!(ports::show(&alice, &port.id).await.unwrap().unwrap().device_id, id);
    if let Some(bob) = given::session("bob") {
        assert_eq!(servers::show(&bob, &id).await.unwrap(), None, "it is alice's alone");
    }

    servers::delete(&alice, &id).await.unwrap();
    given::until_gone("a deleted server", || servers::show(&alice, &id)).await;
    servers::delete(&alice, &id).await.unwrap();
    assert_eq!(
        ports::show(&alice, &port.id).await.unwrap().unwrap().device_id,
        "",
        "it is ours again"
    );
    ports::delete(&alice, &port.id).await.unwrap();
    for _ in 0..2 {
        server_groups::delete(&alice, &group.id).await.unwrap();
        keypairs::delete(&alice, &name).await.unwrap();
    }
    assert_eq!(keypairs::find(&alice, &name).await.unwrap(), None);
    given::remove_network(&alice, &network.id).await;
}

#[tokio::test]
async fn a_server_is_stopped_started_resized_shown_and_imaged() {
    let Some(alice) = given::session("alice") else { return };
    let (name, _tidy) = given::named("alice");
    let (network, _) = given::network(&alice, &name, "10.80.0.0/24").await;
    let port = port(&alice, &name, &network.id).await;
    let new = server(&alice, &name, &port.id).await;
    let id = servers::create(&alice, &new).await.unwrap();
    reaches(&alice, &id, ServerStatus::Active).await;

    let screen = consoles::url(&alice, &id, ConsoleKind::NoVnc).await.unwrap();
    assert!(screen.scheme().starts_with("http"));
    consoles::output(&alice, &id, 50).await.unwrap();
    let image = actions::snapshot(&alice, &id, &name).await.unwrap();
    assert_eq!(images::find(&alice, &name).await.unwrap()[0].id, image);
    assert_eq!(kept(&alice, &id, &image).await.volume_snapshots(), [""; 0]);
    diagnosed(&alice, &id).await;

    actions::act(&alice, &id, &ServerAction::Stop).await.unwrap();
    reaches(&alice, &id, ServerStatus::Shutoff).await;
    let twice = actions::act(&alice, &id, &ServerAction::Stop).await.unwrap_err();
    assert!(twice.is_conflict(), "{twice:?}");
    actions::act(&alice, &id, &ServerAction::Start).await.unwrap();
    reaches(&alice, &id, ServerStatus::Active).await;
    actions::act(&alice, &id, &ServerAction::RebootHard).await.unwrap();
    reaches(&alice, &id, ServerStatus::Active).await;

    let mut larger = flavors::list(&alice).await.unwrap();
    larger.sort_by_key(|flavor| flavor.ram);
    let larger = larger.swap_remove(1);
    let resize = ServerAction::Resize { flavor_id: larger.id };
    actions::act(&alice, &id, &resize).await.unwrap();
    reaches(&alice, &id, ServerStatus::VerifyResize).await;
    actions::act(&alice, &id, &ServerAction::ConfirmResize).await.unwrap();
    assert_eq!(reaches(&alice, &id, ServerStatus::Active).await.flavor.ram, larger.ram);

    servers::delete(&alice, &id).await.unwrap();
    given::until_gone("a deleted server", || servers::show(&alice, &id)).await;
    images::delete(&alice, &image).await.unwrap();
    ports::delete(&alice, &port.id).await.unwrap();
    given::remove_network(&alice, &network.id).await;
}

#[tokio::test]
async fn a_boot_volume_is_created_and_deleted_with_its_server() {
    let Some(alice) = given::with("alice", Service::BlockStorage).await else { return };
    let (name, _tidy) = given::named("alice");
    let (network, _) = given::network(&alice, &name, "10.81.0.0/24").await;
    let port = port(&alice, &name, &network.id).await;
    let image_id = given::image(&alice).await.id;
    let boot = Boot::Volume { image_id, size: 1, kind: None };
    let new = NewServer { boot, ..server(&alice, &name, &port.id).await };
    let id = servers::create(&alice, &new).await.unwrap();
    let made = reaches(&alice, &id, ServerStatus::Active).await;
    let volume = made.volumes[0].id.clone();
    let attached = volumes::show(&alice, &volume).await.unwrap().unwrap();
    assert_eq!((attached.size, attached.attachments[0].server_id.as_str()), (1, id.as_str()));
    let image = actions::snapshot(&alice, &id, &name).await.unwrap();
    let image = kept(&alice, &id, &image).await;
    let [snapshot] = image.volume_snapshots().try_into().unwrap();
    assert_eq!(snapshots::show(&alice, &snapshot).await.unwrap().unwrap().volume_id, volume);
    images::delete(&alice, &image.id).await.unwrap();
    given::until("a snapshot that can be deleted", || async {
        let it = snapshots::show(&alice, &snapshot).await?;
        Ok(it.filter(|it| it.status == volumes::VolumeStatus::Available))
    })
    .await;
    // The snapshot would outlive its image and keep the volume.
    snapshots::delete(&alice, &snapshot).await.unwrap();
    given::until_gone("the snapshot", || snapshots::show(&alice, &snapshot)).await;
    servers::delete(&alice, &id).await.unwrap();
    given::until_gone("a deleted server", || servers::show(&alice, &id)).await;
    given::until_gone("its volume", || volumes::show(&alice, &volume)).await;
    ports::delete(&alice, &port.id).await.unwrap();
    given::remove_network(&alice, &network.id).await;
}

#[tokio::test]
async fn impossible_requests_give_the_matching_error() {
    let Some(bob) = given::session("bob") else { return };
    let (name, _tidy) = given::named("bob");
    let mut new = server(&bob, &name, "00000000-0000-0000-0000-000000000000").await;
    let error = servers::create(&bob, &new).await.unwrap_err();
    assert!(matches!(error, CloudError::Refused(_) | CloudError::NotFound(_)), "{error:?}");
    assert!(error.refusal().unwrap().request.id.starts_with("req-"));
    assert!(!error.refusal().unwrap().message.is_empty());
    new.flavor_id = "no-such-flavor".to_owned();
    let error = servers::create(&bob, &new).await.unwrap_err();
    assert!(matches!(error, CloudError::Refused(_) | CloudError::NotFound(_)), "{error:?}");
    assert_eq!(servers::find(&bob, &name).await.unwrap(), []);
    assert_eq!(servers::show(&bob, "00000000-0000-0000-0000-000000000000").await.unwrap(), None);
}

#[tokio::test]
async fn an_exhausted_quota_is_reported_as_quota_exceeded() {
    let Some(bob) = given::session("bob") else { return };
    let (name, _tidy) = given::named("bob");
    let left = limits::show(&bob).await.unwrap().server_groups.left();
    let Some(left) = left.filter(|left| *left <= 50) else {
        // Not a skip: a cloud without a limit cannot refuse.
        return;
    };
    for _ in 0..left {
        server_groups::create(&bob, &name, &Policy::AntiAffinity).await.unwrap();
    }
    let error = server_groups::create(&bob, &name, &Policy::AntiAffinity).await.unwrap_err();
    assert!(matches!(error, CloudError::QuotaExceeded(_)), "{error:?}");
    for group in server_groups::find(&bob, &name).await.unwrap() {
        server_groups::delete(&bob, &group.id).await.unwrap();
    }
    assert_eq!(server_groups::find(&bob, &name).await.unwrap(), []);
}

/// Hosts are visible to administrators: their servers, and whether they accept more. The story disables no host, because other stories
/// create servers at the same time.
#[tokio::test]
async fn a_host_lists_its_servers_and_a_server_migrates_or_stays() {
    let (Some(alice), Some(admin)) = (given::session("alice"), given::session("admin")) else {
        return;
    };
    let name = given::name();
    let (network, _) = given::network(&alice, &name, "10.82.0.0/24").await;
    let port = port(&alice, &name, &network.id).await;
    let id = servers::create(&alice, &server(&alice, &name, &port.id).await).await.unwrap();
    let made = reaches(&alice, &id, ServerStatus::Active).await;
    assert_eq!(made.host, None, "it is no business of hers");
    let host = servers::show(&admin, &id).await.unwrap().unwrap().host.unwrap();

    let ids = |found: Vec<Server>| found.into_iter().map(|it| it.id).collect::<Vec<_>>();
    assert!(ids(hosts::servers(&admin, &host).await.unwrap()).contains(&id));
    assert_eq!(ids(hosts::tagged(&admin, &name).await.unwrap()), [id.as_str()]);
    assert_eq!(ids(hosts::named(&admin, &name).await.unwrap()), [id.as_str()]);
    let denied = hosts::servers(&alice, &host).await.unwrap_err();
    assert!(matches!(denied, CloudError::Forbidden(_)), "{denied:?}");
    let service = services::find_compute(&admin, &host).await.unwrap().unwrap();
    assert_eq!((service.host.as_str(), service.status), (host.as_str(), services::Status::Enabled));
    assert_eq!(services::find_compute(&admin, "no-such-host").await.unwrap(), None);
    assert_eq!(hosts::host_of_hypervisor(&admin, "no-such-host").await.unwrap(), None);
    services::enable(&admin, &service.id).await.unwrap();

    let denied = actions::act(&alice, &id, &ServerAction::MigrateLive).await.unwrap_err();
    assert!(matches!(denied, CloudError::Forbidden(_)), "{denied:?}");
    actions::act(&admin, &id, &ServerAction::MigrateLive).await.unwrap();
    // Whether another host accepts the server shows later; the server runs in either case.
    let moved = given::until("a server at rest", || async {
        let found = servers::show(&admin, &id).await?;
        Ok(found.filter(|it| it.task_state.is_none() && it.status == ServerStatus::Active))
    });
    assert!(moved.await.host.is_some());

    servers::delete(&alice, &id).await.unwrap();
    given::until_gone("a deleted server", || servers::show(&alice, &id)).await;
    ports::delete(&alice, &port.id).await.unwrap();
    given::remove_network(&alice, &network.id).await;
}
