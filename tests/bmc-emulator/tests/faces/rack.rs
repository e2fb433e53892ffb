//! Machines to test with.

use bmc_emulator::{
    BmcKind, BmcSpec, DiskSpec, Firmware, Machine, MachineSpec, NicSpec, Served, ServedMachine,
    serve,
};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;

pub(crate) const USER: &str = "admin";
pub(crate) const PASSWORD: &str = "secret-of-the-lab";

pub(crate) const PROFILES: [&str; 7] =
    ["generic", "dell-idrac", "hpe-ilo", "supermicro", "lenovo-xcc", "ami-megarac", "poor"];

pub(crate) fn spec(name: &str, kind: BmcKind, profile: &str) -> MachineSpec {
    MachineSpec {
        name: name.to_owned(),
        uuid: "7d0c3a52-93a2-4f0b-8d5e-0c6f7a1b2c3d".parse().unwrap(),
        serial: "SN-0001".to_owned(),
        manufacturer: "Acme".to_owned(),
        model: "Roadrunner 2U".to_owned(),
        firmware: Firmware::Uefi,
        nics: vec![
            NicSpec { mac: "52:54:00:00:00:01".parse().unwrap(), speed_mbps: 25_000 },
            NicSpec { mac: "52:54:00:00:00:02".parse().unwrap(), speed_mbps: 25_000 },
        ],
        disks: vec![disk("sda", 480_103_981_056, false), disk("sdb", 4_000_787_030_016, true)],
        cpus: 32,
        memory_mib: 131_072,
        bmc: BmcSpec {
            kind,
            address: "127.0.0.1:0".parse().unwrap(),
            tls: false,
            username: USER.to_owned(),
            password: PASSWORD.to_owned(),
            profile: profile.to_owned(),
            also_ipmi: None,
            own_certificate: false,
        },
    }
}

fn disk(name: &str, size_bytes: u64, rotational: bool) -> DiskSpec {
    let serial = format!("D-{name}");
    DiskSpec {
        name: name.to_owned(),
        serial,
        size_bytes,
        model: "Platter 9".to_owned(),
        rotational,
    }
}

/// A served Redfish machine, and a client for it.
pub(crate) struct TestMachine {
    pub(crate) machine: Machine,
    pub(crate) at: ServedMachine,
    pub(crate) client: Client,
    _served: Served,
}

impl TestMachine {
    pub(crate) async fn redfish(profile: &str) -> TestMachine {
        TestMachine::of(spec("r1u7", BmcKind::Redfish, profile)).await
    }

    pub(crate) async fn of(spec: MachineSpec) -> TestMachine {
        let machine = Machine::new(spec);
        let served = serve(vec![machine.clone()]).await.unwrap();
        let at = served.machines[0].clone();
        TestMachine { machine, at, client: client(None), _served: served }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.at.certificate_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.at.redfish.unwrap())
    }

    /// A request with the right password.
    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path)).basic_auth(USER, Some(PASSWORD))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let response = self.ask(Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "GET {path}");
        response.json().await.unwrap()
    }

    /// Sends `body` and returns status and body of the answer.
    pub(crate) async fn send(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let response = self.ask(method, path).json(&body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap_or_default())
    }

    /// The path of the only system, found by its link.
    pub(crate) async fn system(&self) -> String {
        let systems = self.get("/redfish/v1/Systems").await;
        systems["Members"][0]["@odata.id"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn client(certificate_pem: Option<&str>) -> Client {
    // The call fails if another test of this process was first, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let roots = certificate_pem.map(|pem| reqwest::Certificate::from_pem(pem.as_bytes()).unwrap());
    Client::builder().tls_certs_only(roots).build().unwrap()
}
