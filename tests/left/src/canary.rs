//! Secrets that tests give to services. Each stands nowhere else, and holds letters that a URL has to spell otherwise.

/// The password of every emulated BMC.
pub const BMC: &str = "canary bmc/9f3+Qx7";
/// In user data and config drives.
pub const USER_DATA: &str = "canary user-data/4c1+Wd2";
/// The password of whoever is in an htpasswd file.
pub const HTPASSWD: &str = "canary htpasswd/7e8+Kb5";
/// The password of a user of Keystone's.
pub const KEYSTONE: &str = "canary keystone/2a6+Mz9";
/// The password of a mail server.
pub const SMTP: &str = "canary smtp/5d0+Ty3";
/// For what tests plant to be found.
pub const PLANTED: &str = "canary planted/1b4+Hs8";

/// Those that are to be found nowhere.
pub const ALL: [&str; 6] = [BMC, USER_DATA, HTPASSWD, KEYSTONE, SMTP, PLANTED];
