//! A lab whose service has an administrator's credentials for an emulated cloud.

use std::ops::Deref;

use lab::{Lab, Settings};
use openstack_emulator::{Cloud, Emulator};
use tempfile::TempDir;

use crate::cloud_user::CloudUser;

pub(crate) struct LabInCloud {
    pub(crate) lab: Lab,
    pub(crate) cloud: Cloud,
    pub(crate) admin: CloudUser,
    _folder: TempDir,
    _emulator: Emulator,
}

impl Deref for LabInCloud {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl LabInCloud {
    pub(crate) async fn start(
        start: impl AsyncFnOnce(Settings) -> Lab,
        settings: Settings,
    ) -> LabInCloud {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let emulator = Emulator::start(openstack_emulator::Settings::default()).await;
        let emulator = emulator.expect("the emulator starts");
        let cloud = emulator.cloud.clone();
        let folder = tempfile::tempdir().expect("a folder");
        let clouds = folder.path().join("clouds.yaml");
        std::fs::write(&clouds, cloud.clouds_yaml()).expect("a file");
        let lab = start(Settings { cloud: Some(clouds), ..settings }).await;
        let admin = CloudUser::new(&cloud, "admin");
        LabInCloud { lab, cloud, admin, _folder: folder, _emulator: emulator }
    }
}

impl Drop for LabInCloud {
    fn drop(&mut self) {
        left::add_secrets(self.cloud.secrets());
    }
}
