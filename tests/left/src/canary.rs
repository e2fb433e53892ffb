//! Secrets that tests give to services. Each text occurs nowhere else, and contains characters that URLs have to encode.

/// The password of every emulated BMC.
pub const BMC: &str = "canary bmc/9f3+Qx7";
/// Part of user data and config drives.
pub const USER_DATA: &str = "canary user-data/4c1+Wd2";
/// The password of the users in htpasswd files.
pub const HTPASSWD: &str = "canary htpasswd/7e8+Kb5";
/// The start of the passwords of all users that the policy walk creates in Keystone, including the user of the service.
pub const KEYSTONE: &str = "canary keystone/2a6+Mz9";
/// The password of a mail server.
pub const SMTP: &str = "canary smtp/5d0+Ty3";
/// The secret that signs notices to a webhook.
pub const WEBHOOK: &str = "canary webhook/8c2+Vn4";
/// A password typed at a serial console.
pub const CONSOLE: &str = "canary console/6b7+Jp1";
/// The password of a rescue system.
pub const RESCUE: &str = "canary rescue/3d9+Lf6";
/// The password of a user of an OCI registry.
pub const PULL_SECRET: &str = "canary pull/5f2+Ng8";
/// Planted by tests of the search itself.
pub const PLANTED: &str = "canary planted/1b4+Hs8";

/// The start of every private key in PEM format; services generate such keys themselves.
pub const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// The texts that must not be found anywhere.
pub const ALL: [&str; 11] = [
    BMC,
    USER_DATA,
    HTPASSWD,
    KEYSTONE,
    SMTP,
    WEBHOOK,
    CONSOLE,
    RESCUE,
    PULL_SECRET,
    PLANTED,
    PRIVATE_KEY,
];
