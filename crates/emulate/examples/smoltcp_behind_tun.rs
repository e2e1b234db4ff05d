//! A stack in user space behind a TUN device, to play packet scripts against: smoltcp listens at packetdrill's address, and sends each who
//! connects so many bytes.
//!
//! ```text
//! cargo run -p farpath-emulate --example smoltcp_behind_tun -- tun7 4000 &     # as root: it makes the device
//! ip link set tun7 up
//! farpath script own.pkt --tun tun7
//! ```

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        #[cfg(target_os = "linux")]
        [device, bytes] if bytes.parse::<usize>().is_ok() => {
            let bytes = bytes.parse().unwrap_or_default();
            stack::serve(device, bytes, &std::sync::atomic::AtomicBool::new(false))
        }
        _ => Err(std::io::Error::other("usage, on Linux: smoltcp_behind_tun DEVICE BYTES")),
    }
}

/// smoltcp, and a program that listens.
#[cfg(target_os = "linux")]
pub mod stack {
    use smoltcp::iface::{Config, Interface, SocketSet};
    use smoltcp::phy::{Medium, TunTapInterface, wait};
    use smoltcp::socket::tcp::{Socket, SocketBuffer};
    use smoltcp::time::{Duration, Instant};
    use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Where scripts connect to where they say nothing else, and the next hop to who connects.
    const ADDRESS: IpAddress = IpAddress::v4(192, 168, 0, 1);
    const ROUTER: Ipv4Address = Ipv4Address::new(192, 168, 0, 2);
    const PORT: u16 = 8080;

    /// Serves one connection after the other, each with so many bytes, until it is `over`.
    ///
    /// # Errors
    /// There is no such device, and none can be made.
    pub fn serve(device: &str, bytes: usize, over: &AtomicBool) -> io::Result<()> {
        let mut device = TunTapInterface::new(device, Medium::Ip)?;
        let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut device, Instant::now());
        let address = IpCidr::new(ADDRESS, 24);
        interface.update_ip_addrs(|addresses| addresses.push(address).expect("there is room for one"));
        interface.routes_mut().add_default_ipv4_route(ROUTER).expect("there is room for one");
        let buffer = || SocketBuffer::new(vec![0; 65_535]);
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(Socket::new(buffer(), buffer()));
        let mut left = 0;
        while !over.load(Ordering::Relaxed) {
            interface.poll(Instant::now(), &mut device, &mut sockets);
            let socket = sockets.get_mut::<Socket<'_>>(handle);
            if !socket.is_open() {
                socket.listen(PORT).expect("a port, and a socket that is closed");
                left = bytes;
            }
            while let Ok(1..) = socket.recv(|unread| (unread.len(), unread.len())) {}
            if socket.can_send() && left > 0 {
                left -= socket.send_slice(&vec![0; left]).unwrap_or(0);
                continue;
            }
            if !socket.may_recv() && left == 0 && socket.may_send() {
                socket.close();
                continue;
            }
            let most = Duration::from_millis(10);
            let due = interface.poll_delay(Instant::now(), &sockets).map_or(most, |due| due.min(most));
            wait(device.as_raw_fd(), Some(due))?;
        }
        Ok(())
    }
}
