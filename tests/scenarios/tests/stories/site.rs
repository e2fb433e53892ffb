//! An emulated cloud, and a user who makes requests in it.

use openstack_emulator::{Cloud, Emulator, Settings};
use serde_json::json;
use tempfile::TempDir;

use crate::cloud_user::CloudUser;

/// The cloud, and a folder with its clouds.yaml. The secrets of the cloud are searched for in everything that the tests keep.
pub(crate) struct Site {
    pub(crate) cloud: Cloud,
    pub(crate) user: CloudUser,
    pub(crate) folder: TempDir,
    _emulator: Emulator,
}

impl Site {
    /// Starts a cloud in which this user of its clouds.yaml creates a network `lab`.
    pub(crate) async fn start(user: &str) -> Site {
        Site::start_with(user, Settings::default()).await
    }

    /// Starts a cloud with these settings.
    pub(crate) async fn start_with(user: &str, settings: Settings) -> Site {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(settings).await.expect("the emulator starts");
        let cloud = emulator.cloud.clone();
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("clouds.yaml"), cloud.clouds_yaml()).expect("a file");
        let user = CloudUser::new(&cloud, user);
        let network = json!({"name": "lab"});
        let network = user.create("/network/v2.0/networks", "network", network).await;
        let subnet = json!({"network_id": network, "cidr": "10.7.0.0/24", "ip_version": 4});
        user.create("/network/v2.0/subnets", "subnet", subnet).await;
        Site { cloud, user, folder, _emulator: emulator }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
    }
}
