//! An open serial port: transfers characters in both directions until one side ends the session.

use std::time::Duration;

use bmc::BmcError;
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::commands::Command;
use crate::commands::payload::{DeactivateSerial, IsSerialActive, SerialActivated};
use crate::exchange::{RetryLimits, unreachable};
use crate::port::{Port, Route};
use crate::quirks;
use crate::session::Opened;
use crate::wire::Reader;
use crate::wire::message::{Request, Response};
use crate::wire::packet::payload;
use crate::wire::serial::{self, SerialPacket};

use super::commands::Commands;
use super::transfer::{Overdue, PacketClass, Transfer};

/// The interval of the requests to a silent BMC.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long a BMC may ignore these requests before the session counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(6);

pub(crate) struct PortSession<'p> {
    commands: Commands<'p>,
    /// The route of characters, if it is not the route of commands.
    aside: Option<Route<'p>>,
    transfer: Transfer,
    /// A packet for which the reader has no space yet. It is not acknowledged, so the BMC waits.
    held: Option<Held>,
    /// The message number of the last activation request, to recognize its answer.
    question: u8,
    /// Whether the BMC has confirmed that the port is active.
    told_active: bool,
    /// Whether the BMC has said that the port is no longer active.
    is_over: bool,
    keep_alive_every: Duration,
    heard_at: Instant,
    asked_at: Instant,
}

/// A packet from the BMC.
struct Held {
    order: u32,
    number: u8,
    characters: Bytes,
}

/// The reasons why a session of a serial port ended.
pub(crate) enum Ended {
    /// The caller dropped the session.
    Dropped,
    ByBmc,
    /// The BMC does not answer any more.
    Lost(BmcError),
}

impl<'p> PortSession<'p> {
    pub(crate) fn new(
        port: &'p Port,
        commands: Commands<'p>,
        reported: &SerialActivated,
        keep_alive_every: Duration,
    ) -> Self {
        let reached = commands.target.address;
        let address = quirks::serial_address(reached, reported.port);
        let aside = (address != reached).then(|| port.route(address, commands.session.console));
        let now = Instant::now();
        PortSession {
            commands,
            aside,
            transfer: Transfer::new(reported.longest_in),
            held: None,
            question: 0,
            told_active: false,
            is_over: false,
            keep_alive_every: keep_alive_every / 3,
            heard_at: now,
            asked_at: now,
        }
    }

    /// Transfers characters until `output` has no reader, the connector is closed, or the BMC ends the session.
    pub(crate) async fn serve(
        &mut self,
        output: &mpsc::Sender<Result<Bytes, BmcError>>,
        mut typed: mpsc::Receiver<Bytes>,
        mut closings: watch::Receiver<u64>,
    ) -> Ended {
        let mut is_typing = true;
        if let Err(error) = self.send(&quirks::first_serial_packet()).await {
            return Ended::Lost(error);
        }
        loop {
            if self.is_over && self.held.is_none() {
                return Ended::ByBmc;
            }
            let wake_at = match self.attend().await {
                Ok(wake_at) => wake_at,
                Err(error) => return Ended::Lost(error),
            };
            let datagram = tokio::select! {
                () = output.closed() => return Ended::Dropped,
                _ = closings.changed() => return Ended::Dropped,
                more = typed.recv(), if is_typing && self.transfer.is_idle() => {
                    match more {
                        Some(characters) => self.transfer.type_in(&characters),
                        None => is_typing = false,
                    }
                    continue;
                }
                place = output.reserve(), if self.held.is_some() => {
                    if let (Ok(place), Some(held)) = (place, self.held.take())
                        && let Err(error) = self.pass_on(place, held).await
                    {
                        return Ended::Lost(error);
                    }
                    continue;
                }
                datagram = self.commands.route.receive() => datagram,
                datagram = receive(&mut self.aside) => datagram,
                () = sleep_until(wake_at) => None,
            };
            let Some(datagram) = datagram else { continue };
            let said = match self.hear(&datagram).await {
                Ok(said) => said,
                Err(error) => return Ended::Lost(error),
            };
            match (said, output.try_reserve()) {
                (None, _) => {}
                (Some(held), Err(_)) => self.held = Some(held),
                (Some(held), Ok(place)) => {
                    if let Err(error) = self.pass_on(place, held).await {
                        return Ended::Lost(error);
                    }
                }
            }
        }
    }

    /// Releases the port and closes the session.
    pub(crate) async fn give_back(&mut self) {
        let patience = RetryLimits::short(Instant::now() + self.commands.target.timeout);
        if let Ok(None) | Err(_) = self.commands.ask(&DeactivateSerial, patience).await {
            debug!(bmc = %self.commands.target.address, "the BMC did not take its port back");
        }
        self.commands.close().await;
    }

    /// Sends everything that is due, and returns when the next sending is due.
    async fn attend(&mut self) -> Result<Instant, BmcError> {
        let now = Instant::now();
        match self.transfer.give_up(now, self.commands.target.timeout) {
            Overdue::No => {}
            Overdue::Discarded => {
                debug!("typed characters were discarded: the machine's port accepts none")
            }
            Overdue::Silence => {
                return Err(self.lost("the BMC does not acknowledge typed characters"));
            }
        }
        if let Some(packet) = self.transfer.send(now) {
            self.send(&packet).await?;
        }

        let silent_since = self.heard_at + self.keep_alive_every;
        if now >= silent_since + LOST_AFTER {
            return Err(self.lost("the session of the serial port is lost"));
        }
        let pause = if now >= silent_since { ASK_EVERY } else { self.keep_alive_every };
        let mut ask_at = self.asked_at + pause;
        if now >= ask_at {
            self.ask_whether_active().await?;
            ask_at = now + pause;
        }
        // The pause may end earlier than planned, because the BMC has become silent.
        let silence = if now < silent_since { silent_since } else { ask_at };
        Ok(ask_at.min(silence).min(self.transfer.due(now).unwrap_or(ask_at)))
    }

    /// Asks the BMC whether the port is active. The request also keeps the session alive.
    async fn ask_whether_active(&mut self) -> Result<(), BmcError> {
        let (netfn, command) = IsSerialActive::CODE;
        let data = IsSerialActive.data();
        let request = Request { netfn, lun: 0, command, data: &data };
        self.question = self.commands.session.next_message();
        self.asked_at = Instant::now();
        let datagram = self.commands.session.seal(&request, self.question, rand::random());
        let sent = self.commands.route.send(&datagram).await;
        sent.map_err(|source| self.commands.unreachable(source))
    }

    /// Returns the machine's output in a datagram, if it is new.
    async fn hear(&mut self, datagram: &[u8]) -> Result<Option<Held>, BmcError> {
        let opened = match self.commands.session.open_payload(datagram) {
            Ok(opened) => opened,
            Err(reason) => {
                debug!("dropped a packet: {reason}");
                return Ok(None);
            }
        };
        self.heard_at = Instant::now();
        match opened.payload_type {
            payload::SERIAL => self.hear_port(&opened).await,
            payload::IPMI => {
                self.hear_answer(&opened.payload);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    async fn hear_port(&mut self, opened: &Opened) -> Result<Option<Held>, BmcError> {
        let packet = match SerialPacket::read(&opened.payload) {
            Ok(packet) => packet,
            Err(reason) => {
                debug!("dropped a packet: {reason}");
                return Ok(None);
            }
        };
        self.is_over |= packet.is_deactivated();
        if packet.was_overrun() {
            debug!(bmc = %self.commands.target.address, "the BMC lost output of the machine");
        }
        self.transfer.on_acknowledgement(&packet, self.heard_at);
        match self.transfer.classify(opened.sequence, &packet) {
            PacketClass::New if self.held.is_none() => {
                let characters = Bytes::copy_from_slice(packet.characters);
                Ok(Some(Held { order: opened.sequence, number: packet.number, characters }))
            }
            PacketClass::New | PacketClass::Nothing => Ok(None),
            PacketClass::Repeated(count) => {
                self.send(&serial::acknowledgement(packet.number, count)).await?;
                Ok(None)
            }
        }
    }

    fn hear_answer(&mut self, message: &[u8]) {
        let Ok(response) = Response::read(message) else { return };
        let (netfn, command) = IsSerialActive::CODE;
        let request = Request { netfn, lun: 0, command, data: &[] };
        if !request.is_answered_by(&response, self.question) || response.completion != 0 {
            return;
        }
        match IsSerialActive.read(&mut Reader::new(response.data)) {
            Ok(true) => self.told_active = true,
            // A BMC that never confirmed an active port is not believed when it denies one.
            Ok(false) => self.is_over |= self.told_active,
            Err(_) => {}
        }
    }

    /// Passes output to the reader, and acknowledges it to the BMC.
    async fn pass_on(
        &mut self,
        place: mpsc::Permit<'_, Result<Bytes, BmcError>>,
        held: Held,
    ) -> Result<(), BmcError> {
        let count = u8::try_from(held.characters.len()).unwrap_or(u8::MAX);
        if count > 0 {
            place.send(Ok(held.characters));
        }
        self.transfer.take(held.order, held.number, count);
        self.send(&serial::acknowledgement(held.number, count)).await
    }

    /// Sends a packet of the serial port.
    async fn send(&mut self, packet: &[u8]) -> Result<(), BmcError> {
        let session = &mut self.commands.session;
        let datagram = session.seal_payload(payload::SERIAL, packet, rand::random());
        let route = self.aside.as_ref().unwrap_or(&self.commands.route);
        route.send(&datagram).await.map_err(|source| self.commands.unreachable(source))
    }

    fn lost(&self, why: &'static str) -> BmcError {
        unreachable(&self.commands.target, why)
    }
}

/// Receives from a route; waits for ever if there is none.
async fn receive(route: &mut Option<Route<'_>>) -> Option<Vec<u8>> {
    match route {
        Some(route) => route.receive().await,
        None => std::future::pending().await,
    }
}
