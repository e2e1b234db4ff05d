//! Who is there, and how much each address has had.

use super::Limits;
use farpath_emu::Clock;
use farpath_units::{Bytes, Duration, Instant};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections that have not said who they are, in all and from one address. They have ten seconds for it.
const CALLERS: u32 = 64;
const CALLERS_FROM_ONE: u32 = 8;
/// Clients from one address: what more of them measured would be each other.
const CLIENTS_FROM_ONE: u32 = 2;
/// After which an address has its bytes again.
const HOUR: Duration = Duration::from_secs(3600);
/// Addresses that are remembered.
const REMEMBERED: usize = 10_000;

/// Who is there, and how much each address has had.
#[derive(Debug)]
pub struct Ledger {
    limits: Limits,
    clock: Clock,
    page: Mutex<Page>,
}

#[derive(Debug, Default)]
struct Page {
    callers: u32,
    clients: u32,
    accounts: HashMap<IpAddr, Account>,
}

#[derive(Debug, Default)]
struct Account {
    callers: u32,
    clients: u32,
    spent: Bytes,
    since: Instant,
}

/// Somebody has connected.
#[derive(Debug)]
pub struct Caller<'a> {
    ledger: &'a Ledger,
    who: IpAddr,
}

/// Somebody measures.
#[derive(Debug)]
pub struct Client<'a> {
    ledger: &'a Ledger,
    who: IpAddr,
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// As many measure as may.
    #[error("{0} clients measure already, which is as many as it lets in (--max-clients)")]
    Clients(u32),
    /// So do as many of the same address.
    #[error("{CLIENTS_FROM_ONE} clients measure from this address already; more would measure each other")]
    Address,
}

impl Ledger {
    pub fn new(limits: Limits) -> Ledger {
        Ledger { limits, clock: Clock::start(), page: Mutex::default() }
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody has connected; `None` where too many others have and say nothing.
    pub fn call(&self, address: IpAddr) -> Option<Caller<'_>> {
        let who = network(address);
        let now = self.clock.now();
        let mut page = self.page();
        if page.accounts.len() >= REMEMBERED {
            page.accounts.retain(|_, account| account.is_needed(now));
        }
        let known = page.accounts.contains_key(&who);
        if page.callers >= CALLERS || !known && page.accounts.len() >= REMEMBERED {
            return None;
        }
        let account = page.accounts.entry(who).or_default();
        if account.callers >= CALLERS_FROM_ONE {
            return None;
        }
        account.callers += 1;
        page.callers += 1;
        Some(Caller { ledger: self, who })
    }
}

impl<'a> Caller<'a> {
    /// It may measure, if there is room.
    pub fn admit(self) -> Result<Client<'a>, Full> {
        let (ledger, who) = (self.ledger, self.who);
        let mut page = ledger.page();
        if page.clients >= ledger.limits.clients {
            return Err(Full::Clients(ledger.limits.clients));
        }
        let account = page.accounts.entry(who).or_default();
        if account.clients >= CLIENTS_FROM_ONE {
            return Err(Full::Address);
        }
        account.clients += 1;
        page.clients += 1;
        Ok(Client { ledger, who })
    }
}

impl Client<'_> {
    /// Takes from what its address may have.
    ///
    /// # Errors
    /// It is more than is left, which is given.
    pub fn spend(&self, bytes: Bytes) -> Result<(), Bytes> {
        let mut page = self.ledger.page();
        let (left, account) = self.account(&mut page);
        if bytes > left {
            return Err(left);
        }
        account.spent += bytes;
        Ok(())
    }

    /// Its account, with what is left on it now.
    fn account<'p>(&self, page: &'p mut Page) -> (Bytes, &'p mut Account) {
        let now = self.ledger.clock.now();
        let account = page.accounts.entry(self.who).or_default();
        if now.saturating_since(account.since) >= HOUR {
            (account.since, account.spent) = (now, Bytes::ZERO);
        }
        (Bytes(self.ledger.limits.bytes.0.saturating_sub(account.spent.0)), account)
    }

    /// Gives back what was asked for and has not been moved.
    pub fn give_back(&self, bytes: Bytes) {
        let mut page = self.ledger.page();
        if let Some(account) = page.accounts.get_mut(&self.who) {
            account.spent = Bytes(account.spent.0.saturating_sub(bytes.0));
        }
    }

    /// What is left of it.
    pub fn left(&self) -> Bytes {
        self.account(&mut self.ledger.page()).0
    }
}

impl Account {
    /// Whether forgetting it would give somebody something.
    fn is_needed(&self, now: Instant) -> bool {
        let spent = self.spent != Bytes::ZERO && now.saturating_since(self.since) < HOUR;
        self.callers > 0 || self.clients > 0 || spent
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        let mut page = self.ledger.page();
        page.callers -= 1;
        leave(&mut page, self.who, |account| account.callers -= 1);
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        let mut page = self.ledger.page();
        page.clients -= 1;
        leave(&mut page, self.who, |account| account.clients -= 1);
    }
}

fn leave(page: &mut Page, who: IpAddr, change: impl FnOnce(&mut Account)) {
    if let Some(account) = page.accounts.get_mut(&who) {
        change(account);
        if account.callers == 0 && account.clients == 0 && account.spent == Bytes::ZERO {
            page.accounts.remove(&who);
        }
    }
}

/// Whose an address is: of IPv6, one host has 64 bits to choose from.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let mut segments = v6.segments();
            segments[4..].fill(0);
            Ipv6Addr::from(segments).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn ledger(clients: u32) -> Ledger {
        Ledger::new(Limits { clients, bytes: Bytes(1000), ..Limits::default() })
    }

    #[test]
    fn silent_callers_of_one_address_do_not_keep_others_out() {
        let ledger = ledger(4);
        let held: Vec<_> = (0..20).filter_map(|_| ledger.call(address(1))).collect();
        assert_eq!(held.len(), 8);
        assert!(ledger.call(address(2)).is_some());
        let all: Vec<_> = (2..60).flat_map(|last| [last; 8]).map(|last| ledger.call(address(last))).collect();
        assert_eq!(all.iter().flatten().count(), 64 - 8);
        drop((held, all));
        assert!(ledger.page().accounts.is_empty() && ledger.page().callers == 0);
    }

    #[test]
    fn as_many_are_let_in_as_may_and_two_from_one_address() {
        let ledger = ledger(3);
        let admit = |last| ledger.call(address(last)).expect("room").admit();
        let (first, _second) = (admit(1).expect("room"), admit(1).expect("room"));
        assert_eq!(admit(1).err(), Some(Full::Address));
        let _third = admit(2).expect("room");
        assert_eq!(admit(3).err(), Some(Full::Clients(3)));
        drop(first);
        assert!(admit(3).is_ok());
    }

    #[test]
    fn bytes_are_an_address_s_and_not_a_connection_s() {
        let ledger = ledger(4);
        let admit = |address| ledger.call(address).expect("room").admit().expect("room");
        assert_eq!(admit(address(1)).spend(Bytes(900)), Ok(()));
        assert_eq!(admit(address(1)).spend(Bytes(200)), Err(Bytes(100)));
        admit(address(1)).give_back(Bytes(300));
        assert_eq!(admit(address(1)).left(), Bytes(400));
        assert_eq!(admit(address(2)).left(), Bytes(1000));
        let unlimited = Ledger::new(Limits { bytes: Bytes::MAX, ..Limits::default() });
        let client = unlimited.call(address(1)).expect("room").admit().expect("room");
        assert_eq!((client.left(), client.left()), (Bytes::MAX, Bytes::MAX), "to look costs nothing");
        let v6 = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(admit(v6("2001:db8::1")).spend(Bytes(1000)), Ok(()));
        assert_eq!(admit(v6("2001:db8::ffff:1")).left(), Bytes::ZERO);
        assert_eq!(admit(v6("2001:db8:0:1::1")).left(), Bytes(1000));
    }
}
