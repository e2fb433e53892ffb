//! Opens, reads, guards and erases disks, and edits their partition tables.

pub mod blocks;
pub mod buffer;
pub mod cluster;
pub mod config_drive;
pub mod device;
pub mod erase;
pub mod esp;
pub mod gpt;
pub mod grub;
pub mod guard;
pub mod mbr;
pub mod md;
pub mod partition;
pub mod plan;
pub mod swap;
pub mod table;
pub mod window;
