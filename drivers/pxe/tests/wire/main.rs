//! Tests of the services over real sockets: on loopback, and with clients and firmware of other projects.

mod loopback;
mod real_clients;
mod real_firmware;

mod machine;
mod network;
mod recorder;
