//! Who is there, and how much each network has had.

mod network;

use super::Limits;
use super::quota::{Quotas, Taken};
use crate::limits::{
    ACCOUNTS, BYTES_OF_SITE, CALLERS, CALLERS_FROM_ONE, CALLERS_FROM_SITE, CLIENTS_FROM_ONE,
    CLIENTS_FROM_SITE,
};
use farpath_emu::Clock;
use farpath_units::{Bytes, Duration, Instant};
use network::{Level, Network, Networks};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// After which a network has its bytes again.
const HOUR: Duration = Duration::from_secs(3600);

/// Who is there, and how much each network has had.
#[derive(Debug)]
pub struct Ledger {
    limits: Limits,
    clock: Clock,
    quotas: Quotas,
    page: Mutex<Page>,
}

#[derive(Debug, Default)]
struct Page {
    /// Those who have connected and not said who they are, the oldest first.
    callers: Vec<Calling>,
    /// Those who measure.
    clients: Vec<Networks>,
    accounts: HashMap<Network, Account>,
    next: u64,
}

struct Calling {
    number: u64,
    from: Networks,
    /// Ends its connection; `None` where that is done, and its thread has yet to notice.
    hang_up: Option<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Calling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calling")
            .field("number", &self.number)
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

/// What a network has had since then.
#[derive(Debug, Default)]
struct Account {
    spent: Bytes,
    since: Instant,
}

/// Somebody has connected.
#[derive(Debug)]
pub struct Caller<'a> {
    ledger: &'a Ledger,
    number: u64,
    from: Networks,
}

/// Somebody measures.
#[derive(Debug)]
pub struct Client<'a> {
    ledger: &'a Ledger,
    from: Networks,
    quotas: Quotas,
}

/// Bytes that a flow may move. What it has not moved is given back when this goes.
#[derive(Debug)]
pub struct Spent<'a> {
    client: &'a Client<'a>,
    left: Bytes,
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
    /// So do as many of the same /48.
    #[error("{CLIENTS_FROM_SITE} clients measure from this /48 already")]
    Site,
    /// Others have called since, and nothing was said.
    #[error("too many call at once")]
    Callers,
}

impl Ledger {
    pub fn new(limits: Limits) -> Ledger {
        Ledger { limits, clock: Clock::start(), quotas: Quotas::for_all(), page: Mutex::default() }
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody has connected, whose connection `hang_up` ends; `None` where too many others have and say nothing. Of
    /// these the oldest is put out where its network has more of them than this one.
    pub fn call(&self, address: IpAddr, hang_up: impl FnOnce() + Send + 'static) -> Option<Caller<'_>> {
        let from = Networks::containing(address);
        let mut page = self.page();
        let mut held: HashMap<Network, usize> = HashMap::new();
        for network in page.calling().flat_map(|(_, one)| one.from.all()) {
            *held.entry(network).or_default() += 1;
        }
        let held = |network: Network| held.get(&network).copied().unwrap_or(0);
        let most = |level| match level {
            Level::Host => CALLERS_FROM_ONE,
            Level::Site => CALLERS_FROM_SITE,
        };
        if from.all().any(|network| held(network) >= most(network.level)) {
            return None;
        }
        // As many may have been put out and not be gone yet: there is an end to these, too.
        if page.callers.len() >= 2 * CALLERS {
            return None;
        }
        if page.calling().count() >= CALLERS {
            let all = || page.calling().map(|(place, one)| (place, held(one.from.widest())));
            let largest = all().map(|(_, held)| held).max()?;
            if held(from.widest()) >= largest {
                return None;
            }
            let (oldest, _) = all().find(|(_, held)| *held == largest)?;
            if let Some(hang_up) = page.callers[oldest].hang_up.take() {
                hang_up();
            }
        }
        let number = page.next;
        page.next += 1;
        page.callers.push(Calling { number, from, hang_up: Some(Box::new(hang_up)) });
        Some(Caller { ledger: self, number, from })
    }

    fn limit(&self, level: Level) -> Bytes {
        match level {
            Level::Host => self.limits.bytes,
            Level::Site => Bytes(self.limits.bytes.0.saturating_mul(BYTES_OF_SITE)),
        }
    }
}

impl Page {
    /// Those callers that have not been put out, the oldest first, and their places.
    fn calling(&self) -> impl Iterator<Item = (usize, &Calling)> {
        self.callers.iter().enumerate().filter(|(_, one)| one.hang_up.is_some())
    }

    /// The account of a network, with nothing on it that is of an earlier hour.
    fn account(&mut self, network: Network, now: Instant) -> &mut Account {
        if !self.accounts.contains_key(&network) && self.accounts.len() >= ACCOUNTS {
            self.forget_one(now);
        }
        let account = self.accounts.entry(network).or_insert(Account { spent: Bytes::ZERO, since: now });
        if account.is_old(now) {
            *account = Account { spent: Bytes::ZERO, since: now };
        }
        account
    }

    /// Forgets the account that is worth least: one of an earlier hour, or that with the least on it. Who has had much is
    /// remembered, however many come that have had little.
    fn forget_one(&mut self, now: Instant) {
        let measures = |network: &Network| self.clients.iter().any(|client| client.has(*network));
        let least = self
            .accounts
            .iter()
            .filter(|(network, _)| !measures(network))
            .min_by_key(|(_, account)| if account.is_old(now) { Bytes::ZERO } else { account.spent })
            .map(|(network, _)| *network);
        if let Some(network) = least {
            self.accounts.remove(&network);
        }
    }
}

impl Account {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_since(self.since) >= HOUR
    }
}

impl<'a> Caller<'a> {
    /// It may measure, if there is room.
    pub fn admit(self) -> Result<Client<'a>, Full> {
        let (ledger, from) = (self.ledger, self.from);
        let mut page = ledger.page();
        if !page.callers.iter().any(|one| one.number == self.number && one.hang_up.is_some()) {
            return Err(Full::Callers);
        }
        if page.clients.len() >= ledger.limits.clients as usize {
            return Err(Full::Clients(ledger.limits.clients));
        }
        for network in from.all() {
            let (most, full) = match network.level {
                Level::Host => (CLIENTS_FROM_ONE, Full::Address),
                Level::Site => (CLIENTS_FROM_SITE, Full::Site),
            };
            if page.clients.iter().filter(|client| client.has(network)).count() >= most {
                return Err(full);
            }
        }
        page.clients.push(from);
        Ok(Client { ledger, from, quotas: Quotas::for_client() })
    }
}

impl Client<'_> {
    /// Takes from what its networks may have.
    ///
    /// # Errors
    /// It is more than is left, which is given.
    pub fn spend(&self, bytes: Bytes) -> Result<Spent<'_>, Bytes> {
        let now = self.ledger.clock.now();
        let mut page = self.ledger.page();
        let left = self.left_on(&page, now);
        if bytes > left {
            return Err(left);
        }
        for network in self.from.all() {
            let account = page.account(network, now);
            account.spent = Bytes(account.spent.0.saturating_add(bytes.0));
        }
        Ok(Spent { client: self, left: bytes })
    }

    /// What is left of it.
    pub fn left(&self) -> Bytes {
        self.left_on(&self.ledger.page(), self.ledger.clock.now())
    }

    fn left_on(&self, page: &Page, now: Instant) -> Bytes {
        let left = |network: Network| {
            let account = page.accounts.get(&network).filter(|account| !account.is_old(now));
            let spent = account.map_or(0, |account| account.spent.0);
            Bytes(self.ledger.limit(network.level).0.saturating_sub(spent))
        };
        self.from.all().map(left).min().unwrap_or(Bytes::ZERO)
    }

    /// Gives back what was asked for and has not been moved.
    fn give_back(&self, bytes: Bytes) {
        let mut page = self.ledger.page();
        for network in self.from.all() {
            if let Some(account) = page.accounts.get_mut(&network) {
                account.spent = Bytes(account.spent.0.saturating_sub(bytes.0));
                if account.spent == Bytes::ZERO {
                    page.accounts.remove(&network);
                }
            }
        }
    }

    /// Room for rows, of which there is none yet.
    pub fn rows(&self) -> Taken<'_> {
        Taken::nothing([&self.quotas.rows, &self.ledger.quotas.rows])
    }

    /// The same for messages.
    pub fn messages(&self) -> Taken<'_> {
        Taken::nothing([&self.quotas.messages, &self.ledger.quotas.messages])
    }

    /// The same for datagrams.
    pub fn datagrams(&self) -> Taken<'_> {
        Taken::nothing([&self.quotas.datagrams, &self.ledger.quotas.datagrams])
    }
}

impl Spent<'_> {
    /// So much has been moved, and is not given back.
    pub fn moved(&mut self, bytes: Bytes) {
        self.left = Bytes(self.left.0.saturating_sub(bytes.0));
    }
}

impl Drop for Spent<'_> {
    fn drop(&mut self) {
        self.client.give_back(self.left);
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.ledger.page().callers.retain(|one| one.number != self.number);
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        let mut page = self.ledger.page();
        if let Some(place) = page.clients.iter().position(|client| *client == self.from) {
            page.clients.swap_remove(place);
        }
    }
}

#[cfg(test)]
mod tests;
