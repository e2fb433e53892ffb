//! Cleans up after a failed story before the next one begins: deletes its objects and waits until they are gone. A server in ERROR or a
//! leftover volume would break later stories.

use openstack::block_storage::{snapshots, volumes};
use openstack::compute::{keypairs, server_groups, servers};
use openstack::dns::zones;
use openstack::identity::{application_credentials, services};
use openstack::image::images;
use openstack::load_balancer::load_balancers;
use openstack::network::{floating_ips, networks, ports, routers, security_groups, subnets};
use openstack::object_store::{containers, objects};
use openstack::{CloudError, Service, Session};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use crate::given::{self, LONGEST, LOOK_EVERY};

/// The owner of objects with a name. If the story panics, all objects with the name are deleted.
pub(crate) struct Tidy {
    user: &'static str,
    name: String,
}

impl Tidy {
    pub(crate) fn of(user: &'static str, name: &str) -> Tidy {
        Tidy { user, name: name.to_owned() }
    }
}

impl Drop for Tidy {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let (user, name) = (self.user, self.name.clone());
        // `drop` cannot await, so a separate thread runs the clean-up.
        let tidied = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                if let Some(session) = given::session(user) {
                    Cleaner { session, name }.sweep().await;
                }
            });
        });
        if tidied.join().is_err() {
            eprintln!("what is called {} may be left in the cloud", self.name);
        }
    }
}

struct Cleaner {
    session: Session,
    name: String,
}

impl Cleaner {
    /// Deletes dependent objects first. An object that cannot be deleted is reported, and the rest is still tried.
    async fn sweep(&self) {
        let (session, name) = (&self.session, self.name.as_str());
        if self.has(Service::LoadBalancer).await {
            let find = async || load_balancers::find(session, name).await;
            gone("load balancers", find, async |it| load_balancers::delete(session, &it.id).await)
                .await;
        }
        // A server's own volumes, and those of its images, have other names.
        let there = servers::find(session, name).await.unwrap_or_default();
        let of_servers = there.into_iter().flat_map(|it| it.volumes).map(|it| it.id).collect();
        let find = async || servers::find(session, name).await;
        gone("servers", find, async |it| servers::delete(session, &it.id).await).await;
        let there = images::find(session, name).await.unwrap_or_default();
        let of_images = there.iter().flat_map(|it| it.volume_snapshots()).collect();
        let find = async || images::find(session, name).await;
        gone("images", find, async |it| images::delete(session, &it.id).await).await;
        if self.has(Service::BlockStorage).await {
            self.storage(of_images, of_servers).await;
        }
        self.networks().await;
        let find = async || server_groups::find(session, name).await;
        gone("server groups", find, async |it| server_groups::delete(session, &it.id).await).await;
        let find = async || Ok(Vec::from_iter(keypairs::find(session, name).await?));
        gone("keys", find, async |_| keypairs::delete(session, name).await).await;
        if self.has(Service::Dns).await {
            let zone = format!("{name}.example.");
            let find = async || Ok(Vec::from_iter(zones::find(session, &zone).await?));
            gone("zones", find, async |it| zones::delete(session, &it.id).await).await;
        }
        if self.has(Service::ObjectStore).await {
            // The container of the name, with the only object that stories make.
            let _ = objects::delete(session, name, "folder/object").await;
            let _ = containers::delete(session, name).await;
        }
        let find = async || Ok(Vec::from_iter(application_credentials::find(session, name).await?));
        let delete = async |it: &application_credentials::ApplicationCredential| {
            application_credentials::delete(session, &it.id).await
        };
        gone("application credentials", find, delete).await;
        let find = async || services::find(session, name).await;
        gone("services", find, async |it| services::delete(session, &it.id).await).await;
    }

    async fn has(&self, service: Service) -> bool {
        self.session.has(service).await.unwrap_or(false)
    }

    async fn storage(&self, of_images: Vec<String>, of_servers: Vec<String>) {
        let (session, name) = (&self.session, self.name.as_str());
        let copy = format!("{name}-copy");
        let find = async || volumes::find(session, &copy).await;
        gone("copies", find, async |it| volumes::delete(session, &it.id).await).await;
        let find = async || {
            let mut found = snapshots::find(session, name).await?;
            for id in &of_images {
                found.extend(snapshots::show(session, id).await?);
            }
            Ok(found)
        };
        gone("snapshots", find, async |it| snapshots::delete(session, &it.id).await).await;
        let find = async || {
            let mut found = volumes::find(session, name).await?;
            for id in &of_servers {
                found.extend(volumes::show(session, id).await?);
            }
            Ok(found)
        };
        gone("volumes", find, async |it| volumes::delete(session, &it.id).await).await;
    }

    async fn networks(&self) {
        let (session, name) = (&self.session, self.name.as_str());
        let find = async || floating_ips::find(session, name).await;
        gone("floating IPs", find, async |it| floating_ips::delete(session, &it.id).await).await;
        let find = async || routers::find(session, name).await;
        let delete = async |it: &routers::Router| {
            for subnet in subnets::find(session, name).await? {
                // The subnet may not be connected to this router.
                let _ = routers::remove_subnet(session, &it.id, &subnet.id).await;
            }
            routers::delete(session, &it.id).await
        };
        gone("routers", find, delete).await;
        let find = async || networks::find(session, name).await;
        let delete = async |it: &networks::Network| {
            let on = ports::PortQuery { network_id: Some(&it.id), ..ports::PortQuery::default() };
            for port in ports::list(session, &on).await? {
                // Neutron's own ports are deleted with their devices.
                let _ = ports::delete(session, &port.id).await;
            }
            networks::delete(session, &it.id).await
        };
        gone("networks", find, delete).await;
        let find = async || security_groups::find(session, name).await;
        gone("groups", find, async |it| security_groups::delete(session, &it.id).await).await;
    }
}

/// Deletes the objects that `find` returns until it returns none.
async fn gone<T>(
    what: &str,
    find: impl AsyncFn() -> Result<Vec<T>, CloudError>,
    delete: impl AsyncFn(&T) -> Result<(), CloudError>,
) {
    let end = Instant::now() + LONGEST;
    let mut why = String::new();
    while Instant::now() < end {
        match find().await {
            Ok(there) if there.is_empty() => return,
            Ok(there) => {
                for it in &there {
                    why = delete(it).await.err().map_or(why, |error| error.to_string());
                }
            }
            // A user who may not list objects has made none.
            Err(CloudError::Forbidden(_)) => return,
            Err(error) => why = error.to_string(),
        }
        sleep(LOOK_EVERY).await;
    }
    eprintln!("{what} are left in the cloud: {why}");
}

#[tokio::test]
async fn a_story_that_fails_leaves_nothing_behind() {
    let Some(alice) = given::session("alice") else { return };
    let (name, tidy) = given::named("alice");
    let (session, called) = (alice.clone(), name.clone());
    let story = tokio::spawn(async move {
        let _tidy = tidy;
        let (network, _) = given::network(&session, &called, "10.84.0.0/24").await;
        let port = ports::NewPort {
            name: called.clone(),
            network_id: network.id,
            ..ports::NewPort::default()
        };
        let port = ports::create(&session, &port).await.unwrap();
        let policy = server_groups::Policy::SoftAntiAffinity;
        server_groups::create(&session, &called, &policy).await.unwrap();
        let server = crate::compute::server(&session, &called, &port.id).await;
        servers::create(&session, &server).await.unwrap();
        panic!("this story fails");
    });
    assert!(story.await.unwrap_err().is_panic());
    assert_eq!(servers::find(&alice, &name).await.unwrap(), []);
    assert_eq!(server_groups::find(&alice, &name).await.unwrap(), []);
    assert_eq!(ports::find(&alice, &name).await.unwrap(), []);
    assert_eq!(networks::find(&alice, &name).await.unwrap(), []);
}
