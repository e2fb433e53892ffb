//! The services over real sockets: on loopback, and with clients and firmware nobody here wrote.

mod loopback;
mod real_clients;
mod real_firmware;

mod machine;
mod network;
mod recorder;
