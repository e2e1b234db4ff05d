use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

fn v6(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn ledger(clients: u32) -> Ledger {
    Ledger::new(Limits { clients, bytes: Bytes(1000), ..Limits::default() })
}

fn call(ledger: &Ledger, address: IpAddr) -> Option<Caller<'_>> {
    ledger.call(address, || {})
}

fn admit(ledger: &Ledger, address: IpAddr) -> Result<Client<'_>, Full> {
    call(ledger, address).expect("room").admit()
}

#[test]
fn callers_have_a_share_each_and_the_oldest_of_the_largest_is_put_out() {
    let ledger = ledger(4);
    let put_out = Arc::new(AtomicUsize::new(0));
    let call = |address| {
        let put_out = Arc::clone(&put_out);
        ledger.call(address, move || {
            put_out.fetch_add(1, Ordering::Relaxed);
        })
    };
    let held: Vec<_> = (0..20).filter_map(|_| call(address(1))).collect();
    assert_eq!(held.len(), CALLERS_FROM_ONE);
    let more: Vec<_> = (2..=8).flat_map(|last| [last; 8]).map(|last| call(address(last))).collect();
    assert_eq!(more.iter().flatten().count(), CALLERS - CALLERS_FROM_ONE);
    assert_eq!(put_out.load(Ordering::Relaxed), 0);
    // A ninth address gets as many as each of them had.
    let ninth: Vec<_> = (0..CALLERS_FROM_ONE).map(|_| call(address(9))).collect();
    assert_eq!(ninth.iter().flatten().count(), CALLERS_FROM_ONE);
    assert_eq!(put_out.load(Ordering::Relaxed), CALLERS_FROM_ONE);
    // Who was put out is not let in; who was not, is.
    let mut left = held.into_iter().chain(more.into_iter().flatten()).map(Caller::admit);
    assert_eq!(left.next().map(|first| first.err()), Some(Some(Full::Callers)));
    assert!(left.any(|client| client.is_ok()));
    drop((left, ninth));
    assert!(ledger.page().callers.is_empty());
}

#[test]
fn those_who_have_been_put_out_and_are_not_gone_have_an_end_too() {
    let ledger = ledger(4);
    let all: Vec<_> = (0..4 * CALLERS).map(|n| call(&ledger, Ipv4Addr::from(n as u32).into())).collect();
    assert_eq!(all.iter().flatten().count(), 2 * CALLERS);
    drop(all);
    assert!(ledger.page().callers.is_empty());
}

#[test]
fn as_many_are_let_in_as_may_and_two_from_one_address() {
    let ledger = ledger(3);
    let admit = |last| admit(&ledger, address(last));
    let (first, _second) = (admit(1).expect("room"), admit(1).expect("room"));
    assert_eq!(admit(1).err(), Some(Full::Address));
    let _third = admit(2).expect("room");
    assert_eq!(admit(3).err(), Some(Full::Clients(3)));
    drop(first);
    assert!(admit(3).is_ok());
}

#[test]
fn a_site_has_its_share_of_callers_clients_and_bytes() {
    let ledger = ledger(10);
    let host = |n: usize| v6(&format!("2001:db8:0:{n:x}::1"));
    let held: Vec<_> = (0..20).flat_map(|n| [n; 4]).filter_map(|n| call(&ledger, host(n))).collect();
    assert_eq!(held.len(), CALLERS_FROM_SITE);
    drop(held);
    let clients: Vec<_> = (0..CLIENTS_FROM_SITE).map(|n| admit(&ledger, host(n)).expect("room")).collect();
    assert_eq!(admit(&ledger, host(9)).err(), Some(Full::Site));
    drop(clients);
    for n in 0..4 {
        let client = admit(&ledger, host(n)).expect("room");
        client.spend(Bytes(1000)).expect("its own").moved(Bytes(1000));
    }
    assert_eq!(admit(&ledger, host(9)).expect("room").left(), Bytes::ZERO);
    assert_eq!(admit(&ledger, v6("2001:db8:1::1")).expect("room").left(), Bytes(1000), "another site");
}

#[test]
fn bytes_are_an_address_s_and_not_a_connection_s() {
    let ledger = ledger(4);
    let admit = |address| admit(&ledger, address).expect("room");
    let client = admit(address(1));
    let mut spent = client.spend(Bytes(900)).expect("there is as much");
    assert_eq!(admit(address(1)).spend(Bytes(200)).err(), Some(Bytes(100)));
    spent.moved(Bytes(600));
    drop(spent);
    assert_eq!(admit(address(1)).left(), Bytes(400));
    assert_eq!(admit(address(2)).left(), Bytes(1000));
    let unlimited = Ledger::new(Limits { bytes: Bytes::MAX, ..Limits::default() });
    let rich = call(&unlimited, address(1)).expect("room").admit().expect("room");
    assert_eq!((rich.left(), rich.left()), (Bytes::MAX, Bytes::MAX), "to look costs nothing");
    admit(v6("2001:db8::1")).spend(Bytes(1000)).expect("as much").moved(Bytes(1000));
    assert_eq!(admit(v6("2001:db8::ffff:1")).left(), Bytes::ZERO);
    assert_eq!(admit(v6("2001:db8:0:1::1")).left(), Bytes(1000));
}

#[test]
fn who_claims_and_moves_nothing_leaves_nothing() {
    let ledger = ledger(4);
    drop(admit(&ledger, address(1)).expect("room").spend(Bytes(1000)).expect("all of it"));
    assert!(ledger.page().accounts.is_empty());
}

/// Ten thousand addresses that claimed 44 B kept everybody else out for an hour.
#[test]
fn a_full_table_keeps_nobody_out_and_forgets_who_has_had_least() {
    let ledger = ledger(4);
    let spend = |address: IpAddr, bytes: u64| {
        let client = admit(&ledger, address).expect("room");
        client.spend(Bytes(bytes)).expect("there is as much").moved(Bytes(bytes));
    };
    spend(address(1), 1000);
    spend(address(2), 900);
    for n in 0..ACCOUNTS + 1000 {
        spend(Ipv4Addr::from(0x0a00_0000 + n as u32).into(), 44);
    }
    assert_eq!(ledger.page().accounts.len(), ACCOUNTS);
    assert_eq!(admit(&ledger, address(1)).expect("room").left(), Bytes::ZERO, "it has had all");
    assert_eq!(admit(&ledger, address(2)).expect("room").left(), Bytes(100));
    spend(address(3), 500);
    assert_eq!(admit(&ledger, address(3)).expect("room").left(), Bytes(500));
    // And those of a /50 of IPv6 no more than a site may have.
    let first = u128::from("2001:db8::".parse::<Ipv6Addr>().expect("an address"));
    let mut had = 0;
    for n in 0..16_384_u128 {
        let client = admit(&ledger, Ipv6Addr::from(first + (n << 64)).into()).expect("room");
        if let Ok(mut spent) = client.spend(Bytes(44)) {
            spent.moved(Bytes(44));
            had += 44;
        }
    }
    assert_eq!(had, 4 * 1000 / 44 * 44);
    assert_eq!(ledger.page().accounts.len(), ACCOUNTS);
}
