//! An emulated cloud for one test, whose Keystone and catalogue the clients use like any other's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::service::new_folder;
use crate::wait::wait_for;
use crate::wire::Request;
use crate::{CommandLine, program};

/// How long the emulator may take to listen, on a machine that compiles at the same time.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A cloud that answers until it is dropped.
pub struct Cloud {
    process: Child,
    folder: PathBuf,
    clouds: Value,
    /// The base URL: `http://HOST:PORT`.
    url: String,
}

impl Cloud {
    /// Starts a cloud with the accounts admin, alice, bob and clusterd.
    #[track_caller]
    pub fn start() -> Self {
        let folder = new_folder();
        let file = folder.join("clouds.yaml");
        let process = Command::new(program("openstack-emulator"))
            .arg("--clouds-out")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the emulator can be started");
        let text = wait_for("the emulator", START_TIMEOUT, || fs::read_to_string(&file).ok());
        // The emulator writes YAML that is also JSON.
        let clouds: Value = serde_json::from_str(&text).expect("it is JSON");
        let url = clouds["clouds"]["admin"]["auth"]["auth_url"].as_str().expect("an URL");
        let url = url.trim_end_matches("/identity/v3").to_owned();
        Cloud { process, folder, clouds, url }
    }

    /// The path of the cloud's clouds.yaml.
    pub fn clouds_yaml(&self) -> PathBuf {
        self.folder.join("clouds.yaml")
    }

    /// The URL of Keystone's API.
    pub fn identity(&self) -> String {
        format!("{}/identity/v3", self.url)
    }

    /// The `[api]` settings of a service that uses this cloud's Keystone.
    pub fn keystone(&self) -> String {
        let file = self.clouds_yaml();
        format!("auth = 'keystone'\n[api.keystone]\nclouds_yaml = {file:?}\nname = 'clusterd'\n")
    }

    /// Adds a service to the catalogue.
    #[track_caller]
    pub fn register(&self, kind: &str, url: &str) {
        let request = Request::new("PUT", &format!("/_control/endpoints/{kind}"));
        request.json(&json!(url)).send(&self.url).expect(200);
    }

    /// Adds a user with the password `NAME-secret` and these roles in a project.
    #[track_caller]
    pub fn user(&mut self, name: &str, project: &str, roles: &[&str]) {
        let path = format!("/_control/projects/{project}/users/{name}");
        let body = json!({"password": format!("{name}-secret"), "roles": roles});
        Request::new("PUT", &path).json(&body).send(&self.url).expect(200);
        let mut cloud = self.clouds["clouds"]["admin"].clone();
        cloud["auth"]["username"] = json!(name);
        cloud["auth"]["password"] = json!(format!("{name}-secret"));
        cloud["auth"]["project_name"] = json!(project);
        self.write(name, cloud);
    }

    /// Adds the account `NAME-forgetful`, with a wrong password.
    pub fn forget_password(&mut self, name: &str) {
        let mut cloud = self.clouds["clouds"][name].clone();
        cloud["auth"]["password"] = json!("wrong");
        self.write(&format!("{name}-forgetful"), cloud);
    }

    /// Adds the account `NAME-system`: the same user with the whole cloud as scope.
    pub fn system(&mut self, name: &str) {
        let mut cloud = self.clouds["clouds"][name].clone();
        let auth = cloud["auth"].as_object_mut().expect("an object");
        auth.retain(|key, _| !key.starts_with("project"));
        auth.insert("system_scope".to_owned(), json!("all"));
        self.write(&format!("{name}-system"), cloud);
    }

    fn write(&mut self, name: &str, cloud: Value) {
        self.clouds["clouds"][name] = cloud;
        fs::write(self.clouds_yaml(), self.clouds.to_string()).expect("a file can be written");
    }

    /// Starts `openstack` with an account of the clouds.yaml.
    pub fn client(&self, name: &str) -> CommandLine {
        CommandLine::in_cloud(Path::new(&self.clouds_yaml()), name)
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let clouds = self.clouds["clouds"].as_object().into_iter().flatten();
        let passwords = clouds.filter_map(|(_, it)| it["auth"]["password"].as_str());
        left::add_secrets(passwords.map(str::to_owned));
        let _ = fs::remove_dir_all(&self.folder);
    }
}
