//! Real sockets: bulk transfers with verified content, and what the kernel says of them.
